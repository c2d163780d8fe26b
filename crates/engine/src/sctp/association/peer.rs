//! What is known of the peer from its initiation.

use core::net::IpAddr;

use ropewalk_base::{Duration, PathId, PeerText};

use super::super::config::Config;
use super::super::extensions::Extensions;
use super::super::init::Init;
use super::State;
use crate::window::Guard;

/// The peer.
#[derive(Clone, Debug, Default)]
pub(super) struct Peer {
    /// The addresses that it listed.
    pub addresses: Vec<IpAddr>,
    /// The address that its initiation came from, if the driver has told.
    source: Option<IpAddr>,
    /// What both ends can do beyond RFC 9260.
    pub agreed: Extensions,
    /// Timestamps may go beside what is sent.
    pub takes_stamps: bool,
    /// How long it holds a SACK back at most. RFC 8985, 7.2 (WCDelAckT): 200 ms where nothing else is
    /// known, as RFC 9260, 6.2, allows; ends of our own have the same options.
    pub sack_delay: Duration,
    /// Why it aborted the association, in its user's words.
    pub abort_reason: Option<PeerText>,
}

impl Peer {
    /// As it said.
    pub fn of(init: &Init, config: &Config) -> Self {
        const WORST_CASE: Duration = Duration::from_millis(200);
        let agreed = config.agreed(init.extensions());
        let own = config.sack.delay;
        Self {
            addresses: init.addresses.clone(),
            source: None,
            agreed,
            takes_stamps: agreed.has(Extensions::DELAY),
            sack_delay: if agreed.has(Extensions::CMT) { own } else { own.max(WORST_CASE) },
            abort_reason: None,
        }
    }

    /// RFC 9260, 5.1.2: the address that an INIT or INIT ACK comes from belongs to the peer, as those do that
    /// the chunk lists.
    pub fn has(&self, address: &IpAddr) -> bool {
        self.addresses.contains(address) || self.source.as_ref() == Some(address)
    }
}

impl super::Association {
    /// Plain SCTP or CMT, as far as the peer announced it.
    pub(super) fn settle_multipath(&mut self) {
        self.config.cmt = self.own_cmt.towards(self.peer.agreed);
        self.sender.config.ack_delay = self.peer.sack_delay;
        // Without CMT nothing is sent again before the timer or three reports say so.
        let plain = self.own_cmt.if_agreed && !self.config.cmt.concurrent;
        self.sender.guard = Guard::new(self.config.guard && !plain);
    }

    /// The addresses that the peer listed when the association was set up; empty before, and if it
    /// has none but the one it sends from.
    pub fn peer_addresses(&self) -> &[IpAddr] {
        &self.peer.addresses
    }

    /// The peer's INIT, INIT ACK or COOKIE ECHO, which has just been taken, came from `source`: an address of
    /// the peer, whether it lists it or not (5.1.2).
    pub const fn set_peer_source(&mut self, source: IpAddr) {
        self.peer.source = Some(source);
    }

    /// Whether the peer has this address: it has listed it, or its initiation came from there.
    pub fn peer_has(&self, address: IpAddr) -> bool {
        self.peer.has(&address)
    }

    /// What both ends can do beyond RFC 9260.
    pub const fn agreed_extensions(&self) -> Extensions {
        self.peer.agreed
    }

    /// The verification tags: of packets to this end, and of packets to the peer (0: not known yet).
    pub const fn tags(&self) -> (u32, u32) {
        (self.local_tag, self.peer_tag)
    }

    /// Drops the paths that lead to no address of the peer, now that its initiation is known. The paths
    /// that stay are renumbered, in their order. What is queued for the others is dropped with them.
    ///
    /// RFC 9260, 5.1.2: only the addresses of the INIT or INIT ACK and its source are destinations. An address
    /// that the user named is none of these where the peer does not list it.
    ///
    /// Nothing changes once data is on its way, or where no path would stay.
    pub fn retain_paths(&mut self, keep: impl Fn(PathId) -> bool) {
        let kept: Vec<bool> = (0..self.paths.len()).map(|i| keep(PathId::from_index(i))).collect();
        if kept.iter().all(|kept| *kept)
            || !kept.contains(&true)
            || !self.outstanding.board.is_empty()
        {
            return;
        }
        let renumbered = |path: PathId| {
            let before = kept[..path.index()].iter().filter(|kept| **kept).count();
            kept[path.index()].then(|| PathId::from_index(before))
        };
        fn retain<T>(list: &mut Vec<T>, kept: &[bool]) {
            let mut kept = kept.iter();
            list.retain(|_| kept.next().is_some_and(|kept| *kept));
        }
        retain(&mut self.paths, &kept);
        retain(&mut self.config.paths, &kept);
        self.inbound.retain_paths(&kept);
        self.inbound.path = renumbered(self.inbound.path).unwrap_or(PathId(0));
        let queued = std::mem::take(&mut self.control).into_iter();
        let staying = queued.filter_map(|(path, tag, chunk)| Some((renumbered(path)?, tag, chunk)));
        self.control = staying.collect();
        if let State::CookieEchoed { path, .. } = &mut self.state {
            *path = renumbered(*path).unwrap_or(PathId(0));
        }
        self.primary = renumbered(self.primary).unwrap_or(PathId(0));
        self.settle_multipath();
        self.sender.forget_paths();
        self.start_congestion(self.outstanding.peer_rwnd);
        self.timers_moved = true;
    }
}
