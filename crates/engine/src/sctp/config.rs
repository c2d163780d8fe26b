//! The knobs of an association. Each says its unit, its default and what turning it costs.

use core::net::{IpAddr, Ipv4Addr};

use ropewalk_base::{Duration, PathId};

use super::extensions::Extensions;
use super::init::Init;
use super::preset::Preset;
use crate::congestion::{
    Congestion, CongestionControl, CongestionFlavour, CongestionOptions, IdleDecay,
    UnknownCongestion, WindowRounding, initial_window,
};
pub use crate::path::PathConfig;
use crate::path::{FailureLimits, MtuRange, Pacing, RtoLimits};
use crate::recovery::LossDetection;
use crate::scheduler::{BlockingMitigation, DelaySource, RetransmissionPolicy};
use crate::window::WindowManager;

/// How the receive window is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WindowUnit {
    /// In bytes of chunks.
    #[default]
    Bytes,
    /// In whole packets of the largest size, as ns-2 does: `floor(buffer / packet)`.
    Packets,
}

/// What new data is checked against the peer's receive window with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WindowCheck {
    /// The span rule: everything from the cumulative acknowledgement to the end of the new data
    /// fits into the buffer that the peer offered. Data from far ahead cannot take the room of the data
    /// that was skipped.
    #[default]
    Span,
    /// `rwnd - sum of unack_i` (Kuhn et al., 2014, Eq 1): what is in flight or held by the peer, the
    /// new data included, fits into the buffer, wherever it lies in the stream. A scheduler that sends
    /// ahead of the order can fill the buffer with data that waits for what was not sent; one chunk per
    /// round trip then gets through. For reproducing papers; a stack should use the span.
    Unacknowledged,
}

/// When a path's window may grow (Iyengar et al., 2006, CUC).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CwndUpdate {
    /// Only when the association's cumulative acknowledgement moves (plain SCTP).
    Off,
    /// When the path's pseudo-cumulative TSN is acknowledged: the oldest outstanding there when it
    /// was looked for. If that is lost and sent again on another path, this path's window is frozen
    /// until something sent here is acknowledged cumulatively.
    Cuc,
    /// When the oldest transmission outstanding on the path is acknowledged, or the cumulative TSN
    /// moves: what was lost is no longer looked for where it was lost, so that a redirected
    /// retransmission freezes nothing.
    #[default]
    CucV2,
}

/// Acknowledging.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SackOptions {
    /// A SACK for every so many packets with DATA (RFC 9260, 6.2: 2). 1 costs twice the SACKs and
    /// saves the wait for the timer at small windows.
    pub every_packets: u32,
    /// Or after this long (200 ms; longer than 500 ms is taken for 500 ms).
    pub delay: Duration,
    /// The first DATA of an association is acknowledged at once (RFC 9260, 5.1: MUST). Off: as in simulators that the
    /// papers used.
    pub first_at_once: bool,
    /// Count packets per path instead of per association.
    pub count_per_path: bool,
    /// A SACK goes to the address that the last packet came from, and not to the quickest of those that
    /// it answers.
    pub to_last: bool,
    /// A SACK that is owed travels with DATA that leaves for the same address, where the packet has room for
    /// both (RFC 9260, 6.1). Saves a packet where both ends send; a packet with a SACK holds less data.
    pub with_data: bool,
    /// A SACK is no longer than the base of path MTU discovery: one that is lost for its length is never repeated, and
    /// some three hundred gap blocks are enough. Off: as many as fit into what the path carries (RFC 9260, 6.2: MUST).
    pub within_base: bool,
}

/// Concurrent multipath transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CmtOptions {
    /// Send on all paths at once. Off: plain SCTP, the primary path and failover.
    pub concurrent: bool,
    /// Plain SCTP towards a peer that does not announce CMT (RFC 9260, 6.4: an endpoint SHOULD transmit to the
    /// primary path). Off: data goes by all paths to any peer, whose SACKs tell of the reordering at once.
    pub if_agreed: bool,
    /// Split fast retransmit: reordering between paths is no sign of loss.
    pub split_fast_retransmit: bool,
    /// When windows grow.
    pub cwnd_update: CwndUpdate,
    /// Delayed acknowledgement for CMT: a gap alone is no reason to acknowledge at once.
    pub delayed_ack: bool,
    /// Send no data before every path is confirmed.
    pub hold_data_until_confirmed: bool,
}

