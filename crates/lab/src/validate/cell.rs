//! One comparison, and its verdicts.

use serde::Serialize;

use super::{KernelTransport, Observed};

/// Limits within which simulator and kernel agree.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct Limits {
    /// Relative difference of goodput.
    pub goodput: f64,
    /// Relative difference of the median round trip of the busiest path.
    pub rtt: f64,
    /// Factor between the retransmitted parts.
    pub retransmitted: f64,
    /// Retransmitted part up to which it counts as none.
    pub negligible: f64,
}

/// The limits of [`Cell::judge`].
pub const LIMITS: Limits =
    Limits { goodput: 0.10, rtt: 0.15, retransmitted: 1.5, negligible: 1e-3 };

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
    /// Retransmitted part of the data sent.
    pub retransmitted: Judged,
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
    /// How late the emulator was at most, s.
    pub lateness_s: f64,
    /// The verdicts.
    pub verdict: Verdict,
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
    /// Cells whose retransmissions agree.
    pub retransmitted: usize,
}

impl Cell {
    /// Compares the runs of the kernel with those of the simulator. Neither may be empty.
    pub fn judge(
        scenario: String,
        transport: KernelTransport,
        kernel: Vec<Observed>,
        simulated: Vec<Observed>,
        lateness_s: f64,
    ) -> Self {
        let verdict = Verdict {
            goodput_bps: {
                let [kernel, simulated] =
                    [&kernel, &simulated].map(|runs| middle(runs, |one| Some(one.goodput_bps)));
                relative(kernel.unwrap_or(0.0), simulated.unwrap_or(0.0), LIMITS.goodput)
            },
            rtt_s: rtt(&kernel, &simulated),
            retransmitted: {
                let [kernel, simulated] =
                    [&kernel, &simulated].map(|runs| middle(runs, |one| Some(one.retransmitted)));
                factor(kernel.unwrap_or(0.0), simulated.unwrap_or(0.0))
            },
        };
        let transport = transport.as_str();
        Self { scenario, transport, kernel, simulated, lateness_s, verdict }
    }
}

/// The round trip of the path that carries most in the kernel's first run.
fn rtt(kernel: &[Observed], simulated: &[Observed]) -> Option<Judged> {
    let name = kernel.first()?.busiest()?.name.clone();
    let of = |one: &Observed| one.paths.iter().find(|path| path.name == name)?.rtt_s;
    let (kernel, simulated) = (middle(kernel, of)?, middle(simulated, of)?);
    Some(relative(kernel, simulated, LIMITS.rtt))
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

/// Counts the cells that agree.
pub fn summary(cells: &[Cell]) -> Summary {
    let count = |is: &dyn Fn(&Cell) -> bool| cells.iter().filter(|cell| is(cell)).count();
    Summary {
        cells: cells.len(),
        goodput: count(&|cell| cell.verdict.goodput_bps.within),
        rtt: count(&|cell| cell.verdict.rtt_s.is_some_and(|rtt| rtt.within)),
        rtt_cells: count(&|cell| cell.verdict.rtt_s.is_some()),
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

    fn judged(kernel: Vec<Observed>, simulated: Vec<Observed>) -> Verdict {
        Cell::judge("a".to_owned(), KernelTransport::Mptcp, kernel, simulated, 0.0).verdict
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
    fn the_round_trip_is_that_of_the_kernels_busiest_path_and_few_retransmissions_are_none() {
        let verdict = judged(vec![seen(1e6, 0.0, &[0.1, 0.9])], vec![seen(1e6, 9e-4, &[0.1, 0.2])]);
        assert!(verdict.rtt_s.expect("measured").within);
        assert!(verdict.retransmitted.within && verdict.retransmitted.ratio.is_none());
        let without = judged(vec![seen(1e6, 0.0, &[])], vec![seen(1e6, 0.0, &[])]);
        assert_eq!(without.rtt_s, None);
    }
}
