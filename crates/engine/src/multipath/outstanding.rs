//! What the sender asks a protocol about its data.

use ropewalk_base::{PathId, Time};

use super::TxPath;
use crate::scheduler::{DecisionKind, View};
use crate::window::{Budget, SharedWindow};

/// Data of a connection that is unassigned or unacknowledged, and the window that the peer offers for it.
///
/// A *unit* is what is assigned to a path as a whole: an SCTP chunk by its TSN, a Multipath TCP mapping by its number.
pub(crate) trait Outstanding {
    /// What the protocol keeps of each path.
    type Path: AsRef<TxPath> + AsMut<TxPath>;

    /// Whether the oldest unit may be sent again on the path that carries it.
    const REPEATS_ON_SAME_PATH: bool;

    /// What a scheduler sees, without the paths.
    fn view(
        &self,
        paths: &[Self::Path],
        now: Time,
        occasion: DecisionKind,
        sendable: u64,
        epoch: u64,
    ) -> View<'static>;

    /// The span rule: how many of the unassigned units lie, with all before them, within the buffer that the peer offered.
    fn within_window(&self, paths: &[Self::Path]) -> u64;

    /// Whether one unit may be sent although the peer's window has no room for it (RFC 9260, 6.1 A; RFC 9293, 3.8.6.1).
    fn may_probe_window(&self) -> bool;

    /// What the guard needs to know; whether the scheduler shares the window itself is left open.
    fn shared_window(&self) -> SharedWindow;

    /// The oldest unit that is not acknowledged, if it is in flight.
    fn oldest(&self, paths: &[Self::Path]) -> Option<Oldest>;

    /// Whether units wait to be sent again: then a new unit does not have to keep the connection going.
    fn has_lost(&self) -> bool;

    /// Whether it is the oldest unit that shuts the window, and nothing else is being done about it.
    fn is_blocked_by_oldest(&self) -> bool;

    /// The number of a unit, counted from 0 at the first of the connection.
    fn sequence(&self, unit: u64) -> u64;

    /// The peer's buffer, and the size of a full unit.
    fn budget(&self) -> Budget;
}

/// The oldest unit that is not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Oldest {
    /// The unit.
    pub unit: u64,
    /// The path that carries its last transmission.
    pub path: PathId,
    /// When that was sent; none if it is not known any more.
    pub sent_at: Option<Time>,
    /// How often it was sent.
    pub transmissions: u32,
}
