//! Quantities summed along the chain.

use core::ops::{Add, AddAssign, Mul, Sub};

/// Expected amounts over a part of the chain.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Totals {
    /// Seconds.
    pub(crate) time_s: f64,
    /// Packets that arrived.
    pub(crate) delivered: f64,
    /// Packets that were sent.
    pub(crate) sent: f64,
    /// Seconds spent waiting for a retransmission timer.
    pub(crate) timer_s: f64,
    /// Timeouts.
    pub(crate) timeouts: f64,
    /// Fast recoveries.
    pub(crate) recoveries: f64,
    /// Window times seconds.
    pub(crate) window_s: f64,
}

impl Totals {
    /// A wait of `seconds` for a timer that then expires, `times` times, with a window of `window`.
    pub(crate) fn timeout(times: f64, seconds: f64, window: f64) -> Self {
        let wait_s = times * seconds;
        Self {
            time_s: wait_s,
            timer_s: wait_s,
            timeouts: times,
            window_s: window * wait_s,
            ..Self::default()
        }
    }

    /// A round trip of `seconds`, `times` times, with a window of `window`.
    pub(crate) fn round(times: f64, seconds: f64, window: f64) -> Self {
        let time_s = times * seconds;
        Self { time_s, window_s: window * time_s, ..Self::default() }
    }

    fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            time_s: f(self.time_s, other.time_s),
            delivered: f(self.delivered, other.delivered),
            sent: f(self.sent, other.sent),
            timer_s: f(self.timer_s, other.timer_s),
            timeouts: f(self.timeouts, other.timeouts),
            recoveries: f(self.recoveries, other.recoveries),
            window_s: f(self.window_s, other.window_s),
        }
    }
}

impl Add for Totals {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
}

impl Sub for Totals {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<f64> for Totals {
    type Output = Self;
    fn mul(self, by: f64) -> Self {
        self.zip(self, |a, _| a * by)
    }
}
