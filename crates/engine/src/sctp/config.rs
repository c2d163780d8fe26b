//! Configuration of an association. Each option states its unit, its default and what changing it costs.

use core::net::{IpAddr, Ipv4Addr};

use ropewalk_base::{Duration, PathId, Seed};

use super::cause::ErrorCause;
use super::chunk::DelayStamp;
use super::extensions::Extensions;
use super::extensions::authentication::{AuthParameters, ChunkTypes, HmacList, SharedKeys};
use super::extensions::interleaving::StreamScheduler;
use super::extensions::stream_reconfiguration::AcceptedRequests;
use super::init::{Init, InitOptions};
pub use super::multipath_options::{CmtOptions, CwndUpdate, SackOptions};
use super::packet::{Packet, PacketForm};
use super::preset::Preset;
use super::tx::TxConfig;
use super::wire::kind;
use crate::congestion::{
    Congestion, CongestionControl, CongestionFlavour, CongestionOptions, CongestionVariants,
    IdleDecay, UnknownCongestion, WindowRounding, initial_window,
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
    /// In packets of the largest size, as in ns-2: `floor(buffer / packet)`.
    Packets,
}

/// How new data is checked against the peer's receive window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WindowCheck {
    /// The span rule: everything from the cumulative TSN to the end of the new data must fit into the receive
    /// buffer that the peer advertised. Data far ahead cannot use up the room of skipped data.
    #[default]
    Span,
    /// `rwnd - sum of unack_i` (Kuhn et al., 2014, Eq 1): data in flight, data held by the peer and the
    /// new data must fit into the buffer, regardless of their position in the stream. A scheduler that
    /// sends far ahead can fill the buffer with data that waits for chunks not sent yet. Then only one
    /// chunk per round trip gets through. For reproducing papers; real stacks should use the span rule.
    Unacknowledged,
}

/// Which extensions of RFC 9260 an endpoint announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Negotiation {
    /// No negotiation: both ends are assumed to support the same extensions and to have the same options, as
    /// in a simulation.
    #[default]
    Assumed,
    /// These extensions are listed, and those that the peer also lists are used. For real peers. Costs 4
    /// bytes plus one per extension in INIT and INIT ACK.
    Listed(Extensions),
}

/// The extensions that address reconfiguration lists in addition to AUTH.
const ADDRESS_RECONFIGURATION: Extensions = Extensions::ASCONF.and(Extensions::ASCONF_ACK);

