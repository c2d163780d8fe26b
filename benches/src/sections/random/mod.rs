//! Is the bundle ever slower than its best single path? On random scenarios, for each scheduler
//! with and without the guard of the windows.

mod draw;

use crate::args::Args;
use crate::parallel;
use crate::row::{Findings, Row};
use draw::Draw;

/// Of the best single path's goodput; what is missing is chance, such as which packets are lost.
const ENOUGH: f64 = 0.98;

/// Share of the scenarios in which these are to reach that under the guard.
const WITH_TARGET: [(&str, f64); 7] = [
    ("lay", 0.99),
    ("min-rtt", 0.95),
    ("daps", 0.95),
    ("otias", 0.95),
    ("sttf", 0.95),
    ("blest", 0.95),
    ("ecf", 0.95),
];

/// The scheduler that is to need no guard: what it misses without one is shown, too.
const BY_ITSELF: &str = "lay";

/// Of more paths than two so many scenarios are drawn as a part of all: each takes longer.
const MORE_PATHS: [usize; 3] = [3, 4, 5];
const MORE_PATHS_PART: u64 = 4;

/// Worst misses that are shown of each scheduler.
const SHOWN: usize = 10;

/// Goodput of the bundle over that of the best single path.
#[derive(Clone, Copy, Debug)]
struct Ratios {
    guarded: f64,
    free: f64,
}

/// A drawn scenario, and what came of it.
struct Outcome {
    draw: Draw,
    /// Goodput of the best single path, bit/s.
    best_bps: f64,
    /// For each scheduler.
    ratios: Vec<Ratios>,
}

pub fn measure(args: &Args) -> Result<Findings, String> {
    let outcomes = outcomes(args.draws, 2, &args.schedulers)?;
    let mut findings = Findings::default();
    for (i, name) in args.schedulers.iter().enumerate() {
        let ratios: Vec<Ratios> = outcomes.iter().map(|outcome| outcome.ratios[i]).collect();
        findings.rows.push(row(name, &ratios));
        if target(name).is_some() {
            findings.notes.extend(missed(name, &outcomes, |o| o.ratios[i].guarded));
        }
        if *name == BY_ITSELF {
            let label = format!("{name} without the guard");
            findings.notes.extend(missed(&label, &outcomes, |o| o.ratios[i].free));
        }
    }
    if args.schedulers.contains(&BY_ITSELF) {
        for paths in MORE_PATHS {
            let draws = args.draws.div_ceil(MORE_PATHS_PART);
            let outcomes = self::outcomes(draws, paths, &[BY_ITSELF])?;
            let ratios: Vec<Ratios> = outcomes.iter().map(|outcome| outcome.ratios[0]).collect();
            let mut row = row(BY_ITSELF, &ratios);
            row.what = format!("{paths} paths, {}", row.what);
            findings.rows.push(row);
            let label = format!("{BY_ITSELF} over {paths} paths");
            findings.notes.extend(missed(&label, &outcomes, |o| o.ratios[0].guarded));
        }
    }
    Ok(findings)
}

/// What came of the first scenarios with so many paths.
fn outcomes(draws: u64, paths: usize, schedulers: &[&str]) -> Result<Vec<Outcome>, String> {
    let numbers: Vec<u64> = (0..draws).collect();
    let label = format!("random, {paths} paths");
    parallel::map(&label, &numbers, |n| outcome(*n, paths, schedulers)).into_iter().collect()
}

fn outcome(number: u64, paths: usize, schedulers: &[&str]) -> Result<Outcome, String> {
    let draw = Draw::new(number, paths);
    let best_bps = draw.best_single()?;
    if best_bps <= 0.0 {
        return Err(format!("draw {number}: nothing gets through: {}", draw.describe()));
    }
    let ratio = |name: &str, guard| draw.goodput(None, name, guard).map(|bps| bps / best_bps);
    let both = |name: &&str| -> Result<Ratios, String> {
        Ok(Ratios { guarded: ratio(name, true)?, free: ratio(name, false)? })
    };
    let ratios = schedulers.iter().map(both).collect::<Result<Vec<Ratios>, String>>()?;
    Ok(Outcome { draw, best_bps, ratios })
}

/// The share of the scenarios that a scheduler is to reach, if one is set for it.
fn target(name: &str) -> Option<f64> {
    WITH_TARGET.iter().find(|(known, _)| *known == name).map(|(_, share)| *share)
}

/// The worst of what a scheduler misses, by the ratio that counts.
fn missed(name: &str, outcomes: &[Outcome], ratio: impl Fn(&Outcome) -> f64) -> Vec<String> {
    let mut missed: Vec<&Outcome> = outcomes.iter().filter(|o| ratio(o) < ENOUGH).collect();
    missed.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    missed.truncate(SHOWN);
    let line = |outcome: &Outcome| {
        format!(
            "missed by {name}: draw {}: {:.3} of {:.2} Mbit/s: {}",
            outcome.draw.number,
            ratio(outcome),
            outcome.best_bps / 1e6,
            outcome.draw.describe()
        )
    };
    missed.into_iter().map(line).collect()
}

fn row(name: &str, ratios: &[Ratios]) -> Row {
    let told = |of: fn(&Ratios) -> f64| {
        let ratios: Vec<f64> = ratios.iter().map(of).collect();
        let enough = ratios.iter().filter(|ratio| **ratio >= ENOUGH).count();
        (enough, geometric_mean(&ratios))
    };
    let ((guarded, mean), (free, mean_free)) = (told(|r| r.guarded), told(|r| r.free));
    let all = ratios.len();
    let row = Row::told(
        format!("{name}: at least {:.0} % of the best path", ENOUGH * 100.0),
        guarded as f64,
        format!(
            "{guarded} of {all}, on average {mean:.3} times the best path; \
             without the guard {free}, {mean_free:.3} times"
        ),
    );
    let Some(share) = target(name) else { return row };
    let wanted = (all as f64 * share).ceil() as usize;
    row.with_target(format!(">= {wanted} of {all} with the guard"), guarded >= wanted)
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
    fn the_guarded_ratios_have_a_target_and_one_miss_misses_it() {
        let pair = |guarded| Ratios { guarded, free: 0.1 };
        let ratios = [pair(0.97), pair(0.98), pair(1.5)];
        let guarded = row("daps", &ratios);
        assert_eq!((guarded.value, guarded.met), (Some(2.0), Some(false)));
        assert_eq!(row("daps", &ratios[1..]).met, Some(true));
        assert_eq!(row("redundant", &ratios).met, None, "copies cost what they cost");
        let many = [vec![pair(0.5)], vec![pair(1.0); 50]].concat();
        assert_eq!(row("daps", &many).met, Some(true), "50 of 51 are more than 95 %");
        assert_eq!(row("lay", &many).met, Some(false), "and less than 99 %");
        assert!(guarded.measured.contains("without the guard 0"), "{}", guarded.measured);
    }

    #[test]
    fn twice_as_fast_and_half_as_fast_cancel() {
        assert!((geometric_mean(&[2.0, 0.5]) - 1.0).abs() < 1e-12);
        assert!(geometric_mean(&[0.0, 1.0]) > 0.0);
    }
}
