//! What is wrong with a scenario, where, and what would be right.

use core::fmt;

use crate::suggest;
use crate::types::Choice;

/// What kind of thing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// A file cannot be read.
    Unreadable,
    /// The text is not TOML.
    Syntax,
    /// No such key.
    UnknownKey,
    /// The value is of another type: text where a number belongs, and so on.
    WrongType,
    /// No unit, an unknown unit, or a unit of something else.
    WrongUnit,
    /// A name that is not in the list.
    UnknownName,
    /// A number outside its limits.
    OutOfRange,
    /// Something that must be there is not.
    Missing,
    /// Two things that exclude each other, or contradict each other.
    Conflict,
    /// A name given twice.
    Duplicate,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of thing.
    pub kind: ProblemKind,
    /// Where the text came from: a file name, or `--set` with its argument.
    pub source: String,
    /// Line from 1; 0 where it concerns the source as a whole.
    pub line: usize,
    /// Column from 1, in characters.
    pub column: usize,
    /// How many characters of the line are meant, at least 1.
    pub length: usize,
    /// The line as written.
    pub source_line: String,
    /// The key with its table, for example `path[1].rtt`; empty for the file as a whole.
    pub key: String,
    /// What is wrong, in one sentence, with the offending value.
    pub message: String,
    /// What would be right.
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
            // A tab moves the caret as far as it moves the text.
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

/// Everything that is wrong with a scenario, in the order of the file, at most
/// [`ScenarioError::MOST`]. Its `Display` is meant for people, several lines per problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// At least one.
    pub problems: Vec<Problem>,
    /// How many more there are.
    pub omitted: usize,
}

impl ScenarioError {
    /// How many problems are told at once.
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

impl core::error::Error for ScenarioError {}

/// A name that is not in its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: String,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.help)
    }
}

impl core::error::Error for UnknownName {}

/// The position of `text` in `choices`.
pub(crate) fn find_name(text: &str, choices: &[Choice]) -> Result<usize, UnknownName> {
    if let Some(at) = choices.iter().position(|c| c.name == text) {
        return Ok(at);
    }
    let names: Vec<_> = choices.iter().map(|c| c.name).collect();
    let valid = format!("valid: {}", suggest::quoted_or_list(&names));
    let help = match suggest::nearest(text, &names) {
        Some(near) => format!("did you mean `{near}`? {valid}"),
        None => valid,
    };
    Err(UnknownName { message: format!("there is no `{text}`"), help })
}
