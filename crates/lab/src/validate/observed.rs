//! Observations from a run of the kernel or of the simulator.

use ropewalk_scenario::Scenario;
use serde::{Deserialize, Serialize};

use crate::error::RunError;
use crate::measure::Run;
use crate::run::run;
use crate::setup::RunOptions;

/// The figures of one run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Observed {
    /// User data that arrived in order per second after the warm-up, bit/s: all flows together, or the first one if the
    /// others have another congestion control (`world.other_congestion`).
    pub goodput_bps: f64,
    /// Retransmitted data as a part of the data sent.
    pub retransmitted: f64,
    /// Each path that carried data.
    pub paths: Vec<PathObserved>,
    /// Largest receive window that the sender knew, bytes; null if unknown.
    pub receive_window_bytes: Option<u64>,
    /// Over time, of the first flow.
    #[serde(skip)]
    pub trace: Trace,
}

/// One path.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct PathObserved {
    /// Name.
    pub name: String,
    /// Its part of the acknowledged data.
    pub share: f64,
    /// Median of the smoothed round trip after the warm-up, s.
    pub rtt_s: Option<f64>,
}

/// Time series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// End of the interval, s since the first SYN.
    pub time_s: Vec<f64>,
    /// Goodput in the interval, all flows together, bit/s.
    pub goodput_bps: Vec<f64>,
    /// Each path.
    pub paths: Vec<TracePath>,
    /// Receive window that the sender knows.
    pub window: TraceWindow,
}

/// The receive window over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceWindow {
    /// When, s since the first SYN.
    pub time_s: Vec<f64>,
    /// Receive window, bytes.
    pub bytes: Vec<f64>,
}

/// Time series of one path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TracePath {
    /// Name.
    pub name: String,
    /// When, s since the first SYN.
    pub time_s: Vec<f64>,
    /// Smoothed round trip, s.
    pub srtt_s: Vec<Option<f64>>,
    /// Congestion window, bytes.
    pub cwnd_bytes: Vec<f64>,
}

impl Observed {
    /// The round trip of the busiest path, s.
    pub fn rtt_s(&self) -> Option<f64> {
        self.busiest()?.rtt_s
    }

    /// The path of this name.
    pub fn path(&self, name: &str) -> Option<&PathObserved> {
        self.paths.iter().find(|path| path.name == name)
    }

    /// The busiest path.
    pub fn busiest(&self) -> Option<&PathObserved> {
        self.paths.iter().max_by(|a, b| a.share.total_cmp(&b.share))
    }

    /// Observations from a simulated run. `first`: whether to use the goodput of the first flow.
    pub fn of_run(run: &Run, first: bool) -> Self {
        let result = &run.result;
        let first_bps = result.association_goodput_bps.first().filter(|_| first);
        let sent: u64 = result.paths.iter().map(|path| path.sent_packets).sum();
        let again: u64 = result.paths.iter().map(|path| path.retransmitted_packets).sum();
        let delivered: u64 = result.paths.iter().map(|path| path.delivered_bytes).sum();
        let series = run.series.as_ref();
        let warm_s = result.warmup_s;
        let rtt_s = |name: &str| {
            let series = series?;
            let path = series.paths.iter().find(|path| path.name == name)?;
            let later = series.time_s.iter().zip(&path.srtt_s).filter(|(at, _)| **at > warm_s);
            median(later.filter_map(|(_, srtt)| *srtt).collect())
        };
        let paths = result.paths.iter().map(|path| PathObserved {
            name: path.name.clone(),
            share: path.delivered_bytes as f64 / delivered.max(1) as f64,
            rtt_s: rtt_s(&path.name),
        });
        Self {
            goodput_bps: first_bps.copied().unwrap_or(result.goodput_bps),
            retransmitted: again as f64 / sent.max(1) as f64,
            paths: paths.collect(),
            receive_window_bytes: series.and_then(|s| s.receive_window_bytes.iter().max().copied()),
            trace: series.map(trace).unwrap_or_default(),
        }
    }
}

fn trace(series: &crate::series::Series) -> Trace {
    let path = |path: &crate::series::PathSeries| TracePath {
        name: path.name.clone(),
        time_s: series.time_s.clone(),
        srtt_s: path.srtt_s.clone(),
        cwnd_bytes: path.cwnd_bytes.iter().map(|bytes| *bytes as f64).collect(),
    };
    Trace {
        time_s: series.time_s.clone(),
        goodput_bps: series.goodput_bps.clone(),
        paths: series.paths.iter().map(path).collect(),
        window: TraceWindow {
            time_s: series.time_s.clone(),
            bytes: series.receive_window_bytes.iter().map(|bytes| *bytes as f64).collect(),
        },
    }
}

/// The median. `None` if there are no values.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        return Some(values[middle]);
    }
    Some(f64::midpoint(*values.get(middle.checked_sub(1)?)?, values[middle]))
}

/// Simulates a scenario with `seed`.
///
/// # Errors
/// [`RunError`].
pub fn simulate(scenario: &Scenario, seed: u64) -> Result<Observed, RunError> {
    let mut scenario = scenario.clone();
    scenario.transfer.seed = seed;
    let options = RunOptions { series: true, ..RunOptions::default() };
    let first = scenario.world.other_congestion.is_some();
    run(&scenario, &options).map(|run| Observed::of_run(&run, first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }

    #[test]
    fn a_simulated_run_shows_shares_and_round_trips() {
        let text = "[transfer]\nprotocol = 'mptcp'\nduration = '4 s'\nwarmup = '1 s'\nreceive_buffer = '1 MiB'\n\
            [[path]]\nname = 'a'\nrate = '10 Mbit/s'\nrtt = '20 ms'\n[[path]]\nname = 'b'\nrate = '5 Mbit/s'\nrtt = '40 ms'\n";
        let scenario = Scenario::parse(text, "a.toml").unwrap_or_else(|e| panic!("{e}"));
        let seen = simulate(&scenario, 1).expect("it runs");
        assert!((seen.paths.iter().map(|path| path.share).sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!(seen.busiest().expect("two").name, "a");
        assert!(seen.rtt_s().is_some_and(|rtt| rtt > 0.019), "{seen:?}");
        assert_eq!(seen.trace.time_s.len(), 40);
        assert_eq!(seen.trace.window.bytes.len(), 40);
    }
}
