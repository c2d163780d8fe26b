//! `[tcp]`: deviations from the preset.

use ropewalk_base::Duration;

use super::{InitialWindow, Reinjection, Reordering, RtoFormula, SubflowAck};

/// Parameters of TCP and Multipath TCP; `None` selects the preset's value.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct TcpOptions {
    /// Segments per acknowledgement; 1 acknowledges every segment.
    pub ack_every: Option<u32>,
    /// Maximum delay of an acknowledgement.
    pub ack_delay: Option<Duration>,
    /// What a subflow's acknowledgement covers.
    pub subflow_ack: Option<SubflowAck>,
    /// Formula for the retransmission timeout from smoothed RTT and deviation.
    pub rto_formula: Option<RtoFormula>,
    /// Whether the timestamps option is used.
    pub timestamps: Option<bool>,
    /// Whether selective acknowledgements are used.
    pub sack: Option<bool>,
    /// Method of handling reordering.
    pub recovery: Option<Reordering>,
    /// Duplicate acknowledgements that indicate a loss.
    pub duplicate_threshold: Option<u32>,
    /// When data is sent on a second subflow as well.
    pub reinjection: Option<Reinjection>,
    /// Initial congestion window of a subflow.
    pub initial_window: Option<InitialWindow>,
    /// Initial slow-start threshold of a subflow, bytes.
    pub initial_ssthresh: Option<u64>,
    /// Retransmission timeout before the first sample.
    pub rto_initial: Option<Duration>,
    /// Minimum retransmission timeout.
    pub rto_min: Option<Duration>,
    /// Maximum retransmission timeout.
    pub rto_max: Option<Duration>,
    /// Maximum interval between probes of a failed subflow.
    pub probe_interval: Option<Duration>,
    /// Preset `chihani2011`: probability that an acknowledgement begins a burst of dropped ones.
    pub ack_burst_loss: Option<f64>,
    /// Preset `chihani2011`: each subflow draws that probability uniformly from 0 to this.
    pub ack_burst_loss_max: Option<f64>,
    /// Preset `chihani2011`: whether data waits until all subflows are open.
    pub data_waits: Option<bool>,
}
