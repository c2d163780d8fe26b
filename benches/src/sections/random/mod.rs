//! Is the bundle ever slower than its best single path? On random scenarios, for each scheduler
//! with and without the guard of the windows.

mod draw;

use crate::args::Args;
use crate::parallel;
use crate::row::{Findings, Row};
use draw::Draw;

/// Of the best single path's goodput; what is missing is chance, such as which packets are lost.
const ENOUGH: f64 = 0.98;

/// Share of the scenarios in which guarded `daps` is to reach that.
const TARGET_SHARE: f64 = 0.95;

/// Schedulers, and whether the guard is on. The first one is looked at more closely.
const CONTENDERS: [(&str, bool); 6] = [
    ("daps", true),
    ("min-rtt", true),
    ("round-robin", true),
    ("daps", false),
    ("min-rtt", false),
    ("round-robin", false),
];

/// A drawn scenario, and what came of it.
struct Outcome {
    draw: Draw,
    /// Goodput of the best single path, bit/s.
    best_bps: f64,
    /// Goodput of the bundle over that, for each contender.
    ratios: Vec<f64>,
}

pub fn measure(args: &Args) -> Result<Findings, String> {
    let numbers: Vec<u64> = (0..args.draws).collect();
    let outcomes = parallel::map("random", &numbers, |number| outcome(*number));
    let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, String>>()?;
    let contenders = CONTENDERS.iter().enumerate();
    let rows = contenders.map(|(i, contender)| {
        let ratios: Vec<f64> = outcomes.iter().map(|outcome| outcome.ratios[i]).collect();
        row(*contender, &ratios)
    });
    let missed = outcomes.iter().filter(|outcome| outcome.ratios[0] < ENOUGH);
    Ok(Findings { rows: rows.collect(), notes: missed.map(Outcome::line).collect() })
}

fn outcome(number: u64) -> Result<Outcome, String> {
    let draw = Draw::new(number);
    let best_bps = draw.best_single()?;
    if best_bps <= 0.0 {
        return Err(format!("draw {number}: nothing gets through: {}", draw.describe()));
    }
    let ratio = |(name, guard): &(&str, bool)| Ok(draw.goodput(None, name, *guard)? / best_bps);
    let ratios = CONTENDERS.iter().map(ratio).collect::<Result<Vec<f64>, String>>()?;
    Ok(Outcome { draw, best_bps, ratios })
}

impl Outcome {
    /// One that the guarded DAPS misses, beside the guarded others.
    fn line(&self) -> String {
        format!(
            "missed by daps: draw {}: {:.3} of {:.2} Mbit/s (min-rtt {:.3}, round-robin {:.3}): {}",
            self.draw.number,
            self.ratios[0],
            self.best_bps / 1e6,
            self.ratios[1],
            self.ratios[2],
            self.draw.describe()
        )
    }
}

fn row((name, guard): (&str, bool), ratios: &[f64]) -> Row {
    let enough = ratios.iter().filter(|ratio| **ratio >= ENOUGH).count();
    let mean = geometric_mean(ratios);
    let guarded = if guard { "with guard" } else { "without guard" };
    let row = Row::told(
        format!("{name} {guarded}: at least {:.0} % of the best path", ENOUGH * 100.0),
        enough as f64,
        format!("{enough} of {}; on average {mean:.3} times the best path", ratios.len()),
    );
    if !guard || name != "daps" {
        return row;
    }
    let wanted = (ratios.len() as f64 * TARGET_SHARE).ceil() as usize;
    row.with_target(format!(">= {wanted} of {}", ratios.len()), enough >= wanted)
}

/// Of ratios, none of which weighs more for being large. Nothing at all counts as a thousandth.
fn geometric_mean(ratios: &[f64]) -> f64 {
    let sum: f64 = ratios.iter().map(|ratio| ratio.max(1e-3).ln()).sum();
    (sum / ratios.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_guarded_scheduler_has_a_target_and_one_miss_misses_it() {
        let ratios = [0.97, 0.98, 1.5];
        let guarded = row(("daps", true), &ratios);
        assert_eq!((guarded.value, guarded.met), (Some(2.0), Some(false)));
        assert_eq!(row(("daps", true), &ratios[1..]).met, Some(true));
        assert_eq!(row(("daps", false), &ratios).met, None);
    }

    #[test]
    fn twice_as_fast_and_half_as_fast_cancel() {
        assert!((geometric_mean(&[2.0, 0.5]) - 1.0).abs() < 1e-12);
        assert!(geometric_mean(&[0.0, 1.0]) > 0.0);
    }
}
