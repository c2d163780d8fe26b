//! The knobs of a session. Each says its unit, its default and what turning it costs.

use ropewalk_base::Duration;

use super::chihani::Quirks;
use super::preset::Preset;
use super::segment;
use crate::congestion::{Congestion, CongestionFlavour, CongestionOptions, UnknownCongestion};
use crate::mptcp::reordering::{DSack, Eifel, FRto, SpuriousDetector, TcpDoor};
pub use crate::path::PathConfig;
use crate::path::{FailureLimits, RtoLimits, RtoRule};
use crate::scheduler::{BlockingMitigation, DelaySource};
use crate::window::WindowManager;

/// What a subflow's acknowledgement covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SubflowAck {
    /// What has arrived in order on the subflow (RFC 8684, 3.3.1).
    #[default]
    Independent,
    /// Only what is also in order at data level (Chihani and Collange, 2011): a difference in delay
    /// alone then makes duplicate acknowledgements on the faster subflow.
    DataGated,
}

/// When data that a subflow has sent is given to another one as well (RFC 8684, 3.3.6). It is sent
/// again on its own subflow in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reinjection {
    /// Never: a failed subflow stops the session.
    Never,
    /// When its timer expires.
    #[default]
    OnTimeout,
    /// As soon as it is found lost: quicker, and up to one copy more per loss.
    OnLoss,
}

/// What a sender does so as not to take reordering for loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reordering {
    /// Nothing: three duplicate acknowledgements, or as many selective ones, are a loss (RFC 6582,
    /// RFC 6675).
    None,
    /// The same, and a reduction is taken back once all that was sent again is reported to have come
    /// twice (RFC 3708). Needs selective acknowledgements.
    DSack,
    /// The same, and one is taken back when timestamps show that the original arrived (RFC 3522,
    /// RFC 4015). Needs timestamps.
    Eifel,
    /// The same, and transmissions and acknowledgements are numbered: while something overtakes
    /// something windows are kept, or restored (TCP-DOOR; Wang and Zhang, 2002). 8 B a segment.
    TcpDoor,
    /// The same, and timeouts that were too quick are found out (RFC 5682).
    FRto,
    /// Losses are found by time, and the tail is probed (RFC 8985); what was found too soon is taken back
    /// by duplicate reports or timestamps, whichever tells first.
    #[default]
    RackTlp,
}

/// All knobs of one end of a session.
#[derive(Clone, Debug)]
pub struct Config {
    /// The paths, in the order of their identifiers; not empty. A subflow each.
    pub paths: Vec<PathConfig>,
    /// Headers below TCP, bytes: 20 for IPv4.
    pub lower_header: u32,
    /// Multipath TCP; otherwise plain TCP over the first path.
    pub multipath: bool,
    /// Receive buffer, bytes; none: unbounded, and no flow control.
    pub receive_buffer: Option<u64>,
    /// Most data that waits unsent or unacknowledged, bytes.
    pub send_buffer: u64,
    /// What a subflow's acknowledgement covers.
    pub subflow_ack: SubflowAck,
    /// Sender and acknowledgements with the habits of the model of Chihani and Collange (none). What
    /// else is set here then counts only as far as the model knows it.
    pub quirks: Option<Quirks>,
    /// An acknowledgement for every so many segments (RFC 9293, 3.8.6.3: 2). 1 costs twice the
    /// acknowledgements and saves the wait for the timer at small windows.
    pub ack_every: u32,
    /// Or after this long (40 ms; at most 500 ms).
    pub ack_delay: Duration,
    /// The timestamps option: 12 B a segment; forward delays need it.
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018). Without them a window with several losses takes a
    /// round trip for each (RFC 6582).
    pub sack: bool,
    /// What is done about reordering.
    pub reordering: Reordering,
    /// Duplicate acknowledgements, or selective ones beyond, that make a loss (3), where they count.
    pub duplicate_threshold: u32,
    /// Timeout.
    pub rto: RtoLimits,
    /// How the timeout follows the round trips.
    pub rto_rule: RtoRule,
    /// Failure of paths.
    pub failure: FailureLimits,
    /// A failed subflow is tried again at least so often (2 s).
    pub probe_interval: Duration,
    /// Timeouts in a row over all subflows after which the session is given up (15).
    pub max_retransmissions: u32,
    /// SYNs that are sent again before a subflow, or the session, is given up (6).
    pub max_syn_retransmissions: u32,
    /// When data goes to a second subflow.
    pub reinjection: Reinjection,
    /// Congestion control by name ([`crate::congestion::Congestion::NAMES`]; `newreno`). Coupled
    /// algorithms take one flow's share of a bottleneck that all subflows share.
    pub congestion: &'static str,
    /// Whose rules it follows.
    pub congestion_flavour: CongestionFlavour,
    /// `cubic`: whether a flow that loses sooner than the last time leaves room to others (RFC 9438, 4.7).
    pub fast_convergence: bool,
    /// Initial window, bytes; none: that of RFC 6928.
    pub initial_window: Option<u64>,
    /// Initial slow-start threshold, bytes; none: without limit.
    pub initial_ssthresh: Option<u64>,
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
        assert!(!paths.is_empty(), "a session needs a path");
        preset.config(paths, receive_buffer)
    }

    /// Takes the congestion control of that name.
    ///
    /// # Errors
    /// If there is none; the error names those that exist, and the nearest. Nothing is changed then.
    pub fn use_congestion(&mut self, name: &str) -> Result<(), UnknownCongestion> {
        let options =
            CongestionOptions { flavour: self.congestion_flavour, ..CongestionOptions::tcp(1) };
        self.congestion = Congestion::from_name(name, &options, 0)?.name();
        Ok(())
    }

    /// Congestion control of a session at its start.
    ///
    /// # Panics
    /// If [`Config::congestion`] was set to a name that does not exist.
    pub(super) fn start_congestion(&self) -> Congestion {
        let options = CongestionOptions {
            initial_window: self.initial_window,
            initial_ssthresh: self.initial_ssthresh.unwrap_or(CongestionOptions::UNLIMITED),
            flavour: self.congestion_flavour,
            fast_convergence: self.fast_convergence,
            ..CongestionOptions::tcp(self.segment_limit() as u64)
        };
        let made = Congestion::from_name(self.congestion, &options, self.paths.len());
        made.expect("names are checked where they are set")
    }

    /// Largest payload of a segment that fits into a packet on every path, bytes.
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

    /// The rule that takes reductions back.
    pub(super) fn undo(&self) -> SpuriousDetector {
        match self.reordering {
            // The model has its own flavours.
            _ if self.quirks.is_some() => SpuriousDetector::None,
            Reordering::None => SpuriousDetector::None,
            Reordering::RackTlp => SpuriousDetector::Usual(DSack::default(), Eifel::default()),
            Reordering::DSack => SpuriousDetector::DSack(DSack::default()),
            Reordering::Eifel => SpuriousDetector::Eifel(Eifel::default()),
            Reordering::TcpDoor => SpuriousDetector::TcpDoor(TcpDoor::default()),
            Reordering::FRto => SpuriousDetector::FRto(FRto::default()),
        }
    }
}
