//! Parsing of a [`Scenario`].

use std::io::ErrorKind;
use std::path::Path as FilePath;

use ropewalk_base::{Duration, Rate};

use crate::check::{self, Checker};
use crate::choice::Named;
use crate::custom_scheduler;
use crate::error::{Problem, ProblemKind, ScenarioError};
use crate::overrides::{self, Override};
use crate::quantity::Dimension;
use crate::ready;
use crate::tree::{self, Source};
use crate::types::{self, ROOT, Scenario, SchedulerName};

/// The text of a scenario, and its name in messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioText {
    /// The name of the file, or of the ready scenario.
    pub name: String,
    /// The text.
    pub text: String,
}

impl ScenarioText {
    /// Reads a file, or takes the ready scenario of this name if there is no such file.
    ///
    /// # Errors
    /// If there is neither, or the file cannot be read.
    pub fn read(path: impl AsRef<FilePath>) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let error = match (std::fs::read_to_string(path), ready::find(&name)) {
            (Ok(text), _) => return Ok(Self { name, text }),
            (Err(error), Some(ready)) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self { name, text: ready.text.into() });
            }
            (Err(error), _) => error,
        };
        Err(ScenarioError::new(vec![Problem {
            kind: ProblemKind::Unreadable,
            source: name.clone(),
            line: 0,
            column: 0,
            length: 0,
            source_line: String::new(),
            key: String::new(),
            message: format!("the scenario `{name}` cannot be read: {error}"),
            help: ready::help(&name),
        }]))
    }
}

impl Scenario {
    /// Parses the text of a scenario file. `source_name` is its name in messages; names of files in it are
    /// relative to the directory of `source_name`.
    ///
    /// # Errors
    /// All problems, in the order of the file.
    pub fn parse(text: &str, source_name: &str) -> Result<Self, ScenarioError> {
        Self::parse_with(text, source_name, &[] as &[&str])
    }

    /// As [`Scenario::parse`], with overrides of the form `key=value` (see [`Override::change`]). They are
    /// applied in order before the check. Messages name `--set` as their origin.
    ///
    /// # Errors
    /// All problems, first those of the file, then those of the overrides.
    pub fn parse_with<S: AsRef<str>>(
        text: &str,
        source_name: &str,
        sets: &[S],
    ) -> Result<Self, ScenarioError> {
        Self::parse_overridden(text, source_name, &from_set(sets))
    }

    /// As [`Scenario::parse_with`], with overrides that state their origin.
    ///
    /// # Errors
    /// All problems, first those of the text, then those of the overrides.
    pub fn parse_overridden(
        text: &str,
        source_name: &str,
        overrides: &[Override<'_>],
    ) -> Result<Self, ScenarioError> {
        Self::parse_custom(text, source_name, overrides, &[])
    }

    /// As [`Scenario::parse_overridden`], where `custom_schedulers` are names of schedulers that may be
    /// selected
    /// besides the built-in ones.
    ///
    /// # Errors
    /// All problems, first those of the text, then those of the overrides.
    pub fn parse_custom(
        text: &str,
        source_name: &str,
        overrides: &[Override<'_>],
        custom_schedulers: &[&str],
    ) -> Result<Self, ScenarioError> {
        // Some editors write a byte order mark, which is not part of the text.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut sources = vec![Source::new(source_name.into(), text.into())];
        sources.extend(overrides.iter().map(|Override { option, change }| {
            Source::new(format!("{option} {change}"), (*change).to_owned())
        }));
        let one = |problem: Box<Problem>| ScenarioError::new(vec![*problem]);
        let mut root = tree::parse(&sources, 0).map_err(one)?;
        for source in 1..sources.len() {
            let alias = overrides::apply(&mut root, &sources, source).map_err(one)?;
            sources[source].alias = alias;
        }
        let custom = custom_scheduler::take(&mut root, custom_schedulers);
        let mut checker =
            Checker::new(ROOT, &sources).with_names(SchedulerName::CHOICES, custom_schedulers);
        let checked = checker.root(&root);
        checker.finish()?;
        let checked = checked.expect("what has no problem is whole");
        let directory = types::directory_of(source_name);
        let ready = ready::find(source_name).filter(|ready| ready.text == text);
        let mut scenario = types::build(checker, &checked, directory, ready)?;
        scenario.scheduler.custom = custom;
        Ok(scenario)
    }

    /// Reads a scenario file, or the ready scenario of this name if there is no such file.
    ///
    /// # Errors
    /// If the file cannot be read, or has problems.
    pub fn load(path: impl AsRef<FilePath>) -> Result<Self, ScenarioError> {
        Self::load_with(path, &[] as &[&str])
    }

    /// As [`Scenario::load`], with overrides as in [`Scenario::parse_with`].
    ///
    /// # Errors
    /// If the file cannot be read, or has problems.
    pub fn load_with<S: AsRef<str>>(
        path: impl AsRef<FilePath>,
        sets: &[S],
    ) -> Result<Self, ScenarioError> {
        Self::load_overridden(path, &from_set(sets))
    }

    /// As [`Scenario::load_with`], with overrides that state their origin.
    ///
    /// # Errors
    /// If the file cannot be read, or has problems.
    pub fn load_overridden(
        path: impl AsRef<FilePath>,
        overrides: &[Override<'_>],
    ) -> Result<Self, ScenarioError> {
        let source = ScenarioText::read(path)?;
        Self::parse_overridden(&source.text, &source.name, overrides)
    }
}

fn from_set<S: AsRef<str>>(sets: &[S]) -> Vec<Override<'_>> {
    sets.iter().map(|set| Override { option: "--set", change: set.as_ref() }).collect()
}

/// Parses a time such as `20 ms` outside of a scenario file.
///
/// # Errors
/// The problem in one sentence.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    check::read(Dimension::Time, text).map(Duration::from_nanos)
}

/// Parses a rate such as `2 Mbit/s` outside of a scenario file.
///
/// # Errors
/// The problem in one sentence.
pub fn parse_rate(text: &str) -> Result<Rate, String> {
    check::read(Dimension::Rate, text).map(Rate::from_bps)
}

/// Parses a size in bytes such as `45 kB` outside of a scenario file.
///
/// # Errors
/// The problem in one sentence.
pub fn parse_size(text: &str) -> Result<u64, String> {
    check::read(Dimension::Size, text)
}
