//! `[sctp]`: deviations from the preset.

use ropewalk_base::Duration;

use super::{
    CwndUpdate, Recovery, Retransmission, SackCount, WindowCheck, WindowRounding, WindowUnit,
};

/// Protocol parameters; `None` selects the preset's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SctpOptions {
    /// Packets per SACK; 1 acknowledges every packet.
    pub sack_every: Option<u32>,
    /// Maximum delay of a SACK (RFC 9260 Section 6.2).
    pub sack_delay: Option<Duration>,
    /// What `sack_every` counts.
    pub sack_count: Option<SackCount>,
    /// Delayed acknowledgement for CMT: a gap alone does not trigger an immediate SACK.
    pub delayed_ack_for_cmt: Option<bool>,
    /// Initial congestion window of a path.
    pub initial_window: Option<InitialWindow>,
    /// Initial slow-start threshold of a path.
    pub initial_ssthresh: Option<InitialSsthresh>,
    /// Minimum slow-start threshold after a loss, packets.
    pub min_ssthresh: Option<u32>,
    /// Unit in which congestion windows are counted out.
    pub window_rounding: Option<WindowRounding>,
    /// Maximum window growth per SACK in slow start, packets.
    pub byte_counting_limit: Option<u32>,
    /// Whether the window grows only if it was fully used.
    pub cwnd_growth_when_full_only: Option<bool>,
    /// Whether ECN marks count as congestion.
    pub ecn: Option<bool>,
    /// Maximum number of packets sent in response to one event; 0 for no limit.
    pub max_burst: Option<u32>,
    /// Retransmission timeout before the first sample.
    pub rto_initial: Option<Duration>,
    /// Minimum retransmission timeout.
    pub rto_min: Option<Duration>,
    /// Maximum retransmission timeout.
    pub rto_max: Option<Duration>,
    /// How losses are found.
    pub recovery: Option<Recovery>,
    /// Missing reports after which a chunk counts as lost.
    pub fast_retransmit_threshold: Option<u32>,
    /// Whether a chunk's missing reports count acknowledgements of its own path only.
    pub split_fast_retransmit: Option<bool>,
    /// When windows grow although the cumulative TSN stands still.
    pub cwnd_update: Option<CwndUpdate>,
    /// Which path carries a retransmission.
    pub retransmission: Option<Retransmission>,
    /// Whether no data is sent before every path is confirmed.
    pub hold_data_until_confirmed: Option<bool>,
    /// `HB.interval` of idle paths.
    pub heartbeat_interval: Option<Duration>,
    /// Maximum interval between probes of a failed path.
    pub probe_interval: Option<Duration>,
    /// Consecutive timeouts after which a path is inactive.
    pub path_max_retrans: Option<u32>,
    /// Consecutive timeouts after which the association fails.
    pub association_max_retrans: Option<u32>,
    /// Consecutive timeouts after which a path is potentially failed (RFC 7829).
    pub pf_threshold: Option<u32>,
    /// What the receiver counts its buffer in.
    pub window_counted_in: Option<WindowUnit>,
    /// What new data is checked against the receive window with.
    pub window_check: Option<WindowCheck>,
}

/// Initial congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// The rule of RFC 9260 Section 7.2.1.
    Auto,
    /// This many bytes.
    Bytes(u64),
    /// This many full packets.
    Packets(u32),
}

/// Initial slow-start threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialSsthresh {
    /// The peer's receive buffer.
    ReceiveBuffer,
    /// Unlimited: slow start ends with the first loss.
    Unlimited,
    /// This many bytes.
    Bytes(u64),
}
