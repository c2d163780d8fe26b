//! The stored results of a single run.

use serde::{Deserialize, Serialize};

use crate::result::{Figure, RunResult, swept};

/// The result of a run, or its error message.
pub type Outcome = Result<Box<RunResult>, String>;

/// A finished run. Writing and reading it is lossless.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// Number of the point, from 0.
    pub point: usize,
    /// Number of the seed, from 1.
    pub seed: u32,
    /// Values in the order of [`swept`]; none if unknown, and all none if the run failed.
    pub figures: Vec<Option<f64>>,
    /// Error message if the run failed.
    pub error: Option<String>,
}

impl RunRow {
    /// The row of a run.
    pub fn new(point: usize, seed: u32, outcome: Outcome) -> Self {
        let (figures, error) = match outcome {
            // JSON cannot represent infinity.
            Ok(result) => {
                let value = |f: Figure<RunResult>| (f.of)(&result).filter(|x| x.is_finite());
                (swept().into_iter().map(value).collect(), None)
            }
            Err(error) => (vec![None; swept().len()], Some(error)),
        };
        Self { point, seed, figures, error }
    }
}