/// All options of one endpoint of an association.
#[derive(Clone, Debug)]
pub struct Config {
    /// The paths, in the order of their identifiers; not empty.
    pub paths: Vec<PathConfig>,
    /// Own addresses to list in INIT and INIT ACK. `None`: a placeholder per path, for simulations, which
    /// have no addresses. Empty: the peer uses only the source address.
    pub addresses: Option<Vec<IpAddr>>,
    /// The extensions of RFC 9260 to announce.
    pub negotiation: Negotiation,
    /// Range of path MTU discovery (RFC 8899). Costs a few packets per path, and chunks of the smallest
    /// path's size. `None`: every path carries packets of its configured MTU.
    pub mtu_discovery: Option<MtuRange>,
    /// Explicit congestion notification, if the peer supports it: queues that mark packets instead of
    /// dropping them save retransmissions. Costs 8 bytes in SACKs after a mark, and 4 in INIT and INIT ACK to
    /// real peers.
    pub ecn: bool,
    /// Whether both ends count marked data instead of echoing marks, if both offer it (accurate ECN, an
    /// extension of this project). Requires `ecn`; scalable congestion control requires this option.
    /// Costs 12 bytes per SACK and path with marks.
    pub accurate_ecn: bool,
    /// Headers below SCTP, bytes: 20 for IPv4.
    pub lower_header: u32,
    /// The layout of packets on the wire. Both ends must agree.
    pub packet_form: PacketForm,
    /// Receive buffer, bytes.
    pub receive_buffer: u64,
    /// Part of the receive buffer that the advertised window excludes, bytes (0; at most half of the buffer).
    /// A sender may fill the window with new data before it retransmits lost data, which then still finds
    /// room. Without headroom, the data with the highest TSNs is dropped in this case and reported as
    /// missing (RFC 9260, 6.2). Some stacks do not expect this of a receiver and never retransmit it.
    /// Headroom costs memory, or window.
    pub window_headroom: u32,
    /// Unit of the receive window.
    pub window_unit: WindowUnit,
    /// How new data is checked against the peer's receive window.
    pub window_check: WindowCheck,
    /// Send buffer: maximum user data that is queued or unacknowledged, bytes.
    pub send_buffer: u64,
    /// Maximum user data that may be queued unsent: this many bytes, or the sum of all congestion windows
    /// if that is larger. New messages cannot overtake queued data, so applications with urgent messages
    /// set this limit. The cost is a shorter look-ahead of the scheduler. `None`: only `send_buffer` limits
    /// it.
    pub unsent_limit: Option<u64>,
    /// Extra room beyond a full send buffer for streams with little unsent data, bytes (0). A stream may
    /// use it while at most a quarter of it is occupied by unsent data of that stream. Without it, a
    /// message that is longer than the buffer delays the messages of all other streams until it has been
    /// acknowledged, whichever stream scheduler is used. Costs memory while it is in use.
    pub stream_reserve: u32,
    /// Whether abandoned messages are kept until the user takes them with
    /// [`Association::take_abandoned`](super::Association::take_abandoned). Otherwise they are only
    /// counted.
    pub reports_abandoned: bool,
    /// Maximum number of bytes of the peer's receive buffer that this end uses: it sends as if the peer's
    /// buffer had this size. `None`: all of it.
    pub peer_buffer_limit: Option<u64>,
    /// Number of streams in each direction.
    pub streams: u16,
    /// Number of inbound streams, if it differs.
    pub inbound_streams: Option<u16>,
    /// Interleave messages of different streams (I-DATA, RFC 8260), if the peer also lists it. A short
    /// message then does not wait for a long one that is being sent. Costs 4 bytes per chunk, and 2 in
    /// INIT and INIT ACK.
    pub interleaving: bool,
    /// The order in which messages of different streams are sent. With `interleaving`, streams switch
    /// after each chunk.
    pub stream_scheduler: StreamScheduler,
    /// Offer stream reconfiguration (RE-CONFIG, RFC 6525), which is used if the peer also lists it. Costs
    /// 1 byte in INIT and INIT ACK.
    pub reconfiguration: bool,
    /// Which requests of the peer to reset or add streams are performed (RFC 6525, 6.3.1).
    pub accepted_requests: AcceptedRequests,
    /// Maximum number of streams in each direction that requests of the peer may reach.
    pub stream_limit: u16,
    /// Report data that this end will not drop as non-renegable (NR-SACK,
    /// draft-natarajan-tsvwg-sctp-nrsack-08), if the peer also lists it. The sender then frees the data from
    /// its send buffer before it is acknowledged cumulatively, which helps a sender that is limited by its
    /// send buffer. Costs 4 bytes per SACK, and 1 in INIT and INIT ACK. In return, reported data keeps its
    /// room in the receive buffer.
    pub nr_sack: bool,
    /// Offer authenticated chunks (AUTH, RFC 4895), which are used if the peer also offers them. Costs 45
    /// bytes in INIT and INIT ACK, and 40 or 28 bytes in each packet that either end requires to be
    /// authenticated.
    pub authentication: bool,
    /// Offer address reconfiguration (ASCONF, RFC 5061), and with it authenticated chunks. It is used if
    /// the peer also offers it. Costs 55 bytes in INIT and INIT ACK.
    pub address_reconfiguration: bool,
    /// Chunk types that this end accepts only in authenticated packets, in addition to those of address
    /// reconfiguration (empty).
    pub authenticated_chunks: ChunkTypes,
    /// Algorithms that are offered for authenticated chunks.
    pub hmacs: HmacList,
    /// Adaptation layer indication for the peer's user (RFC 5061, 4.2.6). `None`: not sent.
    pub adaptation: Option<u32>,
    /// Endpoint pair shared keys of authenticated chunks: secrets that the peer also has (the empty key
    /// 0). The empty key protects only against attackers that have not seen the handshake.
    pub shared_keys: SharedKeys,
    /// Options for sending SACKs.
    pub sack: SackOptions,
    /// Concurrent multipath transfer.
    pub cmt: CmtOptions,
    /// The path for retransmissions.
    pub retransmission: RetransmissionPolicy,
    /// Loss detection. Detection by time with tail loss probes is faster at small windows; by miss
    /// indications it follows RFC 9260 and the papers.
    pub recovery: LossDetection,
    /// Miss indications before a fast retransmit (3), if they are counted.
    pub fast_retransmit_threshold: u32,
    /// Max.Burst: maximum number of packets sent in response to one event (4); 0: no limit.
    pub max_burst: u32,
    /// Reduce the window in proportion to delivered data after a loss (RFC 6937bis), instead of
    /// immediately, on paths with their own recovery state (CMT or RACK) whose congestion control does not
    /// pace.
    pub prr: bool,
    /// Pacing. `None`: data is sent as acknowledgements open the window.
    pub pacing: Option<Pacing>,
    /// RTO.Initial, RTO.Min and RTO.Max.
    pub rto: RtoLimits,
    /// Limits for the failure of paths.
    pub failure: FailureLimits,
    /// Association.Max.Retrans (10).
    pub association_max_retrans: u32,
    /// Whether `association_max_retrans` is multiplied by the number of paths (off). In an outage all
    /// paths time out, so with a common limit an association ends sooner the more paths it has.
    pub max_retrans_per_path: bool,
    /// Max.Init.Retransmits (8).
    pub max_init_retransmits: u32,
    /// HB.interval (30 s).
    pub heartbeat_interval: Duration,
    /// HB.Max.Burst: maximum number of HEARTBEATs per RTO to unconfirmed addresses (1); 0: no limit, so
    /// that all paths can be used after one round trip.
    pub heartbeat_burst: u32,
    /// Maximum interval between probes of a failed path (2 s). RFC 9260, 8.3, probes at its doubled RTO,
    /// up to a minute, plus HB.interval: the recovery of a path would be detected that late.
    pub probe_interval: Duration,
    /// Valid.Cookie.Life (60 s).
    pub cookie_life: Duration,
    /// Name of the congestion control in [`Congestion::NAMES`] (`rfc9260`); set it with
    /// [`Config::use_congestion`]. Coupled algorithms keep an association from taking more than one
    /// flow's share at a shared bottleneck, and cost throughput where paths do not share one.
    pub congestion: &'static str,
    /// The version of the algorithm.
    pub congestion_flavour: CongestionFlavour,
    /// Variants of single algorithms of congestion control.
    pub congestion_variants: CongestionVariants,
    /// Initial congestion window, bytes. `None`: that of the algorithm's standard.
    pub initial_window: Option<u64>,
    /// Initial slow-start threshold, bytes. `None`: the peer's receive window. RFC 9260, 7.2.1: SHOULD be
    /// arbitrarily high.
    pub initial_ssthresh: Option<u64>,
    /// Minimum slow-start threshold after a loss, in full chunks (4; algorithms of TCP: 2).
    pub min_ssthresh_chunks: u32,
    /// Maximum window increase per acknowledgement in slow start, in chunks (1; algorithms of TCP: 2).
    pub byte_counting_limit: u32,
    /// Let windows grow only if they were fully used.
    pub growth_when_full_only: bool,
    /// When the windows of idle paths decay.
    pub idle_decay: IdleDecay,
    /// Limit `partial_bytes_acked`, the credit towards the next increase in congestion avoidance, to one
    /// window (RFC 9260, 7.2.2; RFC 4960 lets it accumulate while the window is not full).
    pub partial_bytes_capped: bool,
    /// Whether congestion windows are rounded down to full chunks, as in throughput models.
    pub window_rounding: WindowRounding,
    /// Source of forward delays.
    pub delay_source: DelaySource,
    /// How receive buffer blocking is mitigated (default: not at all).
    pub mitigation: BlockingMitigation,
    /// Limits the growth of all windows together.
    pub window_manager: WindowManager,
    /// Keep a record of every decision for `explain`.
    pub record_decisions: bool,
}

