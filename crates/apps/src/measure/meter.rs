//! Measures received bulk data.

use cpu_time::ProcessTime;
use ropewalk_runtime::clock::Clock;
use ropewalk_runtime::endpoint::Association;

use super::protocol::{Figures, MeasurementPlan};

/// Counts bytes after the warm-up, which starts with the first byte.
#[derive(Debug)]
pub struct Meter {
    plan: MeasurementPlan,
    clock: Clock,
    cpu: ProcessTime,
    begin: Option<f64>,
    last: f64,
    figures: Figures,
}

impl Meter {
    /// A meter that has counted nothing yet.
    pub fn new(plan: MeasurementPlan) -> Self {
        let (clock, cpu) = (Clock::start(), ProcessTime::now());
        Self { plan, clock, cpu, begin: None, last: 0.0, figures: Figures::default() }
    }

    /// Counts bytes that arrived now. Returns whether the measurement is complete.
    pub fn take(&mut self, bytes: u64) -> bool {
        let now = self.clock.now().as_secs_f64();
        let begin = *self.begin.get_or_insert(now) + self.plan.warmup_s;
        if now < begin {
            self.last = now;
            return false;
        }
        if self.last >= begin {
            self.figures.gap_s = self.figures.gap_s.max(now - self.last);
        }
        self.last = now;
        self.figures.bytes += bytes;
        self.figures.seconds = now - begin;
        self.figures.seconds >= self.plan.seconds
    }

    /// The results.
    pub fn figures(mut self, association: &Association) -> Figures {
        if let Some(stats) = association.stats() {
            self.figures.mean_out_of_order_bytes = stats.mean_out_of_order_bytes;
            self.figures.max_out_of_order_bytes = stats.max_out_of_order_bytes;
        }
        self.figures.cpu_s = self.cpu.elapsed().as_secs_f64();
        self.figures
    }
}
