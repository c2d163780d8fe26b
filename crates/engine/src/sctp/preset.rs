//! Named sets of knobs: the RFC, and what the papers' simulator did.

use ropewalk_base::Duration;

use super::config::{
    CmtOptions, Config, CwndUpdate, Offer, PathConfig, SackOptions, WindowCheck, WindowUnit,
};
use crate::congestion::{CongestionFlavour, CongestionOptions, IdleDecay, WindowRounding};
use crate::path::{FailureLimits, MtuRange, Pacing, RtoLimits};
use crate::recovery::LossDetection;
use crate::scheduler::{BlockingMitigation, DelaySource, RetransmissionPolicy};
use crate::window::WindowManager;

/// A named set of knobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Preset {
    /// RFC 9260 and the multipath draft, with losses found by time (RFC 8985). As published:
    /// [`LossDetection::MissingReports`].
    #[default]
    Rfc9260,
    /// What the runtime does on real paths, where datagrams come and go by the dozen: paced, with timers for
    /// today's networks, and packets with room for UDP and a seal.
    Live,
    /// RFC 9260 on real paths: as `Live`, but with every MUST and the recommended parameters of the RFC, and
    /// nothing of CMT towards a peer that does not announce it. Losses are found by reports (7.2.4), windows
    /// start from 7.2.1's, bursts from Max.Burst, the timeout from RTO.Min of a second.
    LiveRfc9260,
    /// What ns-2's CMT-SCTP does, with which the papers of 2013 and 2014 were made: RFC 4960's
    /// timers, window counted in packets, data held until every path is confirmed, initial
    /// threshold at the receive window, no guard unless asked for.
    Paper2013,
}

impl Preset {
    /// IPv4, UDP and the seal of the runtime, bytes.
    pub const LIVE_LOWER_HEADER: u32 = 20 + 8 + 26;

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
            offer: Offer::Assumed,
            mtu_discovery: None,
            ecn: false,
            lower_header: 20,
            receive_buffer,
            window_unit: WindowUnit::Bytes,
            window_check: WindowCheck::Span,
            send_buffer: receive_buffer.saturating_mul(4).max(1 << 16),
            unsent_limit: None,
            streams: 1,
            sack: SackOptions {
                every_packets: 2,
                delay: Duration::from_millis(200),
                first_at_once: true,
                count_per_path: false,
                to_last: false,
                with_data: true,
                within_base: true,
            },
            cmt: CmtOptions {
                concurrent,
                if_agreed: false,
                split_fast_retransmit: true,
                cwnd_update: CwndUpdate::CucV2,
                delayed_ack: true,
                hold_data_until_confirmed: false,
            },
            retransmission: RetransmissionPolicy::Fastest,
            recovery: LossDetection::RackTlp,
            fast_retransmit_threshold: 3,
            max_burst: 4,
            pacing: None,
            rto: RtoLimits {
                initial: Duration::from_secs(1),
                min: Duration::from_secs(1),
                max: Duration::from_secs(60),
            },
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
            fast_convergence: true,
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
            guard: true,
            window_manager: WindowManager::None,
            record_decisions: false,
        }
    }

    /// The windows and timers are TCP's of today (RFC 6928; Linux): with RFC 9260's the first second of a
    /// path would be lost to its start, and a second more to each cut.
    fn live(rfc: Config) -> Config {
        let largest = rfc.paths.iter().map(|p| p.mtu).min().unwrap_or(1500);
        Config {
            mtu_discovery: Some(Self::live_mtu(largest)),
            ecn: true,
            lower_header: Self::LIVE_LOWER_HEADER,
            sack: SackOptions { delay: Duration::from_millis(40), ..rfc.sack },
            max_burst: 0,
            pacing: Some(Pacing::default()),
            rto: RtoLimits { min: Duration::from_millis(250), ..rfc.rto },
            max_retrans_per_path: true,
            probe_interval: Duration::from_secs(1),
            initial_window: Some(10 * largest as u64),
            delay_source: DelaySource::Timestamp,
            ..rfc
        }
    }

    /// Packets and timestamps are those of real paths; the rest is the RFC's.
    fn live_rfc9260(rfc: Config) -> Config {
        let CmtOptions { concurrent, hold_data_until_confirmed, .. } = rfc.cmt;
        let plain = Self::live(rfc.clone());
        Config {
            mtu_discovery: plain.mtu_discovery,
            lower_header: plain.lower_header,
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
            // 8.3: a path that has failed is asked as seldom as one that is idle.
            probe_interval: Duration::MAX,
            heartbeat_burst: 1,
            idle_decay: IdleDecay::Timeout,
            initial_ssthresh: Some(CongestionOptions::UNLIMITED),
            sack: SackOptions { within_base: false, ..rfc.sack },
            ..rfc
        }
    }

    /// What IPv6 asks of every link (RFC 8200, 5) is where it begins; below it there is what IPv4 asks of
    /// every host.
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
            // Applied there only in the burst that follows a fast recovery.
            max_burst: 0,
            retransmission: RetransmissionPolicy::Cwnd,
            idle_decay: IdleDecay::Off,
            partial_bytes_capped: false,
            guard: false,
            probe_interval: Duration::MAX,
            ..rfc
        }
    }
}
