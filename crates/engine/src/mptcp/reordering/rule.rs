//! The interface of a rule that detects spurious retransmissions.

use ropewalk_base::{Duration, Time};

/// The contents of an acknowledgement that the rules use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Whether the cumulative acknowledgement advanced.
    pub advanced: bool,
    /// The oldest unacknowledged number after this acknowledgement.
    pub una: u64,
    /// The acknowledgement number.
    pub ack: u64,
    /// Whether it covers data that was given up and not retransmitted.
    pub late: bool,
    /// Whether more data waits for retransmission.
    pub pending: bool,
    /// The echoed value of this end's clock.
    pub echo: Option<u64>,
    /// Sequence numbers reported as duplicates (RFC 2883).
    pub duplicate: Option<(u64, u64)>,
    /// Number of earlier acknowledgements with this number (TCP-DOOR).
    pub order: Option<u64>,
    /// Whether the peer saw reordered data (TCP-DOOR).
    pub disordered: bool,
    /// Smoothed round trip.
    pub srtt: Option<Duration>,
}

/// A rule that detects spurious retransmissions or timeouts of one sender.
pub trait SpuriousRule {
    /// Whether duplicate acknowledgements count as losses in the model of Chihani and Collange (2011).
    const DUPLICATES_COUNT_IN_MODEL: bool = true;

    /// Records a reduction of the window because of miss indications.
    fn on_reduction(&mut self, now: Time);

    /// Records a timeout. `una`: the oldest unacknowledged number. `next`: the first one not sent yet.
    fn on_timeout(&mut self, now: Time, _una: u64, _next: u64) {
        self.on_reduction(now);
    }

    /// Records a retransmission of the data that begins at `seq`.
    fn on_retransmission(&mut self, _now: Time, _seq: u64) {}

    /// Processes an acknowledgement. Returns true if the last reduction must be undone.
    fn on_ack(&mut self, now: Time, report: &Report) -> bool;

    /// Whether window and timeout stay unchanged despite apparent losses.
    fn keeps_window(&self, _now: Time) -> bool {
        false
    }

    /// Whether data that was given up must wait while new data is sent.
    fn holds_back(&self) -> bool {
        false
    }

    /// No new data is available to send instead.
    fn on_nothing_new(&mut self) {}
}

/// No rule: every apparent loss counts as a loss.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRule;

impl SpuriousRule for NoRule {
    fn on_reduction(&mut self, _now: Time) {}

    fn on_ack(&mut self, _now: Time, _report: &Report) -> bool {
        false
    }
}