impl CmtOptions {
    /// What of this may be used with a peer with which `agreed` was negotiated.
    pub(super) const fn towards(self, agreed: Extensions) -> Self {
        if agreed.has(Extensions::CMT) {
            return self;
        }
        if !self.if_agreed {
            return Self { delayed_ack: false, ..self };
        }
        Self {
            concurrent: false,
            split_fast_retransmit: false,
            cwnd_update: CwndUpdate::Off,
            delayed_ack: false,
            ..self
        }
    }
}

/// What an end says that it can do beyond RFC 9260.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Offer {
    /// Nothing is said and all is taken for granted: both ends are this engine with the same knobs, as
    /// in a simulation.
    #[default]
    Assumed,
    /// These are listed, and of them what the peer lists too is used: for real peers. Costs 4 bytes
    /// and one for each in INIT and INIT ACK.
    Listed(Extensions),
}

/// All knobs of one end of an association.
#[derive(Clone, Debug)]
pub struct Config {
    /// The paths, in the order of their identifiers; not empty.
    pub paths: Vec<PathConfig>,
    /// Own addresses to list in INIT and INIT ACK; none: a stand-in for each path, as a simulation
    /// needs, which has no addresses. Empty: the peer is to use only the one that it sees.
    pub addresses: Option<Vec<IpAddr>>,
    /// What is offered to the peer beyond RFC 9260.
    pub offer: Offer,
    /// Path MTU discovery (RFC 8899) between these sizes; none: every path carries what its own
    /// configuration says. Costs a few packets per path, and chunks of the smallest path's size.
    pub mtu_discovery: Option<MtuRange>,
    /// Explicit congestion notification, if the peer can do it too: queues that mark packets instead of dropping
    /// them save retransmissions. Costs 8 bytes in SACKs after a mark, and 4 in INIT and INIT ACK to
    /// real peers.
    pub ecn: bool,
    /// Headers below SCTP, bytes: 20 for IPv4.
    pub lower_header: u32,
    /// Receive buffer, bytes.
    pub receive_buffer: u64,
    /// How it is counted.
    pub window_unit: WindowUnit,
    /// What new data is checked against the peer's window with.
    pub window_check: WindowCheck,
    /// Most user data that waits unsent or unacknowledged, bytes.
    pub send_buffer: u64,
    /// Most of it that may wait unsent: so many bytes, or as many as all congestion windows together if
    /// that is more. What waits is out of reach for whoever hands it over, so one who has something
    /// more urgent now and then sets it, and pays with a scheduler that looks less far ahead. None: no
    /// limit but `send_buffer`.
    pub unsent_limit: Option<u64>,
    /// Streams each way.
    pub streams: u16,
    /// Acknowledging.
    pub sack: SackOptions,
    /// Multipath.
    pub cmt: CmtOptions,
    /// Where lost chunks go.
    pub retransmission: RetransmissionPolicy,
    /// How losses are found. By time and with probes of the tail they are found sooner where windows
    /// are small; by reports they are found as RFC 9260 and the papers have it.
    pub recovery: LossDetection,
    /// Missing reports before a fast retransmit (3), where reports are counted.
    pub fast_retransmit_threshold: u32,
    /// Packets sent at most in answer to one input (Max.Burst, 4); 0: no limit.
    pub max_burst: u32,
    /// Pacing; none: windows leave as acknowledgements open them.
    pub pacing: Option<Pacing>,
    /// Timeout.
    pub rto: RtoLimits,
    /// Failure of paths.
    pub failure: FailureLimits,
    /// Association.Max.Retrans (10).
    pub association_max_retrans: u32,
    /// Whether that limit holds for each path, so that n paths permit n times as many timeouts (off). All paths
    /// time out in one outage: with one limit for all, a bundle ends the sooner the more paths it has.
    pub max_retrans_per_path: bool,
    /// Max.Init.Retransmits (8).
    pub max_init_retransmits: u32,
    /// HB.interval (30 s).
    pub heartbeat_interval: Duration,
    /// HB.Max.Burst: so many HEARTBEATs per timeout to addresses that are not confirmed (1); 0: no limit, so that all
    /// paths can be used after one round trip.
    pub heartbeat_burst: u32,
    /// A path that has failed is asked at least so often (2 s). RFC 9260, 8.3, asks at its doubled timeout, up
    /// to a minute, plus HB.interval: bundles would miss the return of a path for as long.
    pub probe_interval: Duration,
    /// Valid.Cookie.Life (60 s).
    pub cookie_life: Duration,
    /// Congestion control, by its name in [`Congestion::NAMES`] (`rfc9260`); to be set by
    /// [`Config::use_congestion`]. Coupled algorithms keep a bundle from taking more than one flow
    /// where its paths share a bottleneck, and cost throughput where they do not.
    pub congestion: &'static str,
    /// Whose rules it follows.
    pub congestion_flavour: CongestionFlavour,
    /// `cubic`: whether a flow that loses sooner than the last time leaves room to others (RFC 9438, 4.7).
    pub fast_convergence: bool,
    /// Initial window, bytes; none: that of the algorithm's standard.
    pub initial_window: Option<u64>,
    /// Initial slow-start threshold, bytes; none: the peer's receive window. RFC 9260, 7.2.1: SHOULD be arbitrarily
    /// high.
    pub initial_ssthresh: Option<u64>,
    /// Least slow-start threshold after a loss, in largest chunks (4; TCP's algorithms: 2).
    pub min_ssthresh_chunks: u64,
    /// Most chunks by which one acknowledgement opens the window in slow start (1; TCP's algorithms: 2).
    pub byte_counting_limit: u64,
    /// Windows grow only when they were full.
    pub growth_when_full_only: bool,
    /// When idle windows decay.
    pub idle_decay: IdleDecay,
    /// The credit towards the next growth in congestion avoidance never exceeds a window
    /// (RFC 9260, 7.2.2; RFC 4960 lets it pile up while the window is not full).
    pub partial_bytes_capped: bool,
    /// Whether congestion windows are cut to whole chunks, as throughput models count.
    pub window_rounding: WindowRounding,
    /// Where forward delays come from.
    pub delay_source: DelaySource,
    /// What helps the scheduler while the receive window is shut; default nothing.
    pub mitigation: BlockingMitigation,
    /// The receive-window guard.
    pub guard: bool,
    /// How far windows may grow together.
    pub window_manager: WindowManager,
    /// Keep a record of every decision for `explain`.
    pub record_decisions: bool,
}

