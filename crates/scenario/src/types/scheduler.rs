//! `[scheduler]`.

use std::sync::Arc;

use ropewalk_base::Duration;

use super::{
    ForwardDelay, OtiasForm, Quota, ScheduleCapacity, ScheduleWindows, SchedulerName, Weights,
    WhenBlocked,
};

/// The scheduler, with the options of all schedulers; each scheduler uses its own.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerOptions {
    /// The built-in scheduler.
    pub name: SchedulerName,
    /// A custom scheduler that replaces it: one of the names given to
    /// [`Scenario::parse_custom`](crate::Scenario::parse_custom).
    pub custom: Option<Arc<str>>,
    /// Source of forward delays.
    pub forward_delay: ForwardDelay,
    /// Relative error of forward delays (0.1 is 10 % too long). [`Path::delay_error`](super::Path::delay_error)
    /// overrides it for a path and already has this default.
    pub delay_error: f64,
    /// Delays are rounded to multiples of this time before a common period is computed.
    pub quantum: Duration,
    /// Limit of the period, as a multiple of the largest delay.
    pub period_cap: u32,
    /// Which windows a schedule is made from.
    pub windows: ScheduleWindows,
    /// How much of a window a path emits in one forward delay.
    pub capacity: ScheduleCapacity,
    /// What to do when the receive window is full.
    pub when_blocked: WhenBlocked,
    /// All schedulers: while the receive window is full, the oldest data is sent again on the fast path.
    pub opportunistic: bool,
    /// All schedulers: the path that keeps the receive window full halves its window.
    pub penalise: bool,
    /// Whether delay-aware schedules apply during slow start as well.
    pub in_slow_start: bool,
    /// `round-robin`: what a path gets in its turn.
    pub quota: Quota,
    /// `weighted`: source of the weights.
    pub weights: Weights,
    /// `redundant`: number of paths that carry a copy, at least 1.
    pub copies: u32,
    /// `bas`: whether the forward delay is included.
    pub bas_with_delay: bool,
    /// `otias`: computation of the waiting time behind a queue.
    pub otias_form: OtiasForm,
    /// `blest`: initial factor on the data that the fast path is expected to send.
    pub blest_lambda: f64,
    /// `blest`: minimum of that factor.
    pub blest_lambda_min: f64,
    /// `blest`: maximum of that factor.
    pub blest_lambda_max: f64,
    /// `ecf`: margin by which the slow path must become better again before waiting ends.
    pub ecf_beta: f64,
    /// `stms`: share of an observed misalignment by which the gap is adjusted.
    pub stms_gain: f64,
    /// `linux`: number of consecutive bytes on one path.
    pub linux_burst: u64,
    /// `lay`: share of the way by which a chunk goes nearer to the head behind paths that lose.
    pub lay_cushion: f64,
    /// `lay`: longest time of a chunk from transmission to arrival.
    pub latency_budget: Option<Duration>,
}

impl SchedulerOptions {
    /// The name as the scenario has it.
    pub fn label(&self) -> &str {
        match &self.custom {
            Some(custom) => custom,
            None => self.name.as_str(),
        }
    }
}
