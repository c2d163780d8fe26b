//! The past of an association, as far as later notifications depend on it.

use ropewalk_runtime::endpoint::PathStatus;

use super::receive::Begun;
use crate::abi::notification::AddressState;

/// The history of an association. It moves with the association to another socket.
#[derive(Debug, Default)]
pub struct History {
    /// Whether this end has started its shutdown.
    pub leaving: bool,
    /// Whether the program has been notified of the peer's shutdown.
    pub peer_leaving: bool,
    /// Messages that have arrived in part, without their end.
    pub begun: Vec<Begun>,
    paths: Vec<Address>,
}

/// What the program knows about the address of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Address {
    /// The program has received no notification about it.
    #[default]
    Untold,
    /// The address is confirmed and reachable.
    Reachable,
    /// The program has been notified that the address is unreachable.
    Unreachable,
}

impl History {
    /// Follows the status of a path. Returns the notification for the program about its address (RFC 6458, 6.1.2).
    ///
    /// The address of the handshake is confirmed from the start (RFC 9260, 5.4), without an event. A failure
    /// therefore implies a confirmed address.
    pub fn on_path_status(&mut self, path: usize, status: PathStatus) -> Option<AddressState> {
        if path >= self.paths.len() {
            self.paths.resize(path + 1, Address::Untold);
        }
        let address = &mut self.paths[path];
        let (now, change) = match (status, *address) {
            (PathStatus::Unconfirmed, _) => (Address::Untold, None),
            (PathStatus::Active, Address::Untold) => {
                (Address::Reachable, Some(AddressState::Confirmed))
            }
            (PathStatus::Active, Address::Unreachable) => {
                (Address::Reachable, Some(AddressState::Available))
            }
            (PathStatus::Inactive, Address::Untold | Address::Reachable) => {
                (Address::Unreachable, Some(AddressState::Unreachable))
            }
            (PathStatus::PotentiallyFailed, Address::Untold) => (Address::Reachable, None),
            (PathStatus::Active, Address::Reachable)
            | (PathStatus::PotentiallyFailed | PathStatus::Inactive, _) => (*address, None),
        };
        *address = now;
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use AddressState::{Available, Confirmed, Unreachable};
    use PathStatus::{Active, Inactive, PotentiallyFailed, Unconfirmed};

    /// The notifications that the program receives for these statuses of one path.
    fn told(statuses: &[PathStatus]) -> Vec<AddressState> {
        let mut history = History::default();
        statuses.iter().filter_map(|status| history.on_path_status(1, *status)).collect()
    }

    #[test]
    fn an_address_is_available_again_once_the_program_knows_that_it_was_unreachable() {
        for (statuses, expected) in [
            // The address of the handshake.
            (&[PotentiallyFailed, Inactive, Active][..], &[Unreachable, Available][..]),
            (
                &[Inactive, Active, Inactive, Active],
                &[Unreachable, Available, Unreachable, Available],
            ),
            (&[PotentiallyFailed, Active, PotentiallyFailed, Active], &[]),
            // Any other address.
            (&[Active, Inactive, Active], &[Confirmed, Unreachable, Available]),
            (&[Active, PotentiallyFailed, Active], &[Confirmed]),
            // An address that changes.
            (&[Active, Unconfirmed, Active], &[Confirmed, Confirmed]),
        ] {
            assert_eq!(told(statuses), expected, "{statuses:?}");
        }
    }
}
