//! Pinned results of ready and drawn scenarios. A refactoring must not change them, and a change of behaviour shows
//! here which results it affects.
//!
//! `crates/lab/tests/pinned/` contains the expected lines. After an intended change, write them again with
//! `UPDATE_PINNED=1 cargo test -p ropewalk-lab --test all pinned -- --include-ignored --test-threads 1` and state
//! the reason in the commit.

// Logarithms and powers of other systems' libraries may differ in the last bit.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::path::Path;

use ropewalk_engine::scheduler::Scheduler;
use ropewalk_lab::compare::map_in_parallel;
use ropewalk_lab::draw::{Draw, DrawSet, Family};
use ropewalk_lab::{EngineFigures, RunOptions, RunResult, run};
use ropewalk_scenario::{Override, Scenario};
use sha2::{Digest, Sha256};

const PROTOCOLS: [&str; 2] = ["cmt-sctp", "mptcp"];
/// Number of paths of the drawn scenarios.
const PATHS: [usize; 4] = [2, 3, 4, 5];
/// Drawn scenarios per number of paths in every test run.
const FEW: u64 = 8;
/// The same for a manual run.
const ALL: u64 = 125;

/// The result of a run, without the speed of the simulator.
struct Outcome {
    json: String,
    goodput_bps: f64,
}

fn changes(protocol: &str, scheduler: &str) -> Vec<String> {
    vec![
        "transfer.duration=3 s".to_owned(),
        "transfer.warmup=0 s".to_owned(),
        format!("transfer.protocol={protocol}"),
        format!("transfer.scheduler={scheduler}"),
    ]
}

fn outcome(scenario: &Scenario) -> Outcome {
    match run(scenario, &RunOptions::default()) {
        Ok(run) => {
            let engine =
                EngineFigures { events: 0, packets: 0, cpu_s: 0.0, packets_per_cpu_s: 0.0 };
            let mut result = RunResult { engine, ..run.result };
            // The hashes are older than these figures.
            for path in &mut result.paths {
                (path.return_bytes, path.return_utilisation) = (0, 0.0);
            }
            let json = serde_json::to_string(&result).expect("a result is JSON");
            Outcome { json, goodput_bps: result.goodput_bps }
        }
        Err(error) => Outcome { json: error.to_string(), goodput_bps: 0.0 },
    }
}

fn hash(outcomes: &[Outcome]) -> String {
    let mut hasher = Sha256::new();
    outcomes.iter().for_each(|outcome| hasher.update(&outcome.json));
    hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// One line about these runs: their mean goodput, and a hash of all results.
fn line(name: &str, outcomes: &[Outcome]) -> String {
    let sum: f64 = outcomes.iter().map(|outcome| outcome.goodput_bps).sum();
    format!("{name} {:.0} {}", sum / outcomes.len() as f64, hash(outcomes))
}

/// The lines of all cases, computed on all cores.
fn lines<T: Sync>(cases: &[T], line_of: impl Fn(&T) -> String + Sync) -> Vec<String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    map_in_parallel(cases, threads, line_of)
}

/// Compares with the first lines of a file, or writes them.
fn compare(file: &str, lines: &[String]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pinned").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    if std::env::var_os("UPDATE_PINNED").is_some() {
        let more = text.lines().skip(lines.len());
        let all: Vec<_> = lines.iter().map(String::as_str).chain(more).collect();
        std::fs::write(&path, all.join("\n") + "\n").expect("the file can be written");
        return;
    }
    let differing: Vec<_> = lines
        .iter()
        .zip(text.lines().map(Some).chain(std::iter::repeat(None)))
        .filter(|(now, pinned)| Some(now.as_str()) != *pinned)
        .map(|(now, pinned)| format!("{}\n  now {now}", pinned.unwrap_or("nothing is pinned")))
        .collect();
    let (count, all) = (differing.len(), lines.len());
    assert!(differing.is_empty(), "{count} of {all} differ:\n{}", differing.join("\n"));
}

#[test]
fn ready_scenarios_give_the_pinned_results() {
    let mut cases = Vec::new();
    for file in crate::ready::files() {
        for protocol in PROTOCOLS {
            cases.extend(Scheduler::NAMES.map(|name| (file.clone(), protocol, name)));
        }
    }
    let found = lines(&cases, |(file, protocol, scheduler)| {
        let mut changes = changes(protocol, scheduler);
        let many = Scenario::load(file).is_ok_and(|s| s.world.associations > 4);
        changes.extend(many.then(|| "world.associations=4".to_owned()));
        let stem = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let name = format!("{stem} {protocol} {scheduler}");
        match Scenario::load_with(file, &changes) {
            Ok(scenario) => line(&name, &[outcome(&scenario)]),
            // Rules of one protocol, or for another number of paths, do not apply to all scenarios.
            Err(_) => format!("{name} - -"),
        }
    });
    compare("ready.txt", &found);
}

/// One line for each drawn scenario and protocol, over all schedulers.
fn draws(count: u64) -> Vec<String> {
    // By number, so that the lines of few draws are the first of all.
    let mut drawn = Draw::first(Family::Extreme, DrawSet::Training, &PATHS, count);
    drawn.sort_by_key(|draw| (draw.number, draw.paths));
    let cases: Vec<_> =
        drawn.iter().flat_map(|draw| PROTOCOLS.map(|protocol| (*draw, protocol))).collect();
    lines(&cases, |(draw, protocol)| {
        let outcomes: Vec<_> = Scheduler::NAMES
            .iter()
            .map(|scheduler| {
                let changes = changes(protocol, scheduler);
                let overrides: Vec<_> =
                    changes.iter().map(|change| Override { option: "test", change }).collect();
                draw.scenario_with(&overrides).map_or_else(
                    |error| Outcome { json: error.to_string(), goodput_bps: 0.0 },
                    |scenario| outcome(&scenario),
                )
            })
            .collect();
        let Draw { set, paths, number, .. } = draw;
        line(&format!("{}-{paths}-{number} {protocol}", set.as_str()), &outcomes)
    })
}

#[test]
fn a_few_drawn_scenarios_give_the_pinned_results() {
    compare("draws.txt", &draws(FEW));
}

#[test]
#[ignore = "takes some minutes"]
fn five_hundred_drawn_scenarios_give_the_pinned_results() {
    compare("draws.txt", &draws(ALL));
}
