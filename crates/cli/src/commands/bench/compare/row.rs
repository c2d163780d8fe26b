//! One transport over the links of one scenario.

use ropewalk_lab::validate::{Observed, median};
use ropewalk_scenario::Scenario;
use serde::Serialize;

use super::contender::Contender;
use crate::commands::emulated::{Conditions, NoFigures};
use crate::failure::Failure;

/// One row of the result.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// Its name for `--transport`.
    pub name: &'static str,
    /// Name of the transport in tables.
    pub transport: String,
    /// The paths that it uses: all, or the one with the highest goodput.
    pub paths: Vec<String>,
    /// Median over the runs, bit/s; null if runs were short of CPU.
    pub goodput_bps: Option<f64>,
    /// The lowest and the highest goodput, bit/s.
    pub range_bps: Option<[f64; 2]>,
    /// Retransmitted part of the data sent; null if unknown.
    pub retransmitted: Option<f64>,
    /// Median round trip of the busiest path, s; null if unknown. Ropewalk's is the last one.
    pub rtt_s: Option<f64>,
    /// Simulated goodput, bit/s; null for other programs.
    pub simulated_bps: Option<f64>,
    /// Median on each path for a transport that uses a single one, bit/s.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub each_path: Vec<OnPath>,
    /// Maximum lateness of the emulator, s.
    pub lateness_s: f64,
    /// Conditions of each run.
    pub conditions: Vec<Conditions>,
    /// Why there is no goodput.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The goodput on one path.
#[derive(Clone, Debug, Serialize)]
pub struct OnPath {
    /// Name of the path.
    pub path: String,
    /// Median over the runs, bit/s.
    pub goodput_bps: f64,
}

/// The runs over the same paths.
struct Runs {
    paths: Vec<String>,
    seen: Vec<Observed>,
    conditions: Vec<Conditions>,
}

impl Runs {
    fn middle(&self, figure: &dyn Fn(&Observed) -> Option<f64>) -> Option<f64> {
        median(self.seen.iter().filter_map(figure).collect())
    }

    fn goodput_bps(&self) -> f64 {
        self.middle(&|run| Some(run.goodput_bps)).unwrap_or(0.0)
    }
}

/// Runs a transport over a path, or over all, with a seed.
pub type Transfer<'a> = &'a dyn Fn(usize, u64) -> Result<(Observed, Conditions), NoFigures>;

