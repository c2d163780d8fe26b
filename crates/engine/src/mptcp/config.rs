//! Settings of a session, each with its unit, its default and its cost.

use ropewalk_base::{Duration, Seed};

use super::chihani::Quirks;
use super::preset::Preset;
use super::segment;
use crate::congestion::{
    Congestion, CongestionFlavour, CongestionOptions, CongestionVariants, UnknownCongestion,
    WindowRounding,
};
use crate::mptcp::reordering::{Reordering, SpuriousDetector};
use crate::mptcp::rx;
pub use crate::mptcp::rx::BufferSize;
pub use crate::path::PathConfig;
use crate::path::{FailureLimits, Pacing, RtoLimits, RtoRule};
use crate::scheduler::{BlockingMitigation, DelaySource};
use crate::window::WindowManager;

/// What a subflow's acknowledgement covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SubflowAck {
    /// Data that has arrived in order on the subflow (RFC 8684, 3.3.1).
    #[default]
    Independent,
    /// Only data that is also in order at data level (Chihani and Collange, 2011). A difference in delay
    /// alone then causes duplicate acknowledgements on the faster subflow.
    DataGated,
}

/// How the receive window follows from the receive buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReceiveRules {
    /// The buffer less the data that has not been read. Data out of order lies within the window, and the
    /// window is announced on all subflows when a gap is filled.
    #[default]
    Payload,
    /// The rules of Linux: memory of packets is charged, and each subflow announces its own window. See
    /// `rx/linux_window.rs`.
    Linux(BufferSize),
}

/// When data sent on one subflow is also sent on another one (RFC 8684, 3.3.6). Its original subflow
/// retransmits it in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reinjection {
    /// Never: a failed subflow stops the session.
    Never,
    /// When the retransmission timer expires.
    #[default]
    OnTimeout,
    /// As soon as the data is detected as lost: faster, with up to one additional copy per loss.
    OnLoss,
}

/// All settings of one end of a session.
#[derive(Clone, Debug)]
pub struct Config {
    /// The paths, in the order of their identifiers; not empty. Each has one subflow.
    pub paths: Vec<PathConfig>,
    /// Headers below TCP, bytes: 20 for IPv4.
    pub lower_header: u32,
    /// Multipath TCP; otherwise plain TCP over the first path.
    pub multipath: bool,
    /// Receive buffer, bytes. `None`: unbounded, without flow control.
    pub receive_buffer: Option<u64>,
    /// How the receive window follows from the buffer.
    pub receive_rules: ReceiveRules,
    /// Maximum data that is queued or unacknowledged, bytes.
    pub send_buffer: u64,
    /// What a subflow's acknowledgement covers.
    pub subflow_ack: SubflowAck,
    /// Sender and acknowledgements with the quirks of the model of Chihani and Collange (none). All other
    /// settings then apply only if the model supports them.
    pub quirks: Option<Quirks>,
    /// Segments per acknowledgement (2; RFC 9293, 3.8.6.3). 1 costs twice the acknowledgements and avoids the
    /// wait for the timer at small windows.
    pub ack_every: u32,
    /// Maximum delay of an acknowledgement (40 ms; at most 500 ms).
    pub ack_delay: Duration,
    /// Number of acknowledgements that are not delayed at the start of a subflow and after a pause of the
    /// peer (0; Linux: 16). They let the peer's window grow faster.
    pub quick_acks: u32,
    /// The timestamps option: 12 B per segment. Required for forward delays.
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018). Without them, recovery from several losses in a window takes a
    /// round trip per loss (RFC 6582).
    pub sack: bool,
    /// How reordering is handled.
    pub reordering: Reordering,
    /// Number of duplicate acknowledgements, or later selective ones, that count as a loss (3), if losses
    /// are detected by counting.
    pub duplicate_threshold: u32,
    /// Limits of the retransmission timeout.
    pub rto: RtoLimits,
    /// Computation of the retransmission timeout from round trips.
    pub rto_rule: RtoRule,
    /// Limits for the failure of paths.
    pub failure: FailureLimits,
    /// Maximum interval between two attempts on a failed subflow (2 s).
    pub probe_interval: Duration,
    /// Consecutive timeouts over all subflows after which the session ends (15).
    pub max_retransmissions: u32,
    /// SYN retransmissions after which a subflow, or the session, is given up (6).
    pub max_syn_retransmissions: u32,
    /// When data is sent on a second subflow.
    pub reinjection: Reinjection,
    /// Congestion control by name ([`crate::congestion::Congestion::NAMES`]; `newreno`). Coupled
    /// algorithms take the share of one flow at a bottleneck that all subflows share.
    pub congestion: &'static str,
    /// The rules that the congestion control follows.
    pub congestion_flavour: CongestionFlavour,
    /// Variants of single algorithms of congestion control.
    pub congestion_variants: CongestionVariants,
    /// Reduce the window in proportion to delivered data after a loss (RFC 6937bis), instead of
    /// immediately.
    pub prr: bool,
    /// Multipath TCP: bytes that are assigned to a subflow together. `None`: one segment. A segment that
    /// ends such a fragment or the receive window may be short. Linux: 32 704, the data of a page
    /// fragment of 32 KiB.
    pub fragment: Option<u64>,
    /// Nagle's algorithm in Minshall's variant: a short segment that is not followed by more data is not
    /// sent while an earlier short segment is unacknowledged.
    pub nagle: bool,
    /// Whether thresholds are rounded down to full packets, and only full packets of a congestion window
    /// may be in flight, as in Linux, which counts windows in packets. Otherwise the last packet may
    /// exceed the window.
    pub whole_packets: bool,
    /// Pacing. `None`: data is sent as acknowledgements open the window.
    pub pacing: Option<Pacing>,
    /// Initial window, bytes. `None`: that of RFC 6928.
    pub initial_window: Option<u64>,
    /// Initial slow-start threshold, bytes. `None`: unlimited.
    pub initial_ssthresh: Option<u64>,
    /// Source of forward delays.
    pub delay_source: DelaySource,
    /// Measures of the sender while the receive window is closed (none).
    pub mitigation: BlockingMitigation,
    /// Limit on the total growth of the windows of all paths.
    pub window_manager: WindowManager,
    /// Whether every decision is recorded for `explain`.
    pub record_decisions: bool,
}

