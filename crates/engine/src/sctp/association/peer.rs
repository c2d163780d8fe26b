//! The parameters that the peer announced in its INIT or INIT ACK.

use core::net::IpAddr;

use bytes::Bytes;
use ropewalk_base::{Duration, PathId};

use super::super::config::Config;
use super::super::extensions::Extensions;
use super::super::init::Init;
use super::super::rx::SackMode;
use super::super::tx::TxConfig;
use super::State;
use crate::multipath::PeerAcks;

/// The peer of an association.
///
/// `repr(C)` keeps the order of the fields, with those that every input accesses last.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Peer {
    /// The addresses that the peer listed.
    pub addresses: Vec<IpAddr>,
    /// Source address of its INIT, INIT ACK or COOKIE ECHO, if the driver has set it.
    source: Option<IpAddr>,
    /// Maximum delay of the peer's SACKs. RFC 8985, 7.2 (WCDelAckT): 200 ms if unknown, as RFC 9260, 6.2,
    /// allows. Peers with CMT have the same options as this end.
    pub sack_delay: Duration,
    /// The reason for which the peer's user aborted the association.
    pub abort_reason: Option<Box<Bytes>>,
    /// Extensions of RFC 9260 that both ends support.
    pub agreed: Extensions,
    /// Whether the peer accepts timestamp chunks.
    pub takes_stamps: bool,
    /// Whether the peer indicated its adaptation layer. Separate from `layer`, because an `Option` takes
    /// more space.
    says_layer: bool,
    /// Whether the peer holds few chunks beyond a missing one ([`FEW_CHUNKS`]).
    holds_few: bool,
    layer: u32,
}

/// While the stack of FreeBSD, and usrsctp, hold 512 chunks (`sctp_max_chunks_on_queue`), they drop each
/// I-DATA chunk that begins a message, even the missing one that would allow delivery. So they must never
/// hold that many.
const FEW_CHUNKS: u32 = 500;

impl Peer {
    /// The peer as announced in its INIT or INIT ACK.
    pub fn of(init: &Init, config: &Config) -> Self {
        const WORST_CASE: Duration = Duration::from_millis(200);
        let mut agreed = config.agreed(init.extensions());
        if !init.reconfigures_addresses(agreed) {
            agreed = agreed.without(Extensions::ASCONF.and(Extensions::ASCONF_ACK));
        }
        let own = config.sack.delay;
        Self {
            addresses: init.addresses.clone(),
            source: None,
            agreed,
            takes_stamps: agreed.has(Extensions::DELAY),
            sack_delay: if agreed.has(Extensions::CMT) { own } else { own.max(WORST_CASE) },
            says_layer: init.options.adaptation.is_some(),
            holds_few: Self::holds_few(init),
            layer: init.options.adaptation.unwrap_or_default(),
            abort_reason: None,
        }
    }

    /// Whether the sender of this INIT may be a stack that holds at most [`FEW_CHUNKS`]: of the stacks
    /// with interleaving, it is the only one that lists address reconfiguration by default.
    fn holds_few(init: &Init) -> bool {
        let offered = init.extensions();
        offered.has(Extensions::I_DATA.and(Extensions::ASCONF)) && !offered.has(Extensions::CMT)
    }

    /// All addresses: those listed, and the source.
    pub fn all(&self) -> Vec<IpAddr> {
        let unlisted = self.source.filter(|source| !self.addresses.contains(source));
        self.addresses.iter().copied().chain(unlisted).collect()
    }

    /// Adds an address that the peer does not have.
    pub fn add(&mut self, address: IpAddr) {
        self.addresses.push(address);
    }

    /// Removes an address.
    pub fn remove(&mut self, address: IpAddr) {
        self.addresses.retain(|known| *known != address);
        self.source = self.source.filter(|source| *source != address);
    }

    /// RFC 9260, 5.1.2: the source address of an INIT or INIT ACK belongs to the peer, like the addresses
    /// listed in the chunk.
    pub fn has(&self, address: &IpAddr) -> bool {
        self.addresses.contains(address) || self.source.as_ref() == Some(address)
    }
}

impl super::Association {
    /// Enables CMT or falls back to RFC 9260, depending on what the peer announced.
    pub(super) fn settle_multipath(&mut self) {
        self.config.cmt = self.handshake.own_cmt.towards(self.handshake.peer.agreed);
        let on_request = self.handshake.peer.agreed.has(Extensions::REQUESTED_SACK);
        let delay = self.handshake.peer.sack_delay;
        self.sender.config.peer_acks = PeerAcks { delay, on_request };
        self.apply_config();
    }

