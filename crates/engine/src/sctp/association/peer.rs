//! What is known of the peer from its initiation.

use core::net::IpAddr;

use super::super::config::Config;
use super::super::extensions::Extensions;
use super::super::init::Init;

/// The peer.
#[derive(Clone, Debug, Default)]
pub(super) struct Peer {
    /// The addresses that it listed.
    pub addresses: Vec<IpAddr>,
    /// What both ends can do beyond RFC 9260.
    pub agreed: Extensions,
    /// Timestamps may go beside what is sent.
    pub takes_stamps: bool,
}

impl Peer {
    /// As it said.
    pub fn of(init: &Init, config: &Config) -> Self {
        let agreed = config.agreed(init.extensions());
        Self {
            addresses: init.addresses.clone(),
            agreed,
            takes_stamps: agreed.has(Extensions::DELAY),
        }
    }
}

impl super::Association {
    /// The addresses that the peer listed when the association was set up; empty before, and if it
    /// has none but the one it sends from.
    pub fn peer_addresses(&self) -> &[IpAddr] {
        &self.peer.addresses
    }

    /// What both ends can do beyond RFC 9260.
    pub const fn agreed_extensions(&self) -> Extensions {
        self.peer.agreed
    }

    /// The verification tags: of packets to this end, and of packets to the peer (0: not known yet).
    pub const fn tags(&self) -> (u32, u32) {
        (self.local_tag, self.peer_tag)
    }
}
