//! `[tcp]`: departures from the preset.

use ropewalk_base::Duration;

use super::{InitialWindow, Reinjection, Reordering, RtoFormula, SubflowAck};

/// Details of TCP and Multipath TCP; `None` is the preset's value.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct TcpOptions {
    /// Segments per acknowledgement; 1 acknowledges each.
    pub ack_every: Option<u32>,
    /// Longest time that an acknowledgement is held back.
    pub ack_delay: Option<Duration>,
    /// What a subflow's acknowledgement covers.
    pub subflow_ack: Option<SubflowAck>,
    /// From round trip and deviation to the timeout.
    pub rto_formula: Option<RtoFormula>,
    /// The timestamps option.
    pub timestamps: Option<bool>,
    /// Selective acknowledgements.
    pub sack: Option<bool>,
    /// What is done about reordering.
    pub recovery: Option<Reordering>,
    /// Duplicate acknowledgements that make a loss.
    pub duplicate_threshold: Option<u32>,
    /// When data goes to a second subflow.
    pub reinjection: Option<Reinjection>,
    /// Initial congestion window of a subflow.
    pub initial_window: Option<InitialWindow>,
    /// Initial slow-start threshold of a subflow, bytes.
    pub initial_ssthresh: Option<u64>,
    /// Retransmission timeout before the first sample.
    pub rto_initial: Option<Duration>,
    /// Least retransmission timeout.
    pub rto_min: Option<Duration>,
    /// Longest retransmission timeout.
    pub rto_max: Option<Duration>,
    /// A failed subflow is tried again at least so often.
    pub probe_interval: Option<Duration>,
    /// Preset `chihani2011`: chance of an acknowledgement to begin a burst of them that is thrown away.
    pub ack_burst_loss: Option<f64>,
    /// Preset `chihani2011`: each subflow draws that chance, evenly from 0 to this.
    pub ack_burst_loss_max: Option<f64>,
    /// Preset `chihani2011`: data waits until all subflows are open.
    pub data_waits: Option<bool>,
}