    /// How the peer's data is acknowledged.
    fn sack_mode(&self) -> SackMode {
        let cmt = self.config.cmt;
        if self.sender.config.peer_acks.on_request {
            SackMode::OnRequest
        } else if cmt.concurrent && cmt.delayed_ack {
            SackMode::Cmt
        } else {
            SackMode::Standard
        }
    }

    /// Applies changed configuration to the parts of the association.
    pub(super) fn apply_config(&mut self) {
        let peer = &self.handshake.peer;
        let all = TxConfig::of(&self.config);
        let few = peer.holds_few && peer.agreed.has(Extensions::I_DATA);
        self.sender.outstanding.config = TxConfig {
            most_outstanding: if few { FEW_CHUNKS } else { all.most_outstanding },
            stamps: self.config.uses_stamps() && peer.takes_stamps,
            records_times: self.config.uses_echoed_tsns() && peer.takes_stamps,
            pieces: peer.agreed.has(Extensions::DATA_FRAGMENT),
            abandons: peer.agreed.abandons(),
            interleaves: peer.agreed.has(Extensions::I_DATA),
            ..all
        };
        if let Some(auth) = self.handshake.auth.as_ref().filter(|auth| auth.covers_much()) {
            self.sender.outstanding.config.reserve(auth.chunk_len());
        }
        self.sender.outstanding.bursts_spent = true;
        let mode = self.sack_mode();
        self.receiver.set_mode(mode, self.reports_non_renegable());
        self.control.heartbeats.interval = self.config.heartbeat_interval;
        self.control.heartbeats.burst = self.config.heartbeat_burst;
    }

    /// The addresses that the peer listed in the handshake. Empty before it, and if the peer uses only its
    /// source address.
    pub fn peer_addresses(&self) -> &[IpAddr] {
        &self.handshake.peer.addresses
    }

    /// Sets the source of the INIT, INIT ACK or COOKIE ECHO that was just processed. It is an address of the
    /// peer, whether listed or not (RFC 9260, 5.1.2).
    pub const fn set_peer_source(&mut self, source: IpAddr) {
        self.handshake.peer.source = Some(source);
    }

    /// Whether this is an address of the peer: listed, or the source of its INIT, INIT ACK or COOKIE ECHO.
    pub fn peer_has(&self, address: IpAddr) -> bool {
        self.handshake.peer.has(&address)
    }

    /// The peer's adaptation layer indication (RFC 5061, 4.2.6), `None` before the handshake and if the
    /// peer sent none.
    pub fn peer_adaptation(&self) -> Option<u32> {
        let peer = &self.handshake.peer;
        peer.says_layer.then_some(peer.layer)
    }

    /// Extensions of RFC 9260 that both ends support.
    pub const fn agreed_extensions(&self) -> Extensions {
        self.handshake.peer.agreed
    }

    /// The verification tags of received packets and of sent packets (0: not known yet).
    pub const fn tags(&self) -> (u32, u32) {
        (self.handshake.local_tag, self.handshake.peer_tag)
    }

    /// Drops the paths that lead to no address of the peer, once its addresses are known. The other paths
    /// are renumbered in their order. Chunks queued for dropped paths are dropped with them.
    ///
    /// RFC 9260, 5.1.2: only the addresses in the INIT or INIT ACK and its source address are
    /// destinations. This excludes addresses that the user named but the peer does not list.
    ///
    /// Does nothing while data is outstanding or if no path would be left.
    pub fn retain_paths(&mut self, keep: impl Fn(PathId) -> bool) {
        let kept: Vec<bool> =
            (0..self.sender.paths.len()).map(|i| keep(PathId::from_index(i))).collect();
        if kept.iter().all(|kept| *kept)
            || !kept.contains(&true)
            || !self.sender.outstanding.board.is_empty()
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
        retain(&mut self.sender.paths, &kept);
        retain(&mut self.config.paths, &kept);
        let newest = renumbered(self.receiver.acks.path()).unwrap_or(PathId(0));
        self.receiver.acks.retain_paths(&kept, newest);
        self.control.heartbeats.retain_paths(&kept);
        self.control.queue.renumber(renumbered);
        if let State::CookieEchoed { path, .. } = &mut self.state {
            *path = renumbered(*path).unwrap_or(PathId(0));
        }
        if let Some(reconfiguration) = &mut self.control.reconfiguration {
            reconfiguration.requester.renumber(renumbered);
        }
        if let Some(addresses) = &mut self.control.addresses {
            addresses.renumber(renumbered);
        }
        self.sender.outstanding.primary =
            renumbered(self.sender.outstanding.primary).unwrap_or(PathId(0));
        self.settle_multipath();
        self.sender.forget_paths();
        self.start_congestion(self.sender.outstanding.peer_rwnd);
        self.sender.outstanding.deadline.invalidate();
    }
}
