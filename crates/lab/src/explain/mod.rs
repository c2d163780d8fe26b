//! Explains the decisions of a scheduler: why each packet took its path.

mod limits;
mod sentences;

pub use limits::{ChangedRun, Limits, limits};

use ropewalk_base::{PathId, Time};
use ropewalk_engine::record::{DecisionRecord, PathSnapshot};
use ropewalk_engine::scheduler::{Action, Reason};
use ropewalk_scenario::Scenario;
use serde::Serialize;

use crate::error::RunError;
use crate::measure::Run;
use crate::run::run_watched;
use crate::setup::RunOptions;

/// Selects the decisions to explain. An absent field does not restrict the selection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Only decisions about this chunk, counted from 0.
    pub chunk: Option<u64>,
    /// Only decisions at or after this time.
    pub from: Option<Time>,
    /// Only decisions that send on this path, by its position in the scenario.
    pub path: Option<usize>,
    /// Whether to include decisions that found no data or only full windows.
    pub idle: bool,
    /// Maximum number of decisions.
    pub first: usize,
    /// Index of the association, from 0.
    pub association: u32,
}

/// Decisions with reasons, `ropewalk.explain/1`.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Explanation {
    /// `ropewalk.explain/1`.
    pub schema: &'static str,
    /// Protocol.
    pub protocol: String,
    /// Scheduler.
    pub scheduler: String,
    /// Root seed, as text.
    pub seed: String,
    /// Index of the association, from 0.
    pub association: u32,
    /// Number of chunks that any decision was about; they are numbered from 0.
    pub chunks: u64,
    /// The selected decisions in order of time.
    pub decisions: Vec<ExplainedDecision>,
    /// Number of further decisions that match.
    pub omitted: usize,
    /// Count of each reason for each path, over all decisions of the run.
    pub summary: Vec<ReasonCount>,
}

/// One decision.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct ExplainedDecision {
    /// Time since the start, s.
    pub at_s: f64,
    /// The chunk that was sent, counted from 0; null if nothing was.
    pub chunk: Option<u64>,
    /// `send`, `copies`, `wait` or `blocked`.
    pub action: &'static str,
    /// Names of the paths that it was sent on.
    pub sent_on: Vec<String>,
    /// Position of the chunk in the unassigned queue, 0 for its head; null if nothing was sent.
    pub position: Option<u64>,
    /// Time of the next decision at the latest, s since the start; only with `wait`.
    pub until_s: Option<f64>,
    /// The reason as one word.
    pub reason: &'static str,
    /// The action and its reason as a sentence.
    pub sentence: String,
    /// The state of the paths as a sentence.
    pub known: String,
    /// Number of queued chunks that the peer's receive window allowed.
    pub sendable: u64,
    /// The paths in the scheduler's view.
    pub paths: Vec<ExplainedPath>,
}

/// A path in the scheduler's view.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct ExplainedPath {
    /// Name.
    pub name: String,
    /// Whether the path was usable.
    pub usable: bool,
    /// Usable congestion window, bytes.
    pub window_bytes: u64,
    /// In flight, bytes.
    pub in_flight_bytes: u64,
    /// Smoothed RTT, s; null before the first sample.
    pub srtt_s: Option<f64>,
    /// Forward delay, s; null if unknown.
    pub forward_delay_s: Option<f64>,
}

/// The count of one reason on one path.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct ReasonCount {
    /// The path that the decision sent on; null for those that sent nothing.
    pub path: Option<String>,
    /// The reason as one word.
    pub reason: &'static str,
    /// Meaning of the reason.
    pub meaning: &'static str,
    /// Number of decisions.
    pub count: u64,
}

/// Runs a scenario with recording of decisions and explains them. `told` is called with the completed share of
/// the run, 0 to 1.
///
/// # Errors
/// If the run fails.
pub fn explain(
    scenario: &Scenario,
    question: &Question,
    told: &dyn Fn(f64),
) -> Result<Explanation, RunError> {
    let mut scenario = scenario.clone();
    scenario.record.decisions = true;
    let options = RunOptions { association: question.association, ..RunOptions::default() };
    let run = run_watched(&scenario, &options, told)?;
    Ok(explain_run(&scenario, &run, question))
}

