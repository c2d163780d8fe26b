//! What a run cost: the only place below the runtime that looks at a clock, and only to report.

use cpu_time::ThreadTime;

/// Measures the CPU time of one thread.
#[derive(Debug)]
pub struct Stopwatch(ThreadTime);

impl Stopwatch {
    /// Starts.
    pub fn start() -> Self {
        Self(ThreadTime::now())
    }

    /// CPU seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
