//! CPU time of a run. Only reports use it: no result depends on this clock.

use cpu_time::ThreadTime;

/// Measures the CPU time of one thread.
#[derive(Debug)]
pub struct Stopwatch(ThreadTime);

impl Stopwatch {
    /// Starts the measurement.
    pub fn start() -> Self {
        Self(ThreadTime::now())
    }

    /// CPU seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
