//! Random scenarios: is the bundle ever slower than its best single path?

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    /// The scenario of that number: two paths, rates 0.5 to 100 Mbit/s, round trips 5 to 400 ms,
    /// loss 0 to 2 % (none on half of the paths), buffers from 16 kB to 4 MB.
    pub fn new(number: u64) -> Self {
        let mut rng = Seed::root(number).child("random scenario").rng();
        let paths = (0..2)
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

    /// Goodput, bit/s.
    pub fn goodput(&self, only: Option<usize>, scheduler: &str, guard: bool) -> f64 {
        let text = self.toml(only, scheduler, guard);
        let scenario = Scenario::parse(&text, "drawn").unwrap_or_else(|e| panic!("{e}"));
        run(&scenario, &RunOptions::default()).map_or(0.0, |run| run.result.goodput_bps)
    }

    /// Goodput of the best single path, bit/s.
    pub fn best_single(&self) -> f64 {
        let each = (0..self.paths.len()).map(|i| self.goodput(Some(i), "min-rtt", false));
        each.fold(0.0, f64::max)
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

/// Bundle over best single path, per draw.
pub fn ratios(count: u64, contenders: &[(&str, bool)]) -> Vec<(Draw, f64, Vec<f64>)> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed) as u64;
                    if number >= count {
                        return;
                    }
                    let draw = Draw::new(number);
                    let best = draw.best_single();
                    let ratio = |c: &(&str, bool)| draw.goodput(None, c.0, c.1) / best;
                    let ratios = contenders.iter().map(ratio).collect();
                    done.lock().unwrap_or_else(|e| e.into_inner()).push((draw, best, ratios));
                }
            });
        }
    });
    let mut all = done.into_inner().unwrap_or_else(|e| e.into_inner());
    all.sort_by_key(|(draw, ..)| draw.number);
    all
}
