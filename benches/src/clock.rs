//! Wall time, for figures that are about it. The only file here that reads a clock.
#![allow(clippy::disallowed_methods, reason = "how long a command takes cannot be told without")]

use std::time::Instant;

/// What `work` returns, and the wall time it took, s.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64())
}
