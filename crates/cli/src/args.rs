//! Arguments that several commands share.

use std::path::PathBuf;

use clap::Args;
use ropewalk_scenario::{Scenario, SchedulerName};

use crate::failure::Failure;

/// Which scenario, and what is changed in it.
#[derive(Clone, Debug, Args)]
pub struct ScenarioArgs {
    /// Scenario file (TOML)
    pub scenario: PathBuf,
    /// Change a key before the file is checked; may be repeated, and the last one wins
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Root of all randomness, instead of transfer.seed
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Scheduler, instead of transfer.scheduler
    #[arg(long, value_name = "NAME", value_parser = str::parse::<SchedulerName>)]
    pub scheduler: Option<SchedulerName>,
}

impl ScenarioArgs {
    /// Reads and checks the scenario with all changes.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(&self) -> Result<Scenario, Failure> {
        self.load_with(&[])
    }

    /// The same with `more` overrides after those of the command line.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load_with(&self, more: &[String]) -> Result<Scenario, Failure> {
        let scheduler = self.scheduler.map(|name| format!("transfer.scheduler={name}"));
        let sets: Vec<&String> = self.sets.iter().chain(&scheduler).chain(more).collect();
        let mut scenario = Scenario::load_with(&self.scenario, &sets)?;
        // Not by an override: TOML's integers end where half of the seeds begin.
        scenario.transfer.seed = self.seed.unwrap_or(scenario.transfer.seed);
        Ok(scenario)
    }

    /// The scenario's name for headings: the file name without its ending.
    pub fn title(&self) -> String {
        let stem = self.scenario.file_stem().unwrap_or(self.scenario.as_os_str());
        stem.to_string_lossy().into_owned()
    }
}

/// The command line as it could be typed again, for reports.
pub fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("ropewalk".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
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
