//! Goodput of the best single path of a scenario: the baseline of a bundle.

use ropewalk_scenario::{Scenario, SchedulerName, Target};
use serde::Serialize;

/// The best single path of a scenario.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct BestPath {
    /// Name of the path.
    pub name: String,
    /// Goodput of the path when it has the entire receive buffer, bit/s.
    pub goodput_bps: f64,
}

/// The scenario with only the path at `index`. The scheduler has no effect on one path, so it is set
/// to a fixed value: variants that differ only in it share a run.
pub fn alone(scenario: &Scenario, index: usize) -> Scenario {
    let mut alone = scenario.clone();
    alone.paths = vec![scenario.paths[index].clone()];
    alone.cross.retain(|cross| !matches!(cross.on, Target::Path(path) if path != index));
    for cross in &mut alone.cross {
        if matches!(cross.on, Target::Path(_)) {
            cross.on = Target::Path(0);
        }
    }
    alone.scheduler.name = SchedulerName::MinRtt;
    alone.scheduler.custom = None;
    alone.record.decisions = false;
    alone
}

/// Index of the path with the highest mean goodput over the runs. The mean is taken first: the best of single runs
/// would be higher by chance. A path with a failed run is left out.
pub fn best(runs: &[&[Option<f64>]]) -> Option<usize> {
    let paths = runs.first()?.len();
    let sum = |path: usize| runs.iter().map(|run| run[path]).sum::<Option<f64>>();
    let known = (0..paths).filter_map(|path| Some((path, sum(path)?)));
    // Among equal ones the first, so that the result is deterministic.
    known.reduce(|best, one| if one.1 > best.1 { one } else { best }).map(|(path, _)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_alone_keeps_only_the_traffic_that_crosses_it() {
        let text = "[[path]]\nname = 'wifi'\n[[path]]\nname = 'lte'\n\
                    [[cross]]\nkind = 'poisson'\non = 'wifi'\nrate = '1 Mbit/s'\n\
                    [[cross]]\nkind = 'poisson'\non = 'lte'\nrate = '2 Mbit/s'\n";
        let scenario = Scenario::parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
        let lte = alone(&scenario, 1);
        assert_eq!((lte.paths.len(), lte.paths[0].name.as_str()), (1, "lte"));
        assert_eq!(lte.cross.len(), 1);
        assert_eq!(lte.cross[0].on, Target::Path(0));
    }

    #[test]
    fn the_best_path_has_the_highest_mean_and_no_failed_run() {
        for (runs, expected) in [
            (vec![vec![Some(1.0), Some(3.0), None]], Some(1)),
            (vec![vec![Some(1.0), Some(1.0)]], Some(0)),
            (vec![vec![None]], None),
            // The second has the best single run.
            (vec![vec![Some(5.0), Some(7.0)], vec![Some(5.0), Some(1.0)]], Some(0)),
            (vec![vec![Some(5.0), Some(7.0)], vec![Some(5.0), None]], Some(0)),
            (vec![vec![]], None),
            (vec![], None),
        ] {
            let runs: Vec<&[Option<f64>]> = runs.iter().map(|run| &**run).collect();
            assert_eq!(best(&runs), expected, "{runs:?}");
        }
    }
}
