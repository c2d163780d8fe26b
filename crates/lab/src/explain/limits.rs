//! Finds what limits the goodput of a scenario: simulates it again with one thing changed at a
//! time.

use std::iter::once;
use std::sync::atomic::{AtomicUsize, Ordering};

use ropewalk_scenario::{
    Congestion, LinuxTurns, Loss, Preset, ReceiveRules, Scenario, SchedulerName,
};
use serde::Serialize;

use crate::advise::on_paths;
use crate::compare::{Estimate, map_in_parallel, mean};
use crate::error::RunError;
use crate::run::run;
use crate::setup::RunOptions;

/// Minimum relative change of the goodput, beyond its interval, for a change to count as a limit.
const LEAST_GAIN: f64 = 0.02;
/// Factor by which the receive buffer grows.
const BUFFER: u64 = 4;

/// What limits the goodput, `ropewalk.explain-limits/1`.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Limits {
    /// `ropewalk.explain-limits/1`.
    pub schema: &'static str,
    /// Protocol.
    pub protocol: String,
    /// Scheduler.
    pub scheduler: String,
    /// Number of runs behind each figure.
    pub seeds: u64,
    /// Goodput of the scenario as it is, bit/s.
    pub goodput_bps: Estimate,
    /// The changes, the most goodput first.
    pub changes: Vec<ChangedRun>,
    /// The conclusions as sentences.
    pub conclusions: Vec<String>,
}

/// The scenario with one thing changed.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct ChangedRun {
    /// The change.
    pub change: String,
    /// The key of the scenario and its value; null for a set of paths and for losses.
    pub set: Option<String>,
    /// Goodput with the change, bit/s.
    pub goodput_bps: Estimate,
    /// Goodput with the change divided by that without it, seed by seed.
    pub ratio: Estimate,
    /// What it means if the goodput is higher with the change.
    pub meaning: String,
}

/// A change before it is simulated.
struct Change {
    change: String,
    set: Option<String>,
    meaning: String,
    scenario: Scenario,
}

/// Simulates a scenario with one thing changed at a time, each with `seeds` seeds on `threads` threads. `told` is
/// called with the completed share of the work, 0 to 1.
///
/// # Errors
/// If a run fails.
pub fn limits(
    scenario: &Scenario,
    seeds: u64,
    threads: usize,
    told: &(dyn Fn(f64) + Sync),
) -> Result<Limits, RunError> {
    let changes = changes(scenario);
    let all: Vec<&Scenario> =
        once(scenario).chain(changes.iter().map(|change| &change.scenario)).collect();
    let jobs: Vec<(&Scenario, u64)> =
        all.iter().flat_map(|one| (0..seeds).map(|seed| (*one, seed))).collect();
    let done = AtomicUsize::new(0);
    let goodputs = map_in_parallel(&jobs, threads, |(scenario, seed)| {
        let found = goodput(scenario, *seed);
        let count = done.fetch_add(1, Ordering::Relaxed) + 1;
        told(count as f64 / jobs.len() as f64);
        found
    });
    let goodputs = goodputs.into_iter().collect::<Result<Vec<f64>, _>>()?;
    let mut of_each = goodputs.chunks(seeds.max(1) as usize);
    let own = of_each.next().unwrap_or_default();
    let mut changed: Vec<ChangedRun> =
        changes.into_iter().zip(of_each).map(|(change, with)| change.measured(own, with)).collect();
    changed.sort_by(|a, b| b.ratio.mean.total_cmp(&a.ratio.mean));
    Ok(Limits {
        schema: "ropewalk.explain-limits/1",
        protocol: scenario.transfer.protocol.to_string(),
        scheduler: scenario.scheduler.name.to_string(),
        seeds,
        goodput_bps: mean(own.iter().copied()),
        conclusions: conclusions(&changed),
        changes: changed,
    })
}

fn goodput(scenario: &Scenario, seed: u64) -> Result<f64, RunError> {
    let mut scenario = scenario.clone();
    scenario.transfer.seed = scenario.transfer.seed.wrapping_add(seed);
    Ok(run(&scenario, &RunOptions::default())?.result.goodput_bps)
}

impl Change {
    fn measured(self, own: &[f64], with: &[f64]) -> ChangedRun {
        ChangedRun {
            change: self.change,
            set: self.set,
            meaning: self.meaning,
            goodput_bps: mean(with.iter().copied()),
            ratio: mean(own.iter().zip(with).map(|(own, with)| with / own.max(1.0))),
        }
    }
}

