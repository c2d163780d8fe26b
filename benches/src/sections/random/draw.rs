//! The random scenarios: two to five paths with anything from DSL to satellite, and any receive buffer.

use ropewalk_base::{Rng, Seed};
use ropewalk_lab::{RunOptions, run};
use ropewalk_scenario::Scenario;

/// One drawn scenario.
#[derive(Clone, Debug)]
pub struct Draw {
    /// Its number, which is its seed.
    pub number: u64,
    paths: Vec<Path>,
    buffer: u64,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    rate_bps: u64,
    rtt_us: u64,
    loss: f64,
}

fn log_uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.unit())
}

impl Draw {
    /// The scenario of that number with so many paths: rates 0.5 to 100 Mbit/s, round trips 5 to 400 ms,
    /// loss 0 to 2 % (none on half of the paths), buffers from 16 kB to 4 MB.
    pub fn new(number: u64, paths: usize) -> Self {
        let mut rng = Seed::root(number).child("random scenario").rng();
        let paths = (0..paths)
            .map(|_| Path {
                rate_bps: log_uniform(&mut rng, 0.5e6, 100e6) as u64,
                rtt_us: log_uniform(&mut rng, 5e3, 400e3) as u64,
                loss: if rng.chance(0.5) { 0.0 } else { 0.02 * rng.unit() },
            })
            .collect();
        Self { number, paths, buffer: log_uniform(&mut rng, 16e3, 4e6) as u64 }
    }

    /// The scenario file, with all paths or with one.
    pub fn toml(&self, only: Option<usize>, scheduler: &str, guard: bool) -> String {
        let Self { number, buffer, .. } = self;
        let mut text = format!(
            "[transfer]\nduration = \"130 s\"\nwarmup = \"10 s\"\nseed = {number}\n\
             scheduler = \"{scheduler}\"\nguard = {guard}\nreceive_buffer = \"{buffer} B\"\n"
        );
        for (i, path) in self.paths.iter().enumerate().filter(|(i, _)| only.is_none_or(|o| o == *i))
        {
            let Path { rate_bps, rtt_us, loss } = path;
            let bdp = rate_bps * rtt_us / 8 / 1_000_000 / 1500;
            let queue = bdp.max(20);
            text += &format!(
                "[[path]]\nname = \"p{i}\"\nrate = \"{rate_bps} bit/s\"\nrtt = \"{rtt_us} us\"\n\
                 queue = \"{queue} packets\"\nloss = {loss}\n"
            );
        }
        text
    }

    /// Goodput, bit/s; 0 where the transfer comes to nothing.
    ///
    /// # Errors
    /// The scenario drawn is none, in words.
    pub fn goodput(
        &self,
        only: Option<usize>,
        scheduler: &str,
        guard: bool,
    ) -> Result<f64, String> {
        let text = self.toml(only, scheduler, guard);
        let scenario = Scenario::parse(&text, "drawn").map_err(|e| e.to_string())?;
        Ok(run(&scenario, &RunOptions::default()).map_or(0.0, |run| run.result.goodput_bps))
    }

    /// Goodput of the best single path, bit/s.
    ///
    /// # Errors
    /// As [`Draw::goodput`].
    pub fn best_single(&self) -> Result<f64, String> {
        let mut best: f64 = 0.0;
        for path in 0..self.paths.len() {
            best = best.max(self.goodput(Some(path), "min-rtt", false)?);
        }
        Ok(best)
    }

    /// In words.
    pub fn describe(&self) -> String {
        let one = |p: &Path| {
            let rate = p.rate_bps as f64 / 1e6;
            format!("{rate:.1} Mbit/s {:.0} ms {:.2} %", p.rtt_us as f64 / 1e3, p.loss * 100.0)
        };
        let paths: Vec<_> = self.paths.iter().map(one).collect();
        format!("{}; {:.0} kB", paths.join(" + "), self.buffer as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_always_draws_the_same_scenario_and_each_is_valid() {
        for (number, count) in (0..200).zip([2, 3, 4, 5].into_iter().cycle()) {
            let draw = Draw::new(number, count);
            let text = draw.toml(None, "daps", true);
            assert_eq!(text, Draw::new(number, count).toml(None, "daps", true));
            let whole = Scenario::parse(&text, "drawn").unwrap_or_else(|e| panic!("{e}"));
            let alone = Scenario::parse(&draw.toml(Some(1), "min-rtt", false), "drawn");
            assert_eq!((whole.paths.len(), alone.map(|s| s.paths.len()).ok()), (count, Some(1)));
        }
    }
}
