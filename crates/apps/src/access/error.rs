//! What is wrong with an access file.

use std::fmt;
use std::path::PathBuf;

/// An access file that was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessError {
    /// The file.
    pub path: PathBuf,
    /// The line that is wrong, counted from 1. None: the file could not be read.
    pub line: Option<usize>,
    /// What is wrong, with the offending value.
    pub message: String,
    /// What would be right.
    pub help: String,
}

/// A problem at a place in the text.
#[derive(Debug)]
pub(super) struct Problem {
    /// Offset of the first byte of the offending value.
    pub(super) at: usize,
    pub(super) message: String,
    pub(super) help: String,
}

impl Problem {
    pub(super) fn new(at: usize, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { at, message: message.into(), help: help.into() }
    }
}

/// The line in which a byte of the text stands, counted from 1.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at.min(text.len())];
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path.display(), self.message),
            // The message names the file.
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for AccessError {}