/// The changes that are applicable to a scenario.
fn changes(scenario: &Scenario) -> Vec<Change> {
    let mut all = subsets(scenario);
    let mut add = |change: &str, set: Option<&str>, meaning: &str, with: &dyn Fn(&mut Scenario)| {
        let mut changed = scenario.clone();
        with(&mut changed);
        all.push(Change {
            change: change.to_owned(),
            set: set.map(str::to_owned),
            meaning: meaning.to_owned(),
            scenario: changed,
        });
    };
    let larger = scenario.transfer.receive_buffer.saturating_mul(BUFFER);
    add(
        &format!("{BUFFER} times the receive buffer"),
        Some(&format!("transfer.receive_buffer={larger}B")),
        "the receive buffer limits",
        &|changed| {
            changed.transfer.receive_buffer = larger;
            let most = &mut changed.tcp.receive_buffer_max;
            *most = most.map(|most| most.saturating_mul(BUFFER));
        },
    );
    let is_lossy =
        |path: &ropewalk_scenario::Path| path.up.loss != Loss::None || path.down.loss != Loss::None;
    if scenario.paths.iter().any(is_lossy) {
        add("no random losses", None, "random losses limit the congestion windows", &|changed| {
            for path in &mut changed.paths {
                (path.up.loss, path.down.loss) = (Loss::None, Loss::None);
            }
        });
    }
    // The fragments and Nagle's algorithm of Linux stall a scheduler that chooses a path for each
    // packet.
    let is_free = !follows_linux(scenario) && scenario.scheduler.name != SchedulerName::Lay;
    if scenario.paths.len() > 1 && is_free {
        add("scheduler lay", Some("transfer.scheduler=lay"), "the scheduler limits", &|changed| {
            changed.scheduler.name = SchedulerName::Lay;
            changed.scheduler.custom = None;
        });
    }
    if scenario.transfer.congestion != Congestion::Bbr {
        add(
            "congestion control bbr",
            Some("transfer.congestion=bbr"),
            "the congestion control limits: it takes losses or full queues as its measure",
            &|changed| changed.transfer.congestion = Congestion::Bbr,
        );
    }
    if follows_linux(scenario) {
        linux(&mut add);
    }
    all
}

/// Each path alone, and with three or more paths all but one.
fn subsets(scenario: &Scenario) -> Vec<Change> {
    let count = scenario.paths.len();
    let subset = |change: String, paths: Vec<usize>, meaning: String| Change {
        change,
        set: None,
        meaning,
        scenario: on_paths(scenario, &paths),
    };
    let mut all = Vec::new();
    for (place, path) in scenario.paths.iter().enumerate().filter(|_| count > 1) {
        let name = &path.name;
        all.push(subset(
            format!("{name} only"),
            vec![place],
            format!("the bundle has less goodput than {name} alone"),
        ));
        if count > 2 {
            let others = (0..count).filter(|other| *other != place).collect();
            let meaning = format!("{name} costs more goodput than it adds");
            all.push(subset(format!("all but {name}"), others, meaning));
        }
    }
    all
}

/// Whether the receive window follows the rules of Linux.
fn follows_linux(scenario: &Scenario) -> bool {
    match scenario.tcp.receive_rules {
        Some(rules) => rules == ReceiveRules::Linux,
        None => scenario.transfer.preset == Preset::Linux6,
    }
}

/// The rules of Linux that cost goodput with small receive buffers (docs/decisions/linux.md).
fn linux(add: &mut impl FnMut(&str, Option<&str>, &str, &dyn Fn(&mut Scenario))) {
    add(
        "only payload charged to the receive buffer",
        Some("tcp.receive_rules=payload"),
        "Linux charges the memory of packets to the receive buffer, and data that arrives out of order keeps the \
         window from moving",
        &|changed| {
            changed.tcp.receive_rules = Some(ReceiveRules::Payload);
            changed.tcp.receive_buffer_max = None;
        },
    );
    add(
        "no Nagle algorithm",
        Some("tcp.nagle=false"),
        "Nagle's algorithm holds back a short segment until the one before it is acknowledged, a round trip of its \
         path, and the window is closed meanwhile",
        &|changed| changed.tcp.nagle = Some(false),
    );
    add(
        "a path chosen for each burst",
        Some("scheduler.linux_turns=burst"),
        "each time that an acknowledgement opens the window, Linux chooses by the time that the send queue lasts: an \
         idle slow path gets two segments, which close the window for its round trip",
        &|changed| changed.scheduler.linux_turns = LinuxTurns::Burst,
    );
}

/// A sentence for each limit, the most important first.
fn conclusions(changes: &[ChangedRun]) -> Vec<String> {
    let counts =
        |one: &&ChangedRun| one.ratio.mean - one.ratio.half_width.unwrap_or(0.0) > 1.0 + LEAST_GAIN;
    let sentence = |one: &ChangedRun| {
        format!("{:.2} times the goodput with {}: {}", one.ratio.mean, one.change, one.meaning)
    };
    let found: Vec<String> = changes.iter().filter(counts).map(sentence).collect();
    match found.is_empty() {
        true => vec!["no change of these gives more goodput: the paths limit".to_owned()],
        false => found,
    }
}
