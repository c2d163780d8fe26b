//! `[scheduler]`.

use ropewalk_base::Duration;

use super::{ForwardDelay, Quota, ScheduleWindows, SchedulerName, Weights, WhenBlocked};

/// The scheduler and the options of all schedulers; each reads those that concern it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SchedulerOptions {
    /// Which scheduler.
    pub name: SchedulerName,
    /// Source of forward delays.
    pub forward_delay: ForwardDelay,
    /// Relative error put on forward delays (0.1 is 10 % too long); what a path says for itself
    /// is in [`Path::delay_error`](super::Path::delay_error), which already falls back to this.
    pub delay_error: f64,
    /// Delays are rounded to multiples of it before a common period is taken.
    pub quantum: Duration,
    /// The period is at most so many times the largest delay.
    pub period_cap: u32,
    /// Which windows a schedule is made from.
    pub windows: ScheduleWindows,
    /// What to do when the receive window is full.
    pub when_blocked: WhenBlocked,
    /// Whether delay-aware schedules are made in slow start already.
    pub in_slow_start: bool,
    /// `round-robin`: what a path gets in its turn.
    pub quota: Quota,
    /// `weighted`: source of the weights.
    pub weights: Weights,
    /// `redundant`: number of paths that carry a copy, at least 1.
    pub copies: u32,
}
