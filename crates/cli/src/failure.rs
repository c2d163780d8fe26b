//! Failures of a command, and their exit statuses.

use core::fmt;
use std::process::ExitCode;

use ropewalk_lab::RunError;
use ropewalk_scenario::ScenarioError;

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The input is wrong; nothing was run or written.
    Input(String),
    /// The input was right, but the run failed or a result could not be written.
    Run(String),
    /// A program could not be run for the user. The status is that of a shell: 127 if it is missing, otherwise 126.
    NotRun(u8, String),
    /// A program that was run for the user ended with this status and has reported the reason itself.
    Status(u8),
}

impl Failure {
    /// 2 for wrong input, 1 for a failed run, otherwise the status of the program that was run or
    /// could not be run.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Input(_) => ExitCode::from(2),
            Self::Run(_) => ExitCode::from(1),
            Self::NotRun(status, _) | Self::Status(status) => ExitCode::from(*status),
        }
    }

    /// Wrong input: the problem, and a hint how to correct it.
    pub fn input(message: impl fmt::Display, help: impl fmt::Display) -> Self {
        Self::Input(format!("{message}\n = help: {help}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Input(text) | Self::Run(text) | Self::NotRun(_, text)) = self else {
            return Ok(());
        };
        // Errors of a scenario have their own headings, one per problem.
        if text.starts_with("error:") { f.write_str(text) } else { write!(f, "error: {text}") }
    }
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Self::Input(error.to_string())
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self::Run(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_shows_exactly_one_heading() {
        for (failure, text) in [
            (Failure::Run("it stopped".into()), "error: it stopped"),
            (Failure::Input("error: no such key".into()), "error: no such key"),
            (Failure::input("no `x`", "try `y`"), "error: no `x`\n = help: try `y`"),
        ] {
            assert_eq!(failure.to_string(), text);
        }
    }
}