impl Config {
    /// Creates the preset's configuration for `paths` paths and a receive buffer of `receive_buffer`
    /// bytes.
    ///
    /// # Panics
    /// If `paths` is empty.
    pub fn preset(preset: Preset, paths: Vec<PathConfig>, receive_buffer: u64) -> Self {
        assert!(!paths.is_empty(), "an association needs a path");
        preset.config(paths, receive_buffer)
    }

    /// Sets the congestion control and its associated parameters: `rfc9260` has a higher minimum
    /// threshold (4 chunks) and a slower start (1 chunk per SACK) than the algorithms of TCP (2 and 2).
    ///
    /// # Errors
    /// If the name is unknown; the error lists the known names and the nearest one. Nothing is changed then.
    pub fn use_congestion(
        &mut self,
        name: &str,
        flavour: CongestionFlavour,
    ) -> Result<(), UnknownCongestion> {
        let tcp = CongestionOptions { flavour, ..CongestionOptions::tcp(1) };
        let made = Congestion::from_name(name, &tcp, 0)?;
        self.congestion = made.name();
        self.congestion_flavour = flavour;
        if matches!(made, Congestion::Prague(_)) {
            (self.ecn, self.accurate_ecn) = (true, true);
        }
        if !matches!(made, Congestion::Rfc9260(_)) {
            let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
            self.min_ssthresh_chunks = count(tcp.min_ssthresh_units);
            self.byte_counting_limit = count(tcp.byte_counting_limit);
        }
        Ok(())
    }

