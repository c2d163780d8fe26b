//! Problems of a scenario, with position and hint.

use core::fmt;

/// Category of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// A file cannot be read.
    Unreadable,
    /// The text is not TOML.
    Syntax,
    /// The key does not exist.
    UnknownKey,
    /// The value has another type, for example text instead of a number.
    WrongType,
    /// The unit is missing, unknown, or of another dimension.
    WrongUnit,
    /// The name is not in the list of choices.
    UnknownName,
    /// The number is outside its limits.
    OutOfRange,
    /// Something required is missing.
    Missing,
    /// Two settings exclude or contradict each other.
    Conflict,
    /// A name is used twice.
    Duplicate,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Category.
    pub kind: ProblemKind,
    /// Source of the text: a file name, or `--set` with its argument.
    pub source: String,
    /// Line from 1; 0 for a problem of the entire source.
    pub line: usize,
    /// Column from 1, in characters.
    pub column: usize,
    /// Number of characters concerned, at least 1.
    pub length: usize,
    /// The line of the source.
    pub source_line: String,
    /// The key with its table, for example `path[1].rtt`; empty for the entire file.
    pub key: String,
    /// What is wrong, in one sentence with the offending value.
    pub message: String,
    /// A hint: what would be valid.
    pub help: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.message)?;
        if self.line == 0 {
            write!(f, " --> {}", self.source)?;
        } else {
            let number = self.line.to_string();
            let margin = " ".repeat(number.len());
            // Tabs are kept, so that the caret is aligned with the text.
            let indent: String = self
                .source_line
                .chars()
                .take(self.column - 1)
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            writeln!(f, "{margin}--> {}:{}:{}", self.source, self.line, self.column)?;
            writeln!(f, "{margin} |")?;
            writeln!(f, "{number} | {}", self.source_line)?;
            write!(f, "{margin} | {indent}{}", "^".repeat(self.length))?;
        }
        if !self.help.is_empty() {
            write!(f, "\n = help: {}", self.help)?;
        }
        Ok(())
    }
}

/// All problems of a scenario in the order of the file, at most [`ScenarioError::MOST`]. Its `Display` is for
/// people, with several lines per problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ScenarioError {
    /// The problems, at least one.
    pub problems: Vec<Problem>,
    /// Number of further problems.
    pub omitted: usize,
}

impl ScenarioError {
    /// Maximum number of problems reported.
    pub const MOST: usize = 10;

    pub(crate) fn new(mut problems: Vec<Problem>) -> Self {
        assert!(!problems.is_empty(), "an error without a problem");
        let omitted = problems.len().saturating_sub(Self::MOST);
        problems.truncate(Self::MOST);
        Self { problems, omitted }
    }

    /// The first problem.
    pub fn first(&self) -> &Problem {
        &self.problems[0]
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            let gap = if i == 0 { "" } else { "\n\n" };
            write!(f, "{gap}{problem}")?;
        }
        if self.omitted > 0 {
            write!(f, "\n\n... and {} more", self.omitted)?;
        }
        Ok(())
    }
}
