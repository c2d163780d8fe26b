//! Goodput of the best single path of a scenario: the baseline of a bundle.

use ropewalk_scenario::{Scenario, SchedulerName, Target};
use serde::Serialize;

/// The best single path of a scenario.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct BestPath {
    /// Name of the path.
    pub name: String,
    /// Goodput of the path when it has the whole receive buffer, bit/s.
    pub goodput_bps: f64,
}

/// The scenario with only the path at `index`. Scheduler and guard have no effect on one path, so they are set
/// to fixed values: variants that differ only in them share a run.
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
    alone.transfer.guard = false;
    alone.record.decisions = false;
    alone
}

/// The highest goodput of some paths; failed runs are left out.
pub fn best(goodputs: impl IntoIterator<Item = (String, Option<f64>)>) -> Option<BestPath> {
    let known = goodputs
        .into_iter()
        .filter_map(|(name, goodput_bps)| Some(BestPath { name, goodput_bps: goodput_bps? }));
    // Among equal ones the first, so that the result is deterministic.
    known.reduce(|best, one| if one.goodput_bps > best.goodput_bps { one } else { best })
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
    fn the_best_is_the_fastest_that_did_not_fail() {
        let of = |list: &[(&str, Option<f64>)]| {
            best(list.iter().map(|(name, bps)| ((*name).to_owned(), *bps))).map(|best| best.name)
        };
        assert_eq!(of(&[("a", Some(1.0)), ("b", Some(3.0)), ("c", None)]).as_deref(), Some("b"));
        assert_eq!(of(&[("a", Some(1.0)), ("b", Some(1.0))]).as_deref(), Some("a"));
        assert_eq!(of(&[("a", None)]), None);
    }
}