    /// Creates the congestion control of an association. `peer_window`: the peer's receive window, bytes.
    /// `seed`: seed of its random numbers.
    ///
    /// # Panics
    /// If [`Config::congestion`] was set to a name that does not exist.
    ///
    /// `on_request`: the peer acknowledges on request. Each acknowledgement then covers many packets, and
    /// all of them increase the window (RFC 9002, 7.3.1).
    pub(super) fn start_congestion(
        &self,
        peer_window: u64,
        seed: Seed,
        on_request: bool,
    ) -> Congestion {
        let options = CongestionOptions {
            unit: self.chunk_limit() as u64,
            initial_window: self.initial_window,
            initial_ssthresh: self.initial_ssthresh.unwrap_or(peer_window),
            min_ssthresh_units: self.min_ssthresh_chunks.into(),
            byte_counting_limit: match on_request {
                true => CongestionOptions::UNLIMITED,
                false => self.byte_counting_limit.into(),
            },
            growth_when_full_only: self.growth_when_full_only,
            idle_decay: self.idle_decay,
            partial_bytes_capped: self.partial_bytes_capped,
            rounding: self.window_rounding,
            flavour: self.congestion_flavour,
            variants: self.congestion_variants,
            seed,
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

    /// Lifetime of a cookie for this peer. RFC 9260, 5.2.6: the peer may request a longer one, here by at
    /// most RTO.Max.
    pub(super) fn cookie_life_for(&self, peer: &Init) -> Duration {
        let asked = Duration::from_millis(peer.preserve_millis as u64);
        self.cookie_life + asked.min(self.rto.max)
    }

    /// The addresses to list. RFC 9260, 3.3.2.1.2: an IPv4-mapped IPv6 address MUST NOT be listed; use the
    /// IPv4 address.
    pub(super) fn listed_addresses(&self) -> Vec<IpAddr> {
        let stand_in = |path: usize| IpAddr::V4(Ipv4Addr::new(10, 0, path as u8, 1));
        match &self.addresses {
            Some(own) => own.iter().map(IpAddr::to_canonical).collect(),
            None => (0..self.paths.len()).map(stand_in).collect(),
        }
    }

    /// Maximum number of inbound streams.
    pub(super) fn inbound_streams(&self) -> u16 {
        self.inbound_streams.unwrap_or(self.streams)
    }

    /// The extensions to list.
    pub(super) const fn listed_extensions(&self) -> Extensions {
        match self.negotiation {
            Negotiation::Assumed => self.own_negotiated(),
            // ECN has its own parameter.
            Negotiation::Listed(ours) => {
                ours.and(self.own_ecn()).without(Extensions::ECN).and(self.own_negotiated())
            }
        }
    }

    /// The extensions that may be used with a peer that lists `theirs`.
    pub(super) const fn agreed(&self, theirs: Extensions) -> Extensions {
        match self.negotiation {
            Negotiation::Assumed => {
                Extensions::OFFERED.and(self.own_ecn()).and(self.own_negotiated().common(theirs))
            }
            Negotiation::Listed(ours) => {
                ours.and(self.own_ecn()).and(self.own_negotiated()).common(theirs)
            }
        }
    }

    /// Whether authenticated chunks are offered, on their own or for address reconfiguration.
    pub(super) const fn authenticates(&self) -> bool {
        self.authentication || self.address_reconfiguration
    }

    /// Parameters of INIT and INIT ACK beyond those of RFC 9260. `random`: the random number for
    /// authenticated chunks, if this chunk offers them.
    pub(super) fn own_options(&self, random: Option<[u8; 32]>) -> InitOptions {
        let random = random.filter(|_| self.authenticates());
        let mut extensions = self.listed_extensions();
        if random.is_none() {
            // RFC 5061, 4.2.7: ASCONF is not listed without AUTH.
            extensions = extensions.without(Extensions::AUTH.and(ADDRESS_RECONFIGURATION));
        }
        InitOptions {
            extensions,
            forward_tsn: extensions.has(Extensions::FORWARD_TSN),
            ecn: self.lists_ecn(),
            authentication: random.map(|random| Box::new(self.own_auth(random))),
            adaptation: self.adaptation,
            ..InitOptions::default()
        }
    }

    /// The parameters for authenticated chunks with this random number.
    pub(super) fn own_auth(&self, random: [u8; 32]) -> AuthParameters {
        let reconfiguration = match self.address_reconfiguration {
            true => ChunkTypes::ASCONF,
            false => ChunkTypes::NONE,
        };
        let types = self.authenticated_chunks.and(reconfiguration);
        AuthParameters::new(random, types, self.hmacs)
    }

    /// The error cause of the ABORT that refuses an INIT or INIT ACK because of its parameters for
    /// authenticated chunks. An end that does not offer authenticated chunks ignores the parameters.
    pub(super) fn auth_fault(&self, peer: &Init) -> Option<ErrorCause> {
        peer.options.authentication.as_ref().filter(|_| self.authenticates())?.fault()
    }

    /// The INIT for a cookie, without the unused parameters.
    pub(super) fn kept_in_cookie(&self, init: &Init) -> Init {
        let mut kept = init.clone();
        kept.options.authentication = kept.options.authentication.filter(|_| self.authenticates());
        kept
    }

    /// Whether peers without authenticated COOKIE ECHOs are refused.
    pub(super) fn requires_cookie_authentication(&self) -> bool {
        self.authenticates() && self.authenticated_chunks.has(kind::COOKIE_ECHO)
    }

    /// The extensions that are always negotiated.
    const fn own_negotiated(&self) -> Extensions {
        let mut all = self.own_interleaving();
        if self.authenticates() {
            all = all.and(Extensions::AUTH);
        }
        if self.address_reconfiguration {
            all = all.and(ADDRESS_RECONFIGURATION);
        }
        if self.reconfiguration {
            all = all.and(Extensions::RE_CONFIG);
        }
        if self.offers_sack_requests() {
            all = all.and(Extensions::REQUESTED_SACK);
        }
        if self.nr_sack { all.and(Extensions::NR_SACK) } else { all }
    }

    /// Whether SACKs on request are offered, with the other extensions of this project.
    const fn offers_sack_requests(&self) -> bool {
        let extends = match self.negotiation {
            Negotiation::Assumed => true,
            Negotiation::Listed(ours) => ours.has(Extensions::CMT),
        };
        self.sack.on_request && extends
    }

    /// Interleaving is always negotiated, because an end that does not expect I-DATA aborts the association. RFC 8260,
    /// 2.2.1: with partial reliability, I-FORWARD-TSN is listed as well.
    const fn own_interleaving(&self) -> Extensions {
        let partial = match self.negotiation {
            Negotiation::Assumed => true,
            Negotiation::Listed(ours) => ours.has(Extensions::FORWARD_TSN),
        };
        match (self.interleaving, partial) {
            (false, _) => Extensions::NONE,
            (true, false) => Extensions::I_DATA,
            (true, true) => Extensions::I_DATA.and(Extensions::I_FORWARD_TSN),
        }
    }

    const fn own_ecn(&self) -> Extensions {
        match (self.ecn, self.accurate_ecn) {
            (false, _) => Extensions::NONE,
            (true, false) => Extensions::ECN,
            (true, true) => Extensions::ECN.and(Extensions::MARK_COUNT),
        }
    }

    /// Whether ECN is offered to the peer.
    pub(super) const fn lists_ecn(&self) -> bool {
        self.ecn && matches!(self.negotiation, Negotiation::Listed(_))
    }

    /// Largest DATA chunk that fits into a packet on every path, bytes with its header.
    pub fn chunk_limit(&self) -> u32 {
        TxConfig::of(self).chunk_within(self.least_mtu())
    }

    /// Maximum user data of a datagram that fits into one packet on every path, bytes.
    pub fn datagram_limit(&self) -> u32 {
        TxConfig::of(self).chunk_sizes(self.least_mtu()).datagram
    }

    pub(super) fn least_mtu(&self) -> u32 {
        self.paths.iter().map(|p| p.mtu).min().unwrap_or(1500)
    }

    /// Size of packets before the path MTU of any path is confirmed, bytes.
    pub(super) fn first_mtu(&self) -> u32 {
        self.mtu_discovery.as_ref().map_or_else(|| self.least_mtu(), |range| range.base)
    }

    /// Bytes of a packet before its first chunk.
    pub(super) const fn headers(&self) -> u32 {
        self.lower_header + Packet::HEADER
    }

    /// Length of a packet on the wire, headers below SCTP included, bytes.
    #[inline]
    pub fn packet_len(&self, packet: &Packet) -> u32 {
        packet.wire_len_in(self.packet_form) + self.lower_header
    }

    /// Bytes of a packet with DATA before its first chunk.
    pub(super) const fn data_headers(&self) -> u32 {
        match self.packet_form {
            PacketForm::Standard => self.headers(),
            PacketForm::Compact => self.lower_header,
        }
    }

    /// Bytes of a packet that no DATA chunk may use.
    pub(super) const fn reserved(&self) -> u32 {
        self.data_headers() + if self.uses_stamps() { DelayStamp::WIRE_LEN } else { 0 }
    }

    /// Whether packets with DATA carry timestamps if the peer supports them.
    pub(super) const fn uses_stamps(&self) -> bool {
        let offered = match self.negotiation {
            Negotiation::Assumed => true,
            Negotiation::Listed(ours) => ours.has(Extensions::DELAY),
        };
        offered
            && matches!(
                (self.delay_source, self.packet_form),
                (DelaySource::Timestamp, PacketForm::Standard)
            )
    }

    /// Whether delays are measured by TSNs that the peer echoes.
    pub(super) const fn uses_echoed_tsns(&self) -> bool {
        matches!(
            (self.delay_source, self.packet_form),
            (DelaySource::Timestamp, PacketForm::Compact)
        )
    }

    /// Capacity of the receive buffer in the configured unit, bytes of chunks.
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
