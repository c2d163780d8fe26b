//! `[scheduler]`.

use ropewalk_base::Duration;

use super::{
    ForwardDelay, OtiasForm, Quota, ScheduleCapacity, ScheduleWindows, SchedulerName, Weights,
    WhenBlocked,
};

/// The scheduler and the options of all schedulers; each reads those that concern it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SchedulerOptions {
    /// Which built-in scheduler.
    pub name: SchedulerName,
    /// Which other one instead, by a name that
    /// [`add_guest_scheduler`](crate::add_guest_scheduler) added.
    pub guest: Option<&'static str>,
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
    /// How much of a window a path emits in one forward delay.
    pub capacity: ScheduleCapacity,
    /// What to do when the receive window is full.
    pub when_blocked: WhenBlocked,
    /// Any scheduler: while the receive window is full, the oldest data goes again on the fast path.
    pub opportunistic: bool,
    /// Any scheduler: the path that keeps the receive window full loses half of its window.
    pub penalise: bool,
    /// Whether delay-aware schedules are made in slow start already.
    pub in_slow_start: bool,
    /// `round-robin`: what a path gets in its turn.
    pub quota: Quota,
    /// `weighted`: source of the weights.
    pub weights: Weights,
    /// `redundant`: number of paths that carry a copy, at least 1.
    pub copies: u32,
    /// `bas`: whether the forward delay counts.
    pub bas_with_delay: bool,
    /// `otias`: how the wait behind a queue is counted.
    pub otias_form: OtiasForm,
    /// `blest`: factor on what the fast path is expected to send, at the beginning.
    pub blest_lambda: f64,
    /// `blest`: least that it becomes.
    pub blest_lambda_min: f64,
    /// `blest`: most that it becomes.
    pub blest_lambda_max: f64,
    /// `ecf`: by how much the slow path must be the better one again before waiting ends.
    pub ecf_beta: f64,
    /// `stms`: part of an observed misalignment by which the gap moves.
    pub stms_gain: f64,
    /// `linux`: bytes that stay together on one path.
    pub linux_burst: u64,
    /// `lay`: share of the way by which a chunk goes nearer to the head behind paths that lose.
    pub lay_cushion: f64,
    /// `lay`: what a chunk may take from its departure to its arrival.
    pub latency_budget: Option<Duration>,
}

impl SchedulerOptions {
    /// The name as the scenario has it.
    pub const fn label(&self) -> &'static str {
        match self.guest {
            Some(guest) => guest,
            None => self.name.as_str(),
        }
    }
}
