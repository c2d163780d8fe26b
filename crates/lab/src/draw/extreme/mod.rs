//! The family *extreme*: any combination of rate, delay, queue, loss and cross traffic, even an unlikely one. It
//! shows where rules break.

mod path;
pub mod trace;

use std::sync::Arc;

use ropewalk_base::{Rng, Seed};
use ropewalk_scenario::{Capacity, Override, Scenario, ScenarioError};

use super::{Draw, WARMUP_ROUND_TRIPS, log_uniform};
use path::{Kind, Path};

/// Measured time of a run, s: at least three satellite handovers.
const MEASURED_S: f64 = 60.0;
/// Minimum length of the warm-up, s.
const WARMUP_MIN_S: f64 = 10.0;

/// The scenario of a draw, with overrides.
pub fn scenario(
    draw: &Draw,
    seed: Seed,
    overrides: &[Override<'_>],
) -> Result<Scenario, ScenarioError> {
    let paths = paths(draw, seed);
    let text = text(seed, &paths);
    let mut scenario = Scenario::parse_overridden(&text, &draw.to_string(), overrides)?;
    for (i, path) in paths.iter().enumerate().filter(|(_, path)| path.kind == Kind::Cellular) {
        let rng = seed.child("trace").child(&i.to_string()).rng();
        let name = format!("{draw}-p{i}.mahi");
        let trace = trace::cellular(&name, path.rate_bps, rng);
        scenario.paths[i].up.capacity = Capacity::Trace(Arc::new(trace));
    }
    Ok(scenario)
}

pub fn paths(draw: &Draw, seed: Seed) -> Vec<Path> {
    let seed = seed.child("path");
    (0..draw.paths).map(|i| Path::draw(&mut seed.child(&i.to_string()).rng())).collect()
}

/// Text of the scenario file, with a constant rate in place of each cellular trace.
pub fn text(seed: Seed, paths: &[Path]) -> String {
    let mut rng = seed.child("transfer").rng();
    let longest_s = paths.iter().map(|path| path.rtt_s).fold(0.0, f64::max);
    let warmup_s = (WARMUP_ROUND_TRIPS * longest_s).max(WARMUP_MIN_S).ceil();
    let duration_s = warmup_s + MEASURED_S;
    let buffer = log_uniform(&mut rng, 16e3, 16e6) as u64;
    let unordered = rng.chance(0.25);
    let run = seed.child("run").number() >> 1;
    let shared = (paths.len() >= 2 && rng.chance(0.15)).then(|| shared_link(&mut rng, paths));
    let mut text = format!(
        "[transfer]\nduration = \"{duration_s} s\"\nwarmup = \"{warmup_s} s\"\nseed = {run}\n\
         receive_buffer = \"{buffer} B\"\nunordered = {unordered}\n"
    );
    for (i, path) in paths.iter().enumerate() {
        let via = if shared.is_some() && i < 2 { "via = [\"shared\"]\n" } else { "" };
        let mut rng = seed.child("steps").child(&i.to_string()).rng();
        text += &path.text(i, duration_s, &mut rng);
        text += via;
    }
    text += shared.as_deref().unwrap_or("");
    for (i, path) in paths.iter().enumerate() {
        text += &path.cross_text(i);
    }
    text
}

/// A link that the first two paths share, slower than the sum of both.
fn shared_link(rng: &mut Rng, paths: &[Path]) -> String {
    let (first, second) = (&paths[0], &paths[1]);
    let sum_bps = first.rate_bps + second.rate_bps;
    let rate_bps = (sum_bps * (0.5 + 0.5 * rng.unit())) as u64;
    let queue = log_uniform(rng, 0.5, 4.0) * rate_bps as f64 * first.rtt_s.min(second.rtt_s) / 8.0;
    let queue = queue.max(15_000.0) as u64;
    format!(
        "[[link]]\nname = \"shared\"\nrate = \"{rate_bps} bit/s\"\ndelay = \"1 ms\"\nqueue = \"{queue} B\"\n"
    )
}
