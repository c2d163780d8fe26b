//! What is known of the peer from its initiation.

use core::net::IpAddr;

use ropewalk_base::{Duration, PeerText};

use super::super::config::Config;
use super::super::extensions::Extensions;
use super::super::init::Init;
use crate::window::Guard;

/// The peer.
#[derive(Clone, Debug, Default)]
pub(super) struct Peer {
    /// The addresses that it listed.
    pub addresses: Vec<IpAddr>,
    /// What both ends can do beyond RFC 9260.
    pub agreed: Extensions,
    /// Timestamps may go beside what is sent.
    pub takes_stamps: bool,
    /// Why it aborted the association, in its user's words.
    pub abort_reason: Option<PeerText>,
}

impl Peer {
    /// As it said.
    pub fn of(init: &Init, config: &Config) -> Self {
        let agreed = config.agreed(init.extensions());
        Self {
            addresses: init.addresses.clone(),
            agreed,
            takes_stamps: agreed.has(Extensions::DELAY),
            abort_reason: None,
        }
    }
}

impl super::Association {
    /// Plain SCTP or CMT, as far as the peer announced it.
    pub(super) fn settle_multipath(&mut self) {
        self.config.cmt = self.own_cmt.towards(self.peer.agreed);
        // Without CMT nothing is sent again before the timer or three reports say so.
        let plain = self.own_cmt.if_agreed && !self.config.cmt.concurrent;
        self.guard = Guard::new(self.config.guard && !plain);
    }

    /// How long the peer holds a SACK back at most. RFC 8985, 7.2 (WCDelAckT): 200 ms where nothing else is
    /// known, as RFC 9260, 6.2, allows; ends of our own have the same options.
    #[inline]
    pub(super) fn peer_sack_delay(&self) -> Duration {
        const WORST_CASE: Duration = Duration::from_millis(200);
        let own = self.config.sack.delay;
        if self.peer.agreed.has(Extensions::CMT) { own } else { own.max(WORST_CASE) }
    }

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
