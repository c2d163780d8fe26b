//! The model of the network path (draft-ietf-ccwg-bbr, 5.5).

use ropewalk_base::{Duration, Time};

use super::state::RateSample;
use super::windowed_max::WindowedMax;
use super::{BETA, INFINITY};

/// `BBR.MaxBwFilterLen`, cycles of ProbeBW.
const MAX_BW_FILTER_LEN: u64 = 2;
/// `BBR.ExtraAckedFilterLen`, rounds.
const EXTRA_ACKED_FILTER_LEN: u64 = 10;

/// Bounds set by losses, or [`INFINITY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// `BBR.bw_shortterm`, bits per second.
    pub bw_shortterm: u64,
    /// `BBR.inflight_shortterm`, bytes.
    pub inflight_shortterm: u64,
    /// `BBR.inflight_longterm`, bytes.
    pub inflight_longterm: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { bw_shortterm: INFINITY, inflight_shortterm: INFINITY, inflight_longterm: INFINITY }
    }
}

impl Bounds {
    /// The larger of each bound.
    pub fn at_least(&self, other: &Self) -> Self {
        Self {
            bw_shortterm: self.bw_shortterm.max(other.bw_shortterm),
            inflight_shortterm: self.inflight_shortterm.max(other.inflight_shortterm),
            inflight_longterm: self.inflight_longterm.max(other.inflight_longterm),
        }
    }
}

/// Delivery in the last round, and its losses (draft, 5.5.10).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latest {
    /// `BBR.bw_latest`, bits per second.
    pub bw: u64,
    /// `BBR.inflight_latest`, bytes.
    pub inflight: u64,
    /// `BBR.is_loss_in_round`.
    pub is_loss_in_round: bool,
    /// `C.lost` at the start of the round.
    pub lost_before_round: u64,
    /// `BBR.loss_round_start`.
    pub loss_round_start: bool,
    /// `BBR.loss_round_delivered`.
    pub loss_round_delivered: u64,
}

impl Latest {
    /// `UpdateLatestDeliverySignals()`.
    pub fn update(&mut self, sample: &RateSample, delivered: u64) {
        self.bw = self.bw.max(sample.delivery_rate);
        self.inflight = self.inflight.max(sample.delivered);
        self.loss_round_start = sample.prior_delivered >= self.loss_round_delivered;
        if self.loss_round_start {
            self.loss_round_delivered = delivered;
        }
    }

    /// `AdvanceLatestDeliverySignals()`, at the start of a round.
    pub const fn advance(&mut self, sample: &RateSample) {
        self.bw = sample.delivery_rate;
        self.inflight = sample.delivered;
    }

    /// `ResetCongestionSignals()`.
    pub const fn reset(&mut self) {
        self.is_loss_in_round = false;
        self.bw = 0;
        self.inflight = 0;
    }
}

/// Estimates of bandwidth, delay and aggregation.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    max_bw: WindowedMax,
    /// `BBR.cycle_count`.
    cycle_count: u64,
    /// `BBR.bw`, bits per second.
    pub bw: u64,
    /// `BBR.min_rtt`, `None` before the first sample.
    pub min_rtt: Option<Duration>,
    extra_acked: WindowedMax,
    /// `BBR.extra_acked_interval_start`.
    interval_start: Time,
    /// `BBR.extra_acked_delivered`, bytes.
    interval_delivered: u64,
    pub bounds: Bounds,
}

impl Model {
    /// `BBR.max_bw`, bits per second.
    pub fn max_bw(&self) -> u64 {
        self.max_bw.get()
    }

    /// `BBR.bdp`, bytes; 0 without samples.
    pub fn bdp(&self) -> u64 {
        product(self.bw, self.min_rtt.unwrap_or(Duration::ZERO))
    }

    /// `BBR.max_bw` times `BBR.min_rtt`, bytes.
    pub fn max_bdp(&self) -> u64 {
        product(self.max_bw(), self.min_rtt.unwrap_or(Duration::ZERO))
    }

    /// `BBR.extra_acked`, bytes.
    pub fn extra_acked(&self) -> u64 {
        self.extra_acked.get()
    }

    /// `UpdateMaxBw()`, after the round was updated.
    pub fn update_max_bw(&mut self, sample: &RateSample) {
        let rate = sample.delivery_rate;
        if rate > 0 && (rate >= self.max_bw() || !sample.app_limited) {
            self.max_bw.update(self.cycle_count, rate, MAX_BW_FILTER_LEN);
        }
    }

    /// `AdvanceMaxBwFilter()`.
    pub const fn advance_max_bw_filter(&mut self) {
        self.cycle_count += 1;
    }

    /// `UpdateACKAggregation()`.
    pub fn update_ack_aggregation(
        &mut self,
        now: Time,
        sample: &RateSample,
        cwnd: u64,
        full_bw_reached: bool,
        round: u64,
    ) {
        let mut expected = product(self.bw, now.since(self.interval_start));
        if self.interval_delivered <= expected {
            self.restart_aggregation(now);
            self.interval_delivered = 0;
            expected = 0;
        }
        self.interval_delivered += sample.newly_acked;
        let extra = (self.interval_delivered - expected).min(cwnd);
        let length = if full_bw_reached { EXTRA_ACKED_FILTER_LEN } else { 1 };
        self.extra_acked.update(round, extra, length);
    }

    /// Starts another interval.
    pub const fn restart_aggregation(&mut self, now: Time) {
        self.interval_start = now;
    }

    /// `InitLowerBounds()` and `LossLowerBounds()`.
    pub fn lower_bounds(&mut self, latest: &Latest, cwnd: u64) {
        let reduced = |bound: u64, first: u64, latest: u64| {
            let bound = if bound == INFINITY { first } else { bound };
            ((BETA * bound as f64) as u64).max(latest)
        };
        let (max_bw, bounds) = (self.max_bw(), &mut self.bounds);
        bounds.bw_shortterm = reduced(bounds.bw_shortterm, max_bw, latest.bw);
        bounds.inflight_shortterm = reduced(bounds.inflight_shortterm, cwnd, latest.inflight);
    }

    /// `ResetShortTermModel()`.
    pub const fn reset_short_term(&mut self) {
        self.bounds.bw_shortterm = INFINITY;
        self.bounds.inflight_shortterm = INFINITY;
    }

    /// `BoundBWForModel()`.
    pub fn bound_bw(&mut self) {
        self.bw = self.max_bw().min(self.bounds.bw_shortterm);
    }
}

/// Bytes at `bw` bits per second in `time`.
pub(in super::super) fn product(bw: u64, time: Duration) -> u64 {
    let bytes = bw as u128 * time.as_nanos() as u128 / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
