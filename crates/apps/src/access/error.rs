//! Errors in an access file.

use std::fmt;
use std::path::PathBuf;

/// Why an access file was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct AccessError {
    /// The file.
    pub path: PathBuf,
    /// The line with the error, counted from 1. `None` if the file could not be read.
    pub line: Option<usize>,
    /// The error, with the offending value.
    pub message: String,
    /// A hint on how to correct it.
    pub help: String,
}

/// An error at a place in the text.
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

/// The line that contains a byte of the text, counted from 1.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at.min(text.len())];
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path.display(), self.message),
            // The message contains the name of the file.
            None => f.write_str(&self.message),
        }
    }
}
