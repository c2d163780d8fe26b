//! One comparison, and its verdicts.

use ropewalk_scenario::Path;
use serde::Serialize;

use super::{KernelTransport, Observed};

/// Limits within which simulator and kernel agree.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct Limits {
    /// Relative difference of goodput.
    pub goodput: f64,
    /// Relative difference of the median round trip of the busiest path.
    pub rtt: f64,
    /// Relative difference of its queueing delay.
    pub queueing: f64,
    /// Difference of queueing delays that is ignored, s.
    pub negligible_s: f64,
    /// Maximum factor between the retransmitted parts.
    pub retransmitted: f64,
    /// Retransmitted part that is ignored.
    pub negligible: f64,
}

/// The limits of [`Cell::judge`].
pub const LIMITS: Limits = Limits {
    goodput: 0.10,
    rtt: 0.15,
    queueing: 0.25,
    negligible_s: 1e-3,
    retransmitted: 1.5,
    negligible: 1e-3,
};

/// A figure of both, and whether they agree.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct Judged {
    /// The kernel's: the median of the runs.
    pub kernel: f64,
    /// The simulator's: the median of the seeds.
    pub simulated: f64,
    /// Simulated divided by the kernel's; null if the latter is 0.
    pub ratio: Option<f64>,
    /// Whether they agree.
    pub within: bool,
}

/// The figures of a cell and whether they agree.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct Verdict {
    /// Goodput, bit/s.
    pub goodput_bps: Judged,
    /// Median round trip of the kernel's busiest path, s; null without samples.
    pub rtt_s: Option<Judged>,
    /// Median queueing delay of that path, s: the round trip less the propagation delays; null without samples.
    pub queueing_s: Option<Judged>,
    /// Retransmitted part of the data sent.
    pub retransmitted: Judged,
}

/// A figure of both, medians of the runs; null if unknown.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct Both {
    /// The kernel's.
    pub kernel: Option<f64>,
    /// The simulator's.
    pub simulated: Option<f64>,
}

/// A path in the kernel and in the simulator.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct ComparedPath {
    /// Name.
    pub name: String,
    /// Its part of the acknowledged data.
    pub share: Both,
    /// Median of the smoothed round trip after the warm-up, s.
    pub rtt_s: Both,
}

/// Minimum and maximum goodput of the runs, bit/s.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct Ranges {
    /// The kernel's.
    pub kernel: [f64; 2],
    /// The simulator's.
    pub simulated: [f64; 2],
}

/// A transport over the links of a scenario.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Cell {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the transport.
    pub transport: &'static str,
    /// Each run of the kernel.
    pub kernel: Vec<Observed>,
    /// Each seed of the simulator.
    pub simulated: Vec<Observed>,
    /// Maximum lateness of the emulator, s.
    pub lateness_s: f64,
    /// The verdicts.
    pub verdict: Verdict,
    /// Each path that the kernel used.
    pub paths: Vec<ComparedPath>,
    /// Largest receive window that the sender knew, bytes.
    pub receive_window_bytes: Both,
    /// Ranges of goodput over the runs.
    pub goodput_range_bps: Ranges,
}

/// Numbers of cells.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Summary {
    /// All cells.
    pub cells: usize,
    /// Cells whose goodput agrees.
    pub goodput: usize,
    /// Cells whose round trip agrees.
    pub rtt: usize,
    /// Cells with samples of the round trip.
    pub rtt_cells: usize,
    /// Cells whose queueing delay agrees.
    pub queueing: usize,
    /// Cells whose retransmissions agree.
    pub retransmitted: usize,
}

