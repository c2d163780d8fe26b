//! Converts the scenario to the models' tables, and reports what they do not cover.

use ropewalk_models::lossy::window_limit;
use ropewalk_models::optimise::PathTable;
use ropewalk_scenario::{Capacity, Loss, Protocol, Scenario};

use super::TuneError;
use crate::engine_config;
use crate::loss::LossKind;
use crate::lossy::{ModelPath, NoModel, packet_bytes};

/// Bytes of a DATA chunk before its user data (RFC 9260, 3.3.1).
pub(super) const DATA_HEADER: u32 = 16;
/// Limit on the number of sums of two throughputs; this many take some seconds.
const WORK_MAX: u64 = 4_000_000_000;
/// The largest table, packets: 1.5 GB of window in packets of 1500 bytes.
const TABLE_MAX: u32 = 1 << 20;

/// The paths as input of the models, if these cover the scenario.
pub(super) fn model_paths(scenario: &Scenario) -> Result<Vec<ModelPath>, TuneError> {
    if let [only] = scenario.paths.as_slice() {
        return Err(TuneError::OnePath { path: only.name.clone() });
    }
    if scenario.transfer.protocol != Protocol::CmtSctp {
        return Err(TuneError::OneAtATime);
    }
    let crossing = scenario.paths.iter().filter(|path| !path.via.is_empty());
    let paths: Vec<String> = crossing.map(|path| path.name.clone()).collect();
    if !paths.is_empty() {
        return Err(TuneError::SharedLinks { paths });
    }
    let aired = scenario.paths.iter().filter(|path| path.wifi.is_some());
    let paths: Vec<String> = aired.map(|path| path.name.clone()).collect();
    if !paths.is_empty() {
        return Err(TuneError::OverTheAir { paths });
    }
    let associations = scenario.world.associations;
    if associations > 1 {
        return Err(TuneError::SharedPaths { associations });
    }
    let one = |path: &ropewalk_scenario::Path| {
        ModelPath::new(scenario, path).map_err(|why| match why {
            NoModel::ListedLosses => TuneError::ListedLosses { path: path.name.clone() },
            NoModel::Number(error) => TuneError::Number { path: path.name.clone(), error },
        })
    };
    scenario.paths.iter().map(one).collect()
}

/// Throughput of each path for every useful limit.
pub(super) fn tables(
    scenario: &Scenario,
    paths: &[ModelPath],
) -> Result<Vec<PathTable>, TuneError> {
    let limits: Vec<u64> =
        paths.iter().map(|path| window_limit(path.rate_pps, path.delay_s).into()).collect();
    let packets: u64 = limits.iter().sum();
    // The optimiser adds the paths in turn, the last one at no cost.
    let middle = limits.len().saturating_sub(1).max(1);
    let work = limits[1..middle]
        .iter()
        .fold(0_u64, |sum, limit| sum.saturating_add(limit.saturating_mul(packets)));
    if work > WORK_MAX || limits.iter().any(|limit| *limit > u64::from(TABLE_MAX)) {
        return Err(TuneError::TooLarge { packets });
    }
    let each = paths.iter().zip(&scenario.paths);
    each.map(|(path, of)| {
        let number = |error| TuneError::Number { path: of.name.clone(), error };
        path.table(u32::MAX).map_err(number)
    })
    .collect()
}

/// The smallest `transfer.receive_buffer` that holds this many packets, bytes.
pub(super) fn bytes_for(scenario: &Scenario, packets: u32) -> u64 {
    let config = engine_config::config(scenario);
    let each = match config.window_unit {
        ropewalk_engine::sctp::WindowUnit::Bytes => u64::from(config.chunk_limit()),
        // The buffer is counted in packets of the MTU.
        ropewalk_engine::sctp::WindowUnit::Packets => packet_bytes(scenario) as u64,
    };
    u64::from(packets) * each
}

/// Properties of the scenario that the models ignore.
pub(super) fn notes(scenario: &Scenario, paths: &[ModelPath]) -> Vec<String> {
    let named = |wanted: &dyn Fn(usize) -> bool| {
        let names = scenario.paths.iter().enumerate().filter(|(i, _)| wanted(*i));
        names.map(|(_, path)| path.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let cases: [(String, &str); 5] = [
        (
            named(&|i| paths[i].kind == LossKind::Bursts),
            "loses in bursts; the model counts a burst as one lost packet",
        ),
        (
            named(&|i| matches!(scenario.paths[i].up.capacity, Capacity::Trace(_))),
            "follows a trace; the model uses its mean rate only",
        ),
        (
            named(&|i| {
                let path = &scenario.paths[i];
                let steps = !path.up.steps.is_empty() || !path.down.steps.is_empty();
                steps || !path.outages.is_empty()
            }),
            "changes during the run; the model uses its initial values",
        ),
        (
            named(&|i| {
                scenario.paths[i].up.jitter.is_some() || scenario.paths[i].up.reorder.is_some()
            }),
            "varies in delay, which the model ignores",
        ),
        (
            named(&|i| scenario.paths[i].down.loss != Loss::None),
            "loses acknowledgements, which the model ignores",
        ),
    ];
    let cases = cases.into_iter().filter(|(names, _)| !names.is_empty());
    let mut notes: Vec<String> = cases.map(|(names, what)| format!("{names}: {what}")).collect();
    if !scenario.cross.is_empty() {
        notes.push("cross traffic ([[cross]]) is ignored".to_owned());
    }
    let enough = crate::predict::predict(scenario);
    if enough.receive_buffer_min_bytes.is_some_and(|least| enough.receive_buffer_bytes < least) {
        notes.push(
            "the receive buffer is small enough to block: packets that wait in it for another path take room \
             that the models do not count; --check shows what that costs"
                .to_owned(),
        );
    }
    notes
}
