//! Errors of a sweep.

use core::fmt;
use std::path::{Path, PathBuf};

use ropewalk_scenario::ScenarioError;

/// Reason for which a sweep did not start or finish.
#[derive(Debug)]
pub enum SweepError {
    /// The arguments are invalid; nothing was run.
    Input {
        /// The error, with the offending value.
        message: String,
        /// A hint: what would be valid.
        help: String,
    },
    /// A point is not a valid scenario; nothing was run.
    Scenario(Box<ScenarioError>),
    /// A file cannot be read or written.
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error of the file system or of the format.
        reason: String,
    },
    /// The caller stopped the sweep.
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

impl fmt::Display for SweepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input { message, help } => write!(f, "{message}\n = help: {help}"),
            Self::Scenario(error) => error.fmt(f),
            Self::File { path, reason } => write!(f, "{}: {reason}", path.display()),
            Self::Stopped => f.write_str("the sweep was stopped; finished runs are in its journal"),
        }
    }
}

impl core::error::Error for SweepError {}

impl From<ScenarioError> for SweepError {
    fn from(error: ScenarioError) -> Self {
        Self::Scenario(Box::new(error))
    }
}