/// Runs a transport with each seed, over each path in turn if it uses a single one.
///
/// # Errors
/// A run failed. After runs that were short of CPU, the row has a reason instead of figures.
pub fn measure(
    contender: Contender,
    scenario: &Scenario,
    seeds: std::ops::Range<u64>,
    transfer: Transfer<'_>,
) -> Result<Row, Failure> {
    let base = || Row { name: contender.name(), transport: contender.title(), ..Row::default() };
    let names: Vec<String> = scenario.paths.iter().map(|path| path.name.clone()).collect();
    let places = if contender.is_multipath() { 0..1 } else { 0..names.len() };
    let mut all = Vec::new();
    for place in places {
        let paths =
            if contender.is_multipath() { names.clone() } else { vec![names[place].clone()] };
        let mut runs = Runs { paths, seen: Vec::new(), conditions: Vec::new() };
        for seed in seeds.clone() {
            match transfer(place, seed) {
                Ok((seen, conditions)) => {
                    runs.seen.push(seen);
                    runs.conditions.push(conditions);
                }
                Err(NoFigures::Failed(failure)) => return Err(failure),
                // Without figures of every path, the best path is unknown.
                Err(NoFigures::ShortOfCpu(lack)) => {
                    let reason = Some(format!("{}: {lack}", runs.paths.join(" + ")));
                    return Ok(Row { paths: runs.paths, reason, ..base() });
                }
            }
        }
        all.push(runs);
    }
    let each_path =
        |runs: &Runs| OnPath { path: runs.paths.join(" + "), goodput_bps: runs.goodput_bps() };
    let each_path =
        if contender.is_multipath() { Vec::new() } else { all.iter().map(each_path).collect() };
    let best = all.into_iter().max_by(|a, b| a.goodput_bps().total_cmp(&b.goodput_bps()));
    let Some(best) = best else { return Ok(base()) };
    let each = || best.seen.iter().map(|run| run.goodput_bps);
    Ok(Row {
        goodput_bps: Some(best.goodput_bps()),
        range_bps: Some([each().fold(f64::INFINITY, f64::min), each().fold(0.0, f64::max)]),
        retransmitted: best.middle(&|run| Some(run.retransmitted).filter(|part| part.is_finite())),
        rtt_s: best.middle(&Observed::rtt_s),
        each_path,
        lateness_s: best.conditions.iter().map(|run| run.lateness_s).fold(0.0, f64::max),
        conditions: best.conditions,
        paths: best.paths,
        ..base()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario() -> Scenario {
        let text = "[[path]]\nname = 'a'\n[[path]]\nname = 'b'\n[[path]]\nname = 'c'\n";
        Scenario::parse(text, "a.toml").unwrap_or_else(|e| panic!("{e}"))
    }

    fn good(goodput_bps: f64, lateness_s: f64) -> Result<(Observed, Conditions), NoFigures> {
        let seen = Observed { goodput_bps, retransmitted: f64::NAN, ..Observed::default() };
        Ok((seen, Conditions { lateness_s, ..Conditions::default() }))
    }

    fn named(name: &str) -> Contender {
        Contender::named(name).expect("it exists")
    }

    #[test]
    fn a_transport_with_a_single_path_has_the_figures_of_the_best_one() {
        // The median decides, not the maximum.
        let goodput = [[1e6, 2e6, 90e6], [4e6, 5e6, 6e6], [3e6, 3e6, 3e6]];
        let row = measure(named("tcp-bbr"), &scenario(), 7..10, &|place, seed| {
            good(goodput[place][(seed - 7) as usize], seed as f64)
        });
        let row = row.expect("figures");
        assert_eq!(
            (row.paths.as_slice(), row.goodput_bps),
            (["b".to_owned()].as_slice(), Some(5e6))
        );
        assert_eq!((row.range_bps, row.lateness_s), (Some([4e6, 6e6]), 9.0));
        let each: Vec<(&str, f64)> =
            row.each_path.iter().map(|one| (one.path.as_str(), one.goodput_bps)).collect();
        assert_eq!(each, [("a", 2e6), ("b", 5e6), ("c", 3e6)]);
        assert_eq!((row.retransmitted, row.reason), (None, None));
    }

    #[test]
    fn a_transport_over_all_paths_runs_once_per_seed() {
        let row = measure(named("ropewalk"), &scenario(), 1..3, &|place, seed| {
            assert_eq!(place, 0);
            good(seed as f64, 0.0)
        });
        let row = row.expect("figures");
        assert_eq!((row.paths.join(" "), row.conditions.len()), ("a b c".to_owned(), 2));
        assert!(row.each_path.is_empty());
    }

    #[test]
    fn a_run_that_is_short_of_cpu_leaves_no_figure_of_any_path() {
        for name in ["tcp-cubic", "mptcp-cubic"] {
            let row = measure(named(name), &scenario(), 1..4, &|place, seed| {
                if seed == 2 && (place == 1 || name == "mptcp-cubic") {
                    return Err(NoFigures::ShortOfCpu("the emulator was late".to_owned()));
                }
                good(1e6, 0.0)
            });
            let row = row.expect("a row");
            assert_eq!((row.goodput_bps, row.range_bps, row.rtt_s), (None, None, None), "{name}");
            let path = if name == "tcp-cubic" { "b" } else { "a + b + c" };
            assert_eq!(row.reason, Some(format!("{path}: the emulator was late")));
        }
        let failure = Failure::Run("no".to_owned());
        let row = measure(named("iperf3"), &scenario(), 1..2, &|_, _| {
            Err(NoFigures::Failed(failure.clone()))
        });
        assert_eq!(row.map(|_| ()), Err(failure));
    }
}