impl Config {
    /// The preset's values for `paths` paths and a receive buffer of `receive_buffer` bytes.
    ///
    /// # Panics
    /// If `paths` is empty.
    pub fn preset(preset: Preset, paths: Vec<PathConfig>, receive_buffer: u64) -> Self {
        assert!(!paths.is_empty(), "an association needs a path");
        preset.config(paths, receive_buffer)
    }

    /// Takes the congestion control of that name, and the values that go with it: SCTP's own has a
    /// higher floor (4 chunks) and a slower start (1 chunk per SACK) than TCP's (2 and 2).
    ///
    /// # Errors
    /// If there is none; the error names those that exist, and the nearest. Nothing is changed then.
    pub fn use_congestion(
        &mut self,
        name: &str,
        flavour: CongestionFlavour,
    ) -> Result<(), UnknownCongestion> {
        let tcp = CongestionOptions { flavour, ..CongestionOptions::tcp(1) };
        let made = Congestion::from_name(name, &tcp, 0)?;
        self.congestion = made.name();
        self.congestion_flavour = flavour;
        if !matches!(made, Congestion::Rfc9260(_)) {
            self.min_ssthresh_chunks = tcp.min_ssthresh_units;
            self.byte_counting_limit = tcp.byte_counting_limit;
        }
        Ok(())
    }