impl Config {
    /// Creates the preset's configuration for `paths` paths and a receive buffer of `receive_buffer`
    /// bytes.
    ///
    /// # Panics
    /// If `paths` is empty.
    pub fn preset(preset: Preset, paths: Vec<PathConfig>, receive_buffer: u64) -> Self {
        assert!(!paths.is_empty(), "a session needs a path");
        preset.config(paths, receive_buffer)
    }

    /// Selects the congestion control of that name.
    ///
    /// # Errors
    /// If the name is unknown. The error lists the valid names and the nearest one, and nothing is
    /// changed.
    pub fn use_congestion(&mut self, name: &str) -> Result<(), UnknownCongestion> {
        let options =
            CongestionOptions { flavour: self.congestion_flavour, ..CongestionOptions::tcp(1) };
        self.congestion = Congestion::from_name(name, &options, 0)?.name();
        Ok(())
    }

    /// Congestion control of a session at its start. `seed`: seed of its random numbers.
    ///
    /// # Panics
    /// If [`Config::congestion`] was set to a name that does not exist.
    pub(super) fn start_congestion(&self, seed: Seed) -> Congestion {
        let rounding =
            if self.whole_packets { WindowRounding::Packets } else { WindowRounding::Bytes };
        let options = CongestionOptions {
            rounding,
            initial_window: self.initial_window,
            initial_ssthresh: self.initial_ssthresh.unwrap_or(CongestionOptions::UNLIMITED),
            flavour: self.congestion_flavour,
            variants: self.congestion_variants,
            seed,
            ..CongestionOptions::tcp(self.segment_limit() as u64)
        };
        let made = Congestion::from_name(self.congestion, &options, self.paths.len());
        made.expect("names are checked where they are set")
    }

    /// Maximum window that the receive buffer allows, bytes, `None` if unbounded.
    pub fn window_limit(&self) -> Option<u64> {
        let ReceiveRules::Linux(size) = self.receive_rules else { return self.receive_buffer };
        let packet = self.paths.iter().map(|path| path.mtu).min().unwrap_or(1500);
        Some(rx::window_limit(size, self.segment_limit(), packet))
    }

    /// Maximum payload of a segment that fits into a packet on every path, bytes.
    pub fn segment_limit(&self) -> u32 {
        let mtu = self.paths.iter().map(|p| p.mtu).min().unwrap_or(1500);
        let stamps = if self.timestamps { segment::STAMPS } else { 0 };
        let mapping = if self.multipath { segment::MAPPING } else { 0 };
        let order = if self.numbers() { segment::ORDER } else { 0 };
        mtu - self.lower_header - segment::HEADER - stamps - mapping - order
    }

    /// Whether transmissions and acknowledgements are numbered.
    pub(super) fn numbers(&self) -> bool {
        self.reordering == Reordering::TcpDoor && self.quirks.is_none()
    }

    /// The detector of spurious retransmissions.
    pub(super) fn undo(&self) -> SpuriousDetector {
        // The model has its own variants.
        if self.quirks.is_some() { SpuriousDetector::default() } else { self.reordering.detector() }
    }
}
