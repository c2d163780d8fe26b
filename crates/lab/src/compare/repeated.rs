//! One scenario with several seeds: every figure as a mean with its interval.

use serde::Serialize;

use super::{Compared, ComparedRun, Estimate, estimate};
use crate::result::{
    Figure, PathResult, Row, RunResult, Unit, direction_columns, figures, flow_columns,
    path_columns,
};

/// Several runs of one scenario, `ropewalk.runs/1`.
#[derive(Clone, Debug, Serialize)]
pub struct Repeated {
    schema: &'static str,
    /// Transport protocol.
    pub protocol: String,
    /// Scheduler.
    pub scheduler: String,
    /// Number of runs that did not fail.
    pub succeeded: usize,
    /// Mean of every figure with its 95 % confidence interval; null if a run lacks it.
    pub figures: Row<Option<Estimate>>,
    /// The same for each path.
    pub paths: Vec<RepeatedPart>,
    /// The same for each direction of a tunnel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub directions: Vec<RepeatedDirection>,
    /// The same for each flow through a tunnel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<RepeatedPart>,
    /// All runs by ascending seed.
    pub runs: Vec<ComparedRun>,
}

/// One path or flow over all seeds.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct RepeatedPart {
    /// Name in the scenario.
    pub name: String,
    /// Mean of every figure of the part with its interval; null if a run lacks it.
    #[serde(flatten)]
    pub figures: Row<Option<Estimate>>,
}

/// One direction over all seeds.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct RepeatedDirection {
    /// `up` or `down`, and its figures.
    #[serde(flatten)]
    pub own: RepeatedPart,
    /// Each path in this direction.
    pub paths: Vec<RepeatedPart>,
}

impl Repeated {
    /// The figures that have a mean: all numbers.
    pub fn figures() -> Vec<Figure<RunResult>> {
        let mut all = figures();
        all.retain(|figure| !matches!(figure.show.unit, Unit::Text | Unit::WholeNumber));
        all
    }

    /// Builds the document from the runs of one variant.
    ///
    /// # Errors
    /// The reason of the first failure, if every run failed.
    pub fn new(runs: &[Compared]) -> Result<Self, String> {
        let results: Vec<&RunResult> =
            runs.iter().filter_map(|run| Some(&run.outcome.as_ref().ok()?.result)).collect();
        let Some(first) = results.first() else {
            let reason = runs.iter().find_map(|run| run.outcome.as_ref().err());
            return Err(reason.map_or_else(String::new, ToString::to_string));
        };
        let path_names = || first.paths.iter().map(|path| path.name.as_str());
        let paths_of = |of: &dyn Fn(&RunResult) -> &Vec<PathResult>| {
            parts(&results, path_names(), &path_columns(), of)
        };
        let names = first.directions.iter().map(|direction| direction.name.as_str());
        let directions = parts(&results, names, &direction_columns(), &|result| &result.directions);
        let with_paths = |(number, own): (usize, RepeatedPart)| RepeatedDirection {
            own,
            paths: paths_of(&|result: &RunResult| &result.directions[number].paths),
        };
        Ok(Self {
            schema: "ropewalk.runs/1",
            protocol: first.protocol.clone(),
            scheduler: first.scheduler.clone(),
            succeeded: results.len(),
            figures: Row::new(&Self::figures(), |figure| over(&results, figure)),
            paths: paths_of(&|result: &RunResult| &result.paths),
            directions: directions.into_iter().enumerate().map(with_paths).collect(),
            flows: flows(&results),
            runs: runs.iter().map(ComparedRun::of).collect(),
        })
    }
}

/// The flows of these runs of one scenario.
pub(super) fn flows(results: &[&RunResult]) -> Vec<RepeatedPart> {
    let Some(first) = results.first() else { return Vec::new() };
    let names = first.flows.iter().map(|flow| flow.name.as_str());
    parts(results, names, &flow_columns(), &|result| &result.flows)
}

/// The parts of these runs with these names, in order.
fn parts<'a, R>(
    results: &[&'a RunResult],
    names: impl Iterator<Item = &'a str>,
    columns: &[&Figure<R>],
    of: &dyn Fn(&RunResult) -> &Vec<R>,
) -> Vec<RepeatedPart> {
    let columns: Vec<Figure<R>> = columns.iter().map(|figure| **figure).collect();
    let part = |(number, name): (usize, &str)| {
        let own: Vec<&R> = results.iter().map(|result| &of(result)[number]).collect();
        let figures = Row::new(&columns, |figure| over(&own, figure));
        RepeatedPart { name: name.to_owned(), figures }
    };
    names.enumerate().map(part).collect()
}

/// Mean of a figure over all runs. `None` if one lacks it.
fn over<R>(results: &[&R], figure: &Figure<R>) -> Option<Estimate> {
    let values: Option<Vec<f64>> = results.iter().map(|result| (figure.of)(result)).collect();
    estimate(&values?)
}
