//! Wall-clock time, for figures that depend on it. No other file of the benches reads a clock.
#![allow(clippy::disallowed_methods, reason = "how long a command takes cannot be told without")]

use std::time::Instant;

/// Returns the result of `work`, and its wall-clock time, s.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64())
}
