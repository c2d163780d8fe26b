//! Presets: named sets of options, for the RFC and for the simulator of the papers.

use ropewalk_base::Duration;

use super::config::{
    CmtOptions, Config, CwndUpdate, Negotiation, PathConfig, SackOptions, WindowCheck, WindowUnit,
};
use crate::congestion::{
    CongestionFlavour, CongestionOptions, CongestionVariants, IdleDecay, WindowRounding,
};
use crate::path::{FailureLimits, MtuRange, Pacing, RtoLimits};
use crate::recovery::LossDetection;
use crate::scheduler::{BlockingMitigation, DelaySource, RetransmissionPolicy};
use crate::sctp::extensions::authentication::{ChunkTypes, HmacList, SharedKeys};
use crate::sctp::extensions::interleaving::StreamScheduler;
use crate::sctp::extensions::stream_reconfiguration::AcceptedRequests;
use crate::sctp::packet::PacketForm;
use crate::window::WindowManager;

/// Limits of the RTO (RFC 9260, 16).
const RTO: RtoLimits = RtoLimits {
    initial: Duration::from_secs(1),
    min: Duration::from_secs(1),
    max: Duration::from_secs(60),
};

/// Default of [`Config::stream_limit`].
const STREAM_LIMIT: u16 = 1024;

/// A named set of options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Preset {
    /// RFC 9260 and the multipath draft, with time-based loss detection (RFC 8985). As published:
    /// [`LossDetection::MissingReports`].
    #[default]
    Rfc9260,
    /// For real paths: paced, with timers for today's networks, and with room for UDP and sealing in packets.
    Live,
    /// RFC 9260 on real paths: like `Live`, but with every MUST and the recommended parameters of the
    /// RFC, and without CMT towards a peer that does not announce it. Losses are detected by miss
    /// indications (7.2.4), windows start as in 7.2.1, Max.Burst limits bursts, and RTO.Min is one
    /// second.
    LiveRfc9260,
    /// ns-2's CMT-SCTP, used for the papers of 2013 and 2014: timers of RFC 4960, window counted in packets,
    /// no data before every path is confirmed, initial threshold equal to the receive window.
    Paper2013,
}

impl Preset {
    /// Headers of IPv4, UDP and sealing, bytes.
    pub const LIVE_LOWER_HEADER: u32 = 20 + 8 + 25;

    pub(super) fn config(self, paths: Vec<PathConfig>, receive_buffer: u64) -> Config {
        let rfc = Self::rfc9260(paths, receive_buffer);
        match self {
            Self::Rfc9260 => rfc,
            Self::Live => Self::live(rfc),
            Self::LiveRfc9260 => Self::live_rfc9260(rfc),
            Self::Paper2013 => Self::paper_2013(rfc),
        }
    }

    fn rfc9260(paths: Vec<PathConfig>, receive_buffer: u64) -> Config {
        let concurrent = paths.len() > 1;
        Config {
            paths,
            addresses: None,
            negotiation: Negotiation::Assumed,
            mtu_discovery: None,
            ecn: false,
            accurate_ecn: false,
            lower_header: 20,
            packet_form: PacketForm::Standard,
            receive_buffer,
            window_headroom: 0,
            window_unit: WindowUnit::Bytes,
            window_check: WindowCheck::Span,
            send_buffer: receive_buffer.saturating_mul(4).max(1 << 16),
            unsent_limit: None,
            stream_reserve: 0,
            reports_abandoned: false,
            peer_buffer_limit: None,
            streams: 1,
            inbound_streams: None,
            interleaving: false,
            reconfiguration: false,
            nr_sack: false,
            authentication: false,
            address_reconfiguration: false,
            authenticated_chunks: ChunkTypes::NONE,
            hmacs: HmacList::default(),
            adaptation: None,
            shared_keys: SharedKeys::default(),
            accepted_requests: AcceptedRequests::default(),
            stream_limit: STREAM_LIMIT,
            stream_scheduler: StreamScheduler::FirstCome,
            sack: Self::SACK,
            cmt: Self::cmt(concurrent),
            retransmission: RetransmissionPolicy::Fastest,
            recovery: LossDetection::RackTlp,
            fast_retransmit_threshold: 3,
            max_burst: 4,
            prr: false,
            pacing: None,
            rto: RTO,
            failure: FailureLimits { potentially_failed: 0, path_max_retrans: 5 },
            association_max_retrans: 10,
            max_retrans_per_path: false,
            max_init_retransmits: 8,
            heartbeat_interval: Duration::from_secs(30),
            heartbeat_burst: 0,
            probe_interval: Duration::from_secs(2),
            cookie_life: Duration::from_secs(60),
            congestion: "rfc9260",
            congestion_flavour: CongestionFlavour::Published,
            congestion_variants: CongestionVariants::STANDARD,
            initial_window: None,
            initial_ssthresh: None,
            min_ssthresh_chunks: 4,
            byte_counting_limit: 1,
            growth_when_full_only: true,
            idle_decay: IdleDecay::Heartbeat,
            partial_bytes_capped: true,
            window_rounding: WindowRounding::Bytes,
            delay_source: DelaySource::HalfRtt,
            mitigation: BlockingMitigation::default(),
            window_manager: WindowManager::None,
            record_decisions: false,
        }
    }

