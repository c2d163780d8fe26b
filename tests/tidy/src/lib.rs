//! The tidy test: rules for the project's source tree, checked by `cargo test -p ropewalk-tidy`.
//!
//! Every check is a pure function from a [`tree::Tree`] to a list of [`Finding`]s. The tests run each check
//! twice: on the real tree, which must give no finding, and on a small bad example, which must give one.

pub mod arrows;
pub mod banned;
pub mod cycles;
pub mod dependencies;
pub mod functions;
pub mod licences;
pub mod links;
pub mod markdown;
pub mod modules;
pub mod phrases;
pub mod python;
pub mod registries;
pub mod scenarios;
pub mod size;
pub mod tokens;
pub mod tree;
pub mod words;

use std::fmt;

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path from the root of the repository, with `/`.
    pub path: String,
    /// Line, counted from 1; 0 for a finding about the entire file.
    pub line: usize,
    /// What is wrong, and how to fix it.
    pub message: String,
}

impl Finding {
    /// A finding at a line of a file (0: the entire file).
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Fails the running test with one line per finding.
///
/// # Panics
/// If there is any finding.
pub fn assert_tidy(mut findings: Vec<Finding>) {
    findings.sort();
    findings.dedup();
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(lines.is_empty(), "{} not tidy:\n{}\n", lines.len(), lines.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_finding_passes() {
        assert_tidy(Vec::new());
    }

    #[test]
    #[should_panic(expected = "a.rs:3: too long")]
    fn a_finding_fails_and_is_shown_with_its_line() {
        assert_tidy(vec![Finding::new("a.rs", 3, "too long")]);
    }
}
