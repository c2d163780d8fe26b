//! The ready scenarios run with every scheduler.

use ropewalk_engine::scheduler::Scheduler;
use ropewalk_lab::{RunOptions, run};
use ropewalk_scenario::Scenario;

#[test]
fn every_ready_scenario_runs_three_seconds_with_every_scheduler() {
    let files = crate::ready::files();
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        for name in Scheduler::NAMES {
            let mut changes = vec![
                "transfer.duration=3 s".to_owned(),
                "transfer.warmup=0 s".to_owned(),
                format!("transfer.scheduler={name}"),
            ];
            // A thousand homes take a minute; forty show the same.
            let many = Scenario::load(&file).is_ok_and(|s| s.world.associations > 40);
            changes.extend(many.then(|| "world.associations=40".to_owned()));
            let what = format!("{}, {name}", file.display());
            let scenario =
                Scenario::load_with(&file, &changes).unwrap_or_else(|e| panic!("{what}: {e}"));
            let finished = run(&scenario, &RunOptions::default());
            let result = finished.unwrap_or_else(|e| panic!("{what}: {e}")).result;
            assert!(result.delivered_bytes > 0, "{what}");
        }
    }
}