    const SACK: SackOptions = SackOptions {
        every_packets: 2,
        delay: Duration::from_millis(200),
        first_at_once: true,
        count_per_path: false,
        to_last: false,
        with_data: true,
        within_base: true,
        on_request: false,
    };

    const fn cmt(concurrent: bool) -> CmtOptions {
        CmtOptions {
            concurrent,
            if_agreed: false,
            split_fast_retransmit: true,
            cwnd_update: CwndUpdate::CucV2,
            delayed_ack: true,
            hold_data_until_confirmed: false,
        }
    }

    /// With a tolerated loss of 2 %, low-orbit and lossy links carry more than with the draft's 0. With
    /// brief probes of the round trip, paths carry 2 % more, and the other paths need not take over the
    /// data that a probing path cannot carry.
    const LIVE_VARIANTS: CongestionVariants = CongestionVariants {
        tolerated_loss_permille: 20,
        brief_probe_rtt: true,
        ..CongestionVariants::STANDARD
    };

    /// Windows and timers of current TCP (RFC 6928; Linux). With those of RFC 9260, the start of a path
    /// and each outage would cost a second.
    fn live(rfc: Config) -> Config {
        let largest = rfc.paths.iter().map(|p| p.mtu).min().unwrap_or(1500);
        Config {
            mtu_discovery: Some(Self::live_mtu(largest)),
            ecn: true,
            accurate_ecn: true,
            lower_header: Self::LIVE_LOWER_HEADER,
            packet_form: PacketForm::Compact,
            sack: SackOptions { delay: Duration::from_millis(40), on_request: true, ..rfc.sack },
            max_burst: 0,
            pacing: Some(Pacing::default()),
            congestion: "bbr",
            congestion_variants: Self::LIVE_VARIANTS,
            rto: RtoLimits { min: Duration::from_millis(250), ..rfc.rto },
            max_retrans_per_path: true,
            probe_interval: Duration::from_secs(1),
            initial_window: Some(10 * largest as u64),
            delay_source: DelaySource::Timestamp,
            ..rfc
        }
    }

    /// Packets and timestamps as for real paths, everything else as in the RFC.
    fn live_rfc9260(rfc: Config) -> Config {
        let CmtOptions { concurrent, hold_data_until_confirmed, .. } = rfc.cmt;
        let plain = Self::live(rfc.clone());
        Config {
            mtu_discovery: plain.mtu_discovery,
            lower_header: plain.lower_header,
            packet_form: plain.packet_form,
            delay_source: plain.delay_source,
            cmt: CmtOptions {
                concurrent,
                if_agreed: true,
                split_fast_retransmit: true,
                cwnd_update: CwndUpdate::CucV2,
                delayed_ack: true,
                hold_data_until_confirmed,
            },
            recovery: LossDetection::MissingReports,
            failure: FailureLimits { potentially_failed: u32::MAX, ..rfc.failure },
            // RFC 9260, 8.3: a failed path is probed at the same interval as an idle one.
            probe_interval: Duration::MAX,
            heartbeat_burst: 1,
            idle_decay: IdleDecay::Timeout,
            initial_ssthresh: Some(CongestionOptions::UNLIMITED),
            sack: SackOptions { within_base: false, ..rfc.sack },
            ..rfc
        }
    }

    /// The search starts at the minimum link MTU of IPv6 (RFC 8200, 5). The lower limit is the size that
    /// every IPv4 host accepts.
    fn live_mtu(most: u32) -> MtuRange {
        MtuRange { least: most.min(576), base: most.min(1280), most }
    }

    fn paper_2013(rfc: Config) -> Config {
        Config {
            window_unit: WindowUnit::Packets,
            recovery: LossDetection::MissingReports,
            cmt: CmtOptions {
                hold_data_until_confirmed: true,
                cwnd_update: CwndUpdate::CucV2,
                ..rfc.cmt
            },
            sack: SackOptions { first_at_once: false, to_last: true, with_data: false, ..rfc.sack },
            failure: FailureLimits { potentially_failed: u32::MAX, ..rfc.failure },
            rto: RtoLimits { initial: Duration::from_secs(3), ..rfc.rto },
            // ns-2 applies it only in the burst after a fast recovery.
            max_burst: 0,
            retransmission: RetransmissionPolicy::Cwnd,
            idle_decay: IdleDecay::Off,
            partial_bytes_capped: false,
            probe_interval: Duration::MAX,
            ..rfc
        }
    }
}
