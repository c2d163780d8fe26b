//! Why a sweep did not happen.

use core::fmt;
use std::path::{Path, PathBuf};

use ropewalk_scenario::ScenarioError;

/// Why a sweep did not start, or did not get to its end.
#[derive(Debug)]
pub enum SweepError {
    /// What was asked for is not possible; nothing was run.
    Input {
        /// What is wrong, with the offending value.
        message: String,
        /// What would be right.
        help: String,
    },
    /// One of the points is no sound scenario; nothing was run.
    Scenario(Box<ScenarioError>),
    /// A file cannot be read or written.
    File {
        /// Which.
        path: PathBuf,
        /// What the file system or the format says.
        reason: String,
    },
    /// Whoever asked for it said stop.
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
