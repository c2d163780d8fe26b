//! Errors of a sweep.

use core::fmt;
use std::path::{Path, PathBuf};

use ropewalk_scenario::ScenarioError;

/// Reason for which a sweep did not start or finish.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The arguments are invalid; nothing was run.
    #[error("{message}\n = help: {help}")]
    Input {
        /// The error, with the offending value.
        message: String,
        /// A hint: what would be valid.
        help: String,
    },
    /// A point is not a valid scenario; nothing was run.
    #[error("{0}")]
    Scenario(Box<ScenarioError>),
    /// A file cannot be read or written.
    #[error("{path}: {reason}", path = .path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error of the file system or of the format.
        reason: String,
    },
    /// The caller stopped the sweep.
    #[error("the sweep was stopped; finished runs are in its journal")]
    Stopped,
}

impl SweepError {
    pub(super) fn input(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Input { message: message.into(), help: help.into() }
    }

    pub(super) fn file(path: &Path, reason: impl fmt::Display) -> Self {
        Self::File { path: path.to_owned(), reason: reason.to_string() }
    }
}

impl From<ScenarioError> for SweepError {
    fn from(error: ScenarioError) -> Self {
        Self::Scenario(Box::new(error))
    }
}
