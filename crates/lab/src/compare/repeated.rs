//! One scenario with several seeds: every figure as a mean with its interval.

use serde::Serialize;

use super::{Compared, ComparedRun, Estimate, estimate};
use crate::result::{Figure, PathResult, Row, RunResult, Unit, figures, path_columns};

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
    pub paths: Vec<RepeatedPath>,
    /// All runs by ascending seed.
    pub runs: Vec<ComparedRun>,
}

/// One path over all seeds.
#[derive(Clone, Debug, Serialize)]
pub struct RepeatedPath {
    /// Name in the scenario.
    pub name: String,
    /// Mean of every figure of the path with its interval; null if a run lacks it.
    #[serde(flatten)]
    pub figures: Row<Option<Estimate>>,
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
        let paths = first.paths.iter().enumerate().map(|(number, path)| {
            let own: Vec<&PathResult> =
                results.iter().map(|result| &result.paths[number]).collect();
            let columns: Vec<Figure<PathResult>> = path_columns().into_iter().copied().collect();
            let figures = Row::new(&columns, |figure| over(&own, figure));
            RepeatedPath { name: path.name.clone(), figures }
        });
        Ok(Self {
            schema: "ropewalk.runs/1",
            protocol: first.protocol.clone(),
            scheduler: first.scheduler.clone(),
            succeeded: results.len(),
            figures: Row::new(&Self::figures(), |figure| over(&results, figure)),
            paths: paths.collect(),
            runs: runs.iter().map(ComparedRun::of).collect(),
        })
    }
}

/// Mean of a figure over all runs; none if one lacks it.
fn over<R>(results: &[&R], figure: &Figure<R>) -> Option<Estimate> {
    let values: Option<Vec<f64>> = results.iter().map(|result| (figure.of)(result)).collect();
    estimate(&values?)
}
