//! Arguments that several commands share.

use std::ffi::OsStr;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::OnceLock;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Args, Command};
use ropewalk_scenario::{Named, Override, Scenario, ScenarioText, SchedulerName};

use crate::failure::Failure;

/// Longest scenario on standard input, bytes.
const STANDARD_INPUT_LIMIT: u64 = 16 << 20;

/// Reads the name of a scheduler. Unlike a plain function, it tells the names to completion scripts.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerParser;

impl TypedValueParser for SchedulerParser {
    type Value = SchedulerName;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<SchedulerName, clap::Error> {
        // The error lists the valid names.
        str::parse::<SchedulerName>.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let available = SchedulerName::ALL.iter().map(|name| name.as_str());
        // A reserved name does not parse.
        let available = available.filter(|name| name.parse::<SchedulerName>().is_ok());
        Some(Box::new(available.map(PossibleValue::new)))
    }
}

/// A scenario file and the changes to it.
#[derive(Clone, Debug, Args)]
pub struct FileArgs {
    /// Scenario file (TOML), the name of a ready scenario (`ropewalk new --list`), or - for standard input
    pub scenario: PathBuf,
    /// Change a key before the file is checked; may be repeated, and the last one wins
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Root of all randomness, instead of transfer.seed
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// The text of the scenario, once it has been read.
    #[arg(skip)]
    source: OnceLock<ScenarioText>,
}

/// A scenario file, the changes to it, and a scheduler.
#[derive(Clone, Debug, Args)]
pub struct ScenarioArgs {
    #[command(flatten)]
    file: FileArgs,
    /// Scheduler, instead of transfer.scheduler
    #[arg(long, value_name = "NAME", value_parser = SchedulerParser, hide_possible_values = true)]
    scheduler: Option<SchedulerName>,
}

impl FileArgs {
    /// A scenario file with these changes.
    pub fn new(scenario: PathBuf, sets: Vec<String>, seed: Option<u64>) -> Self {
        Self { scenario, sets, seed, source: OnceLock::new() }
    }

    /// Reads and checks the scenario with all changes. `more` is applied after the overrides of `--set`.
    ///
    /// # Errors
    /// All problems of the scenario.
    pub fn load_with(&self, more: &[Override<'_>]) -> Result<Scenario, Failure> {
        let sets = self.sets.iter().map(|change| Override { option: "--set", change });
        let all: Vec<Override<'_>> = sets.chain(more.iter().copied()).collect();
        let ScenarioText { name, text } = self.source()?;
        let mut scenario = Scenario::parse_overridden(text, name, &all)?;
        // An override cannot set the seed: TOML's integers end at 2^63, and seeds have 64 bits.
        scenario.transfer.seed = self.seed.unwrap_or(scenario.transfer.seed);
        Ok(scenario)
    }

    /// The text of the scenario without the changes. It is read once.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn source(&self) -> Result<&ScenarioText, Failure> {
        if let Some(source) = self.source.get() {
            return Ok(source);
        }
        let source = if self.is_standard_input() {
            ScenarioText { name: "standard input".to_owned(), text: standard_input()? }
        } else {
            ScenarioText::read(&self.scenario)?
        };
        Ok(self.source.get_or_init(|| source))
    }

    fn is_standard_input(&self) -> bool {
        self.scenario.as_os_str() == "-"
    }

    /// The scenario's name for headings: the file name without its extension.
    pub fn title(&self) -> String {
        if self.is_standard_input() {
            return "standard input".to_owned();
        }
        let stem = self.scenario.file_stem().unwrap_or(self.scenario.as_os_str());
        stem.to_string_lossy().into_owned()
    }
}

impl ScenarioArgs {
    /// Reads and checks the scenario with all changes.
    ///
    /// # Errors
    /// All problems of the scenario.
    pub fn load(&self) -> Result<Scenario, Failure> {
        let name = self.scheduler.map(|name| format!("transfer.scheduler={name}"));
        let change = name.as_deref().map(|change| Override { option: "--scheduler", change });
        self.file.load_with(change.as_slice())
    }

    /// The scenario's name for headings: the file name without its extension.
    pub fn title(&self) -> String {
        self.file.title()
    }

    /// The text of the scenario without the changes.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn source(&self) -> Result<&ScenarioText, Failure> {
        self.file.source()
    }

    /// Whether the command line changes anything in the file.
    pub fn is_changed(&self) -> bool {
        self.scheduler.is_some() || self.file.seed.is_some() || !self.file.sets.is_empty()
    }
}

/// The text of a scenario on standard input.
fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    let input = std::io::stdin().lock().take(STANDARD_INPUT_LIMIT).read_to_string(&mut text);
    input.map_err(|error| {
        Failure::input(
            format!("the scenario on standard input cannot be read: {error}"),
            "it is a text file (TOML)",
        )
    })?;
    Ok(text)
}

/// The command line, quoted for a shell, for reports.
pub fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("ropewalk".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it, quoted if necessary.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+%@[]".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_a_shell_would_split_or_expand_them() {
        for (word, shown) in [
            ("path[1].rtt=40ms", "path[1].rtt=40ms"),
            ("transfer.duration=2 s", "'transfer.duration=2 s'"),
            ("", "''"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(quoted(word), shown);
        }
    }
}