impl Cell {
    /// Compares the runs of the kernel with those of the simulator. Neither may be empty. `paths`: the paths of
    /// the scenario.
    pub fn judge(
        scenario: String,
        paths: &[Path],
        transport: KernelTransport,
        kernel: Vec<Observed>,
        simulated: Vec<Observed>,
        lateness_s: f64,
    ) -> Self {
        let rtt = rtt(&kernel, &simulated);
        let verdict = Verdict {
            goodput_bps: {
                let [kernel, simulated] =
                    [&kernel, &simulated].map(|runs| middle(runs, |one| Some(one.goodput_bps)));
                relative(kernel.unwrap_or(0.0), simulated.unwrap_or(0.0), LIMITS.goodput)
            },
            rtt_s: rtt.map(|(_, rtt)| rtt),
            queueing_s: rtt.and_then(|(name, rtt)| queueing(paths, name, &rtt)),
            retransmitted: {
                let [kernel, simulated] =
                    [&kernel, &simulated].map(|runs| middle(runs, |one| Some(one.retransmitted)));
                factor(kernel.unwrap_or(0.0), simulated.unwrap_or(0.0))
            },
        };
        let both = |figure: &dyn Fn(&Observed) -> Option<f64>| Both {
            kernel: middle(&kernel, figure),
            simulated: middle(&simulated, figure),
        };
        let window = |one: &Observed| one.receive_window_bytes.map(|bytes| bytes as f64);
        let path = |name: &String| ComparedPath {
            name: name.clone(),
            share: both(&|one| Some(one.path(name)?.share)),
            rtt_s: both(&|one| one.path(name)?.rtt_s),
        };
        let used = kernel.iter().flat_map(|one| &one.paths).filter(|path| path.rtt_s.is_some());
        let mut names: Vec<&String> = Vec::new();
        for path in used {
            if !names.contains(&&path.name) {
                names.push(&path.name);
            }
        }
        Self {
            scenario,
            transport: transport.as_str(),
            lateness_s,
            verdict,
            paths: names.into_iter().map(path).collect(),
            receive_window_bytes: both(&window),
            goodput_range_bps: Ranges { kernel: range(&kernel), simulated: range(&simulated) },
            kernel,
            simulated,
        }
    }
}

fn range(runs: &[Observed]) -> [f64; 2] {
    let each = || runs.iter().map(|one| one.goodput_bps);
    [each().fold(f64::INFINITY, f64::min), each().fold(0.0, f64::max)]
}

/// The kernel's busiest path in its first run, and its round trip.
fn rtt<'a>(kernel: &'a [Observed], simulated: &[Observed]) -> Option<(&'a str, Judged)> {
    let name = kernel.first()?.busiest()?.name.as_str();
    let of = |one: &Observed| one.path(name)?.rtt_s;
    let (kernel, simulated) = (middle(kernel, of)?, middle(simulated, of)?);
    Some((name, relative(kernel, simulated, LIMITS.rtt)))
}

/// The queueing delay of the path of this name, from its round trip.
fn queueing(paths: &[Path], name: &str, rtt: &Judged) -> Option<Judged> {
    let path = paths.iter().find(|path| path.name == name)?;
    let least_s = (path.up.delay + path.down.delay).as_secs_f64();
    let [kernel, simulated] = [rtt.kernel, rtt.simulated].map(|rtt| (rtt - least_s).max(0.0));
    let mut judged = relative(kernel, simulated, LIMITS.queueing);
    judged.within |= (kernel - simulated).abs() <= LIMITS.negligible_s;
    Some(judged)
}

fn middle(runs: &[Observed], figure: impl Fn(&Observed) -> Option<f64>) -> Option<f64> {
    super::median(runs.iter().filter_map(figure).collect())
}

fn ratio(kernel: f64, simulated: f64) -> Option<f64> {
    (kernel > 0.0).then(|| simulated / kernel)
}

fn relative(kernel: f64, simulated: f64, limit: f64) -> Judged {
    let ratio = ratio(kernel, simulated);
    let within = ratio.is_some_and(|ratio| (ratio - 1.0).abs() <= limit);
    Judged { kernel, simulated, ratio, within }
}

fn factor(kernel: f64, simulated: f64) -> Judged {
    let [low, high] = [kernel.min(simulated), kernel.max(simulated)];
    let within = high <= LIMITS.negligible || high <= LIMITS.retransmitted * low;
    Judged { kernel, simulated, ratio: ratio(kernel, simulated), within }
}

/// Counts the cells in which both agree.
pub fn summary(cells: &[Cell]) -> Summary {
    let count = |is: &dyn Fn(&Cell) -> bool| cells.iter().filter(|cell| is(cell)).count();
    Summary {
        cells: cells.len(),
        goodput: count(&|cell| cell.verdict.goodput_bps.within),
        rtt: count(&|cell| cell.verdict.rtt_s.is_some_and(|rtt| rtt.within)),
        rtt_cells: count(&|cell| cell.verdict.rtt_s.is_some()),
        queueing: count(&|cell| cell.verdict.queueing_s.is_some_and(|delay| delay.within)),
        retransmitted: count(&|cell| cell.verdict.retransmitted.within),
    }
}