    /// Congestion control of an association at its start, with the peer's window, bytes.
    ///
    /// # Panics
    /// If [`Config::congestion`] was set to a name that does not exist.
    pub(super) fn start_congestion(&self, peer_window: u64) -> Congestion {
        let options = CongestionOptions {
            unit: self.chunk_limit() as u64,
            initial_window: self.initial_window,
            initial_ssthresh: self.initial_ssthresh.unwrap_or(peer_window),
            min_ssthresh_units: self.min_ssthresh_chunks,
            byte_counting_limit: self.byte_counting_limit,
            growth_when_full_only: self.growth_when_full_only,
            idle_decay: self.idle_decay,
            partial_bytes_capped: self.partial_bytes_capped,
            rounding: self.window_rounding,
            flavour: self.congestion_flavour,
            fast_convergence: self.fast_convergence,
        };
        let made = Congestion::from_name(self.congestion, &options, self.paths.len());
        let mut made = made.expect("names are checked where they are set");
        if matches!(made, Congestion::Rfc9260(_)) && self.initial_window.is_none() {
            let ipv6 = (0..self.paths.len()).filter(|i| self.paths[*i].ipv6);
            ipv6.for_each(|i| {
                made.limit(PathId::from_index(i), initial_window(options.unit, true))
            });
        }
        made
    }

    /// How long a cookie for this peer lives: as long as it asked for, within reason (5.2.6): no
    /// longer than a timeout may be beyond what is usual.
    pub(super) fn cookie_life_for(&self, peer: &Init) -> Duration {
        let asked = Duration::from_millis(peer.preserve_millis as u64);
        self.cookie_life + asked.min(self.rto.max)
    }

    /// The addresses to list. RFC 9260, 3.3.2.1.2: an IPv4 address is never given as one of IPv6 that is mapped to it.
    pub(super) fn listed_addresses(&self) -> Vec<IpAddr> {
        let stand_in = |path: usize| IpAddr::V4(Ipv4Addr::new(10, 0, path as u8, 1));
        match &self.addresses {
            Some(own) => own.iter().map(IpAddr::to_canonical).collect(),
            None => (0..self.paths.len()).map(stand_in).collect(),
        }
    }

    /// The extensions to list.
    pub(super) const fn listed_extensions(&self) -> Extensions {
        match self.offer {
            Offer::Assumed => Extensions::NONE,
            Offer::Listed(extensions) => extensions,
        }
    }

    /// What may be used with a peer that lists `theirs`.
    pub(super) const fn agreed(&self, theirs: Extensions) -> Extensions {
        match self.offer {
            Offer::Assumed => Extensions::OURS.and(self.own_ecn()),
            Offer::Listed(ours) => ours.and(self.own_ecn()).common(theirs),
        }
    }

    const fn own_ecn(&self) -> Extensions {
        if self.ecn { Extensions::ECN } else { Extensions::NONE }
    }

    /// Whether ECN is offered to the peer.
    pub(super) const fn lists_ecn(&self) -> bool {
        self.ecn && matches!(self.offer, Offer::Listed(_))
    }

    /// Largest DATA chunk that fits into a packet on every path, bytes with its header.
    pub fn chunk_limit(&self) -> u32 {
        self.chunk_within(self.paths.iter().map(|p| p.mtu).min().unwrap_or(1500))
    }

    /// Largest DATA chunk before anything is known of the paths, bytes with its header.
    pub(super) fn first_chunk_limit(&self) -> u32 {
        match &self.mtu_discovery {
            None => self.chunk_limit(),
            Some(range) => self.chunk_within(range.base),
        }
    }

    /// Largest DATA chunk in a packet of `mtu` bytes.
    pub(super) fn chunk_within(&self, mtu: u32) -> u32 {
        let stamp = if self.delay_source == DelaySource::Timestamp { 12 } else { 0 };
        let room = mtu - self.lower_header - super::Packet::HEADER - stamp;
        room / 4 * 4
    }

    /// The receive buffer as it is counted, bytes of chunks.
    pub fn receive_capacity(&self) -> u64 {
        match self.window_unit {
            WindowUnit::Bytes => self.receive_buffer,
            WindowUnit::Packets => {
                let mtu = self.paths.iter().map(|p| p.mtu).min().unwrap_or(1500);
                self.receive_buffer / mtu as u64 * self.chunk_limit() as u64
            }
        }
    }
}