/// Explains a run whose decisions were recorded.
pub fn explain_run(scenario: &Scenario, run: &Run, question: &Question) -> Explanation {
    let names: Vec<&str> = scenario.paths.iter().map(|path| path.name.as_str()).collect();
    let mut asked = run.decisions.iter().filter(|record| question.covers(record));
    let decisions: Vec<ExplainedDecision> =
        asked.by_ref().take(question.first).map(|record| explained(&names, record)).collect();
    Explanation {
        schema: "ropewalk.explain/1",
        protocol: run.result.protocol.clone(),
        scheduler: run.result.scheduler.clone(),
        seed: run.result.seed.clone(),
        association: question.association,
        chunks: run.decisions.iter().filter_map(|d| d.chunk).max().map_or(0, |last| last + 1),
        decisions,
        omitted: asked.count(),
        summary: summary(&names, &run.decisions),
    }
}

impl Question {
    fn covers(&self, record: &DecisionRecord) -> bool {
        // A large majority of the decisions only finds that all data is sent: leave them out unless
        // requested.
        let idle = matches!(record.reason, Reason::NoData | Reason::AllFull);
        self.chunk.is_none_or(|chunk| record.chunk == Some(chunk))
            && self.from.is_none_or(|from| record.at >= from)
            && self
                .path
                .is_none_or(|path| destinations(record.action).contains(&PathId::from_index(path)))
            && (self.idle || !idle)
    }
}

/// The paths on which an action sends.
fn destinations(action: Action) -> Vec<PathId> {
    match action {
        Action::Send { path, .. } => vec![path],
        Action::Copies { paths, .. } => paths.iter().collect(),
        Action::Wait { .. } | Action::Blocked => Vec::new(),
    }
}

fn explained(names: &[&str], record: &DecisionRecord) -> ExplainedDecision {
    let (action, position, until) = match record.action {
        Action::Send { position, .. } => ("send", Some(position), None),
        Action::Copies { position, .. } => ("copies", Some(position), None),
        Action::Wait { until } => ("wait", None, Some(until.as_secs_f64())),
        Action::Blocked => ("blocked", None, None),
    };
    let sent_on = destinations(record.action);
    ExplainedDecision {
        at_s: record.at.as_secs_f64(),
        chunk: record.chunk,
        action,
        sent_on: sent_on.iter().map(|path| names[path.index()].to_owned()).collect(),
        position,
        until_s: until,
        reason: sentences::word(record.reason),
        sentence: sentences::sentence(names, record),
        known: sentences::known(names, record),
        sendable: record.sendable,
        paths: record.paths.iter().map(|path| seen(names, path)).collect(),
    }
}

fn seen(names: &[&str], path: &PathSnapshot) -> ExplainedPath {
    let seconds = |nanos: u64| (nanos > 0).then(|| Time::from_nanos(nanos).as_secs_f64());
    ExplainedPath {
        name: names[path.id.index()].to_owned(),
        usable: path.usable,
        window_bytes: path.window,
        in_flight_bytes: path.in_flight,
        srtt_s: seconds(path.srtt_nanos),
        forward_delay_s: seconds(path.forward_nanos),
    }
}

/// Counts per path in the scenario's order, then those of decisions that sent nothing; the most frequent reason
/// first.
fn summary(names: &[&str], records: &[DecisionRecord]) -> Vec<ReasonCount> {
    let mut counts: Vec<(Option<usize>, Reason, u64)> = Vec::new();
    for record in records {
        let paths = destinations(record.action);
        let places = if paths.is_empty() {
            vec![None]
        } else {
            paths.iter().map(|path| Some(path.index())).collect()
        };
        for place in places {
            match counts.iter_mut().find(|(p, r, _)| *p == place && *r == record.reason) {
                Some((.., count)) => *count += 1,
                None => counts.push((place, record.reason, 1)),
            }
        }
    }
    counts.sort_by_key(|(place, reason, count)| {
        (place.unwrap_or(usize::MAX), u64::MAX - count, sentences::word(*reason))
    });
    let named = counts.into_iter().map(|(place, reason, count)| ReasonCount {
        path: place.map(|i| names[i].to_owned()),
        reason: sentences::word(reason),
        meaning: sentences::meaning(reason),
        count,
    });
    named.collect()
}

#[cfg(test)]
mod tests;
