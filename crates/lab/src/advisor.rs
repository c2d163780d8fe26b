//! Adapts the throughput models to the engine's [`LimitAdvisor`]: advice on window limits during a run.

use ropewalk_engine::window::{Advice, Budget, LimitAdvisor, MeasuredPath};
use ropewalk_models::optimise::{Members, PathTable, allocate};
use ropewalk_models::{LossModel, LossyPath};

/// Longest retransmission timeout passed to the models, seconds (RFC 9260, 16: RTO.Max).
const RTO_MAX_S: f64 = 60.0;
/// Relative change of a measured value below which the previous advice stays valid.
const INPUT_TOLERANCE: f64 = 0.1;
/// Factor by which the predicted throughput of new limits must exceed that of the current ones: each change has
/// a small cost.
const MIN_GAIN: f64 = 1.005;
/// Largest window, in packets, that is computed by the Markov chain. The renewal model serves above it: the
/// chain would take too long.
const CHAIN_WINDOW_MAX: u32 = 500;

/// Limits that maximise the modelled throughput of all paths (Wallace and Shami, 2014, Eq 56 to 60).
#[derive(Clone, Debug, Default)]
pub struct ModelAdvisor {
    /// Input of the previous computation.
    last_input: Option<(Budget, Vec<MeasuredPath>)>,
}

impl ModelAdvisor {
    /// Whether the input differs too little from the previous one to compute again.
    fn is_nearly_unchanged(&self, budget: &Budget, paths: &[MeasuredPath]) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= INPUT_TOLERANCE * a.max(b);
        self.last_input.as_ref().is_some_and(|(old_budget, old)| {
            let alike = |(a, b): (&MeasuredPath, &MeasuredPath)| {
                near(a.rate.as_bps() as f64, b.rate.as_bps() as f64)
                    && near(a.round_trip.as_secs_f64(), b.round_trip.as_secs_f64())
                    && near(a.loss, b.loss)
            };
            old_budget == budget && old.len() == paths.len() && old.iter().zip(paths).all(alike)
        })
    }
}

fn table(path: &MeasuredPath, budget: &Budget, packets: u32) -> Option<PathTable> {
    let (rate, delay) = (path.rate.as_bps() as f64, path.round_trip.as_secs_f64());
    let path = LossyPath::from_bits(rate, delay, path.loss, RTO_MAX_S, budget.chunk as f64).ok()?;
    if packets.min(path.window_limit()) <= CHAIN_WINDOW_MAX {
        PathTable::markov(&path, packets, LossModel::Independent).ok()
    } else {
        PathTable::renewal(&path, packets).ok()
    }
}

impl LimitAdvisor for ModelAdvisor {
    fn advise(
        &mut self,
        budget: &Budget,
        paths: &[MeasuredPath],
        current: Option<&Advice>,
    ) -> Option<Advice> {
        if self.is_nearly_unchanged(budget, paths) {
            return None;
        }
        self.last_input = Some((*budget, paths.to_vec()));
        let packets = u32::try_from(budget.buffer / budget.chunk).ok()?;
        let tables: Option<Vec<_>> = paths.iter().map(|p| table(p, budget, packets)).collect();
        let tables = tables?;
        let best = allocate(&tables, packets, Members::All).ok()?;
        let predicted = |limits: &[u64]| -> f64 {
            let packets =
                limits.iter().map(|b| u32::try_from(b / budget.chunk).unwrap_or(u32::MAX));
            tables.iter().zip(packets).map(|(table, c)| table.throughput_pps(c)).sum()
        };
        if current.is_some_and(|now| best.throughput_pps < predicted(&now.limits) * MIN_GAIN) {
            return None;
        }
        let equal = vec![budget.buffer / tables.len().max(1) as u64; tables.len()];
        Some(Advice {
            limits: best.limits_packets.iter().map(|c| u64::from(*c) * budget.chunk).collect(),
            over_equal_shares: best.throughput_pps / predicted(&equal),
        })
    }

    fn clone_box(&self) -> Box<dyn LimitAdvisor> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ropewalk_base::{Duration, Rate};

    #[test]
    fn a_path_that_begins_to_lose_gives_its_share_away_and_small_changes_move_nothing() {
        let budget = Budget { buffer: 87 * 1500, chunk: 1500 };
        let path = |mbps: u64, loss| MeasuredPath {
            rate: Rate::from_bps(mbps * 1_000_000),
            round_trip: Duration::from_millis(40),
            loss,
        };
        let mut advisor = ModelAdvisor::default();
        let calm = [path(21, 1e-4), path(20, 1e-4)];
        let first = advisor.advise(&budget, &calm, None).expect("there is none yet");
        assert!(first.limits.iter().sum::<u64>() <= budget.buffer);
        assert!((1.0..1.03).contains(&first.over_equal_shares), "{first:?}");
        let same = [path(21, 1.05e-4), path(20, 1e-4)];
        assert_eq!(advisor.advise(&budget, &same, Some(&first)), None);
        let rough = [path(21, 1e-2), path(20, 1e-4)];
        let second = advisor.advise(&budget, &rough, Some(&first)).expect("much has changed");
        let gives = second.limits[0] < first.limits[0] && second.limits[1] > first.limits[1];
        assert!(gives && second.over_equal_shares > 1.2, "{first:?} became {second:?}");
    }
}