#[cfg(test)]
mod tests {
    use super::super::PathObserved;
    use super::*;

    fn seen(goodput_bps: f64, retransmitted: f64, rtts: &[f64]) -> Observed {
        let path = |(at, rtt): (usize, &f64)| PathObserved {
            name: format!("path{at}"),
            share: 1.0 / (at as f64 + 2.0),
            rtt_s: Some(*rtt),
        };
        let paths = rtts.iter().enumerate().map(path).collect();
        Observed { goodput_bps, retransmitted, paths, ..Observed::default() }
    }

    /// A path of 20 ms.
    fn paths() -> Vec<Path> {
        let text = "[[path]]\nname = 'path0'\nrate = '1 Mbit/s'\nrtt = '20 ms'\n";
        let parsed = ropewalk_scenario::Scenario::parse(text, "a.toml");
        parsed.unwrap_or_else(|e| panic!("{e}")).paths
    }

    #[test]
    fn queueing_delay_is_the_round_trip_less_the_propagation_delays() {
        for (kernel, simulated, within) in
            [(0.060, 0.051, true), (0.060, 0.049, false), (0.0210, 0.0205, true)]
        {
            let verdict =
                judged(vec![seen(1e6, 0.0, &[kernel])], vec![seen(1e6, 0.0, &[simulated])]);
            let queueing = verdict.queueing_s.expect("the path is known");
            assert!((queueing.kernel - (kernel - 0.020)).abs() < 1e-9);
            assert_eq!(queueing.within, within, "{kernel} {simulated}");
        }
    }

    fn judged(kernel: Vec<Observed>, simulated: Vec<Observed>) -> Verdict {
        Cell::judge("a".to_owned(), &paths(), KernelTransport::Mptcp, kernel, simulated, 0.0)
            .verdict
    }

    #[test]
    fn medians_are_compared_with_the_limits() {
        let kernel =
            vec![seen(9e6, 0.01, &[0.1]), seen(10e6, 0.02, &[0.1]), seen(50e6, 0.0, &[0.1])];
        let near = judged(kernel.clone(), vec![seen(10.9e6, 0.014, &[0.114])]);
        assert!(near.goodput_bps.within && near.retransmitted.within, "{near:?}");
        assert!(near.rtt_s.expect("measured").within);
        let far = judged(kernel, vec![seen(11.1e6, 0.016, &[0.116])]);
        assert!(!far.goodput_bps.within && !far.retransmitted.within, "{far:?}");
        assert!(!far.rtt_s.expect("measured").within);
    }

    #[test]
    fn paths_and_ranges_are_those_of_the_runs() {
        let kernel = vec![seen(2e6, 0.0, &[0.1, 0.2]), seen(4e6, 0.0, &[0.3, 0.2])];
        let simulated = vec![seen(3e6, 0.0, &[0.5])];
        let cell =
            Cell::judge("a".to_owned(), &paths(), KernelTransport::Mptcp, kernel, simulated, 0.0);
        let range = cell.goodput_range_bps;
        assert_eq!((range.kernel, range.simulated), ([2e6, 4e6], [3e6, 3e6]));
        let names: Vec<&str> = cell.paths.iter().map(|path| path.name.as_str()).collect();
        assert_eq!(names, ["path0", "path1"]);
        assert_eq!(cell.paths[0].rtt_s, Both { kernel: Some(0.2), simulated: Some(0.5) });
        assert_eq!(cell.paths[1].rtt_s, Both { kernel: Some(0.2), simulated: None });
        assert_eq!(cell.paths[1].share.kernel, Some(1.0 / 3.0));
    }

    #[test]
    fn the_round_trip_is_that_of_the_kernels_busiest_path_and_few_retransmissions_are_none() {
        let verdict = judged(vec![seen(1e6, 0.0, &[0.1, 0.9])], vec![seen(1e6, 9e-4, &[0.1, 0.2])]);
        assert!(verdict.rtt_s.expect("measured").within);
        assert!(verdict.retransmitted.within && verdict.retransmitted.ratio.is_none());
        let without = judged(vec![seen(1e6, 0.0, &[])], vec![seen(1e6, 0.0, &[])]);
        assert_eq!(without.rtt_s, None);
    }
}
