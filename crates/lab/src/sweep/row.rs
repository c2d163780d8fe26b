//! The stored results of a single run.

use serde::{Deserialize, Serialize};

use super::columns::SweptColumn;
use crate::result::RunResult;

/// The result of a run, or its error message.
pub type Outcome = Result<Box<RunResult>, String>;

/// A finished run. Writing and reading it is lossless.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// Number of the point, from 0.
    pub point: usize,
    /// Number of the seed, from 1.
    pub seed: u32,
    /// Values in the order of the sweep's columns. `None` for an unknown value, and for all values
    /// of a failed run.
    pub figures: Vec<Option<f64>>,
    /// Error message if the run failed.
    pub error: Option<String>,
}

impl RunRow {
    /// The row of a run in a sweep with these columns.
    pub(super) fn new(point: usize, seed: u32, outcome: Outcome, columns: &[SweptColumn]) -> Self {
        let (figures, error) = match outcome {
            Ok(result) => (columns.iter().map(|column| column.value(&result)).collect(), None),
            Err(error) => (vec![None; columns.len()], Some(error)),
        };
        Self { point, seed, figures, error }
    }
}
