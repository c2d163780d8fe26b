//! From text to [`Scenario`].

use std::path::Path as FilePath;

use ropewalk_base::{Duration, Rate};

use crate::build;
use crate::check::{self, Checker};
use crate::error::{Problem, ProblemKind, ScenarioError};
use crate::guest;
use crate::overrides::{self, Override};
use crate::quantity::Dimension;
use crate::tree::{self, Source};
use crate::types::Scenario;

impl Scenario {
    /// Reads the text of a scenario file. `source_name` is its name in messages; files that it
    /// names are relative to the directory of `source_name`.
    ///
    /// # Errors
    /// Everything that is wrong, in the order of the file.
    pub fn parse(text: &str, source_name: &str) -> Result<Self, ScenarioError> {
        Self::parse_with(text, source_name, &[] as &[&str])
    }

    /// Like [`Scenario::parse`], with overrides of the form `key=value`, as
    /// [`Override::change`] describes them, applied in order before anything is checked. Messages
    /// say that they come from `--set`.
    ///
    /// # Errors
    /// Everything that is wrong, first in the file, then in the overrides.
    pub fn parse_with<S: AsRef<str>>(
        text: &str,
        source_name: &str,
        sets: &[S],
    ) -> Result<Self, ScenarioError> {
        Self::parse_overridden(text, source_name, &from_set(sets))
    }

    /// Like [`Scenario::parse_with`], with overrides that say where they come from.
    ///
    /// # Errors
    /// Everything that is wrong, first in the text, then in the overrides.
    pub fn parse_overridden(
        text: &str,
        source_name: &str,
        overrides: &[Override<'_>],
    ) -> Result<Self, ScenarioError> {
        // A byte order mark, as some editors write it, is no part of the text.
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
        let guest = guest::take(&mut root);
        let mut checker = Checker::new(&sources);
        let checked = checker.root(&root);
        checker.finish()?;
        let checked = checked.expect("what has no problem is whole");
        let directory = build::directory_of(source_name);
        let mut scenario = build::scenario(checker, &checked, directory)?;
        scenario.scheduler.guest = guest;
        Ok(scenario)
    }

    /// Reads a scenario file.
    ///
    /// # Errors
    /// The file cannot be read, or everything that is wrong with it.
    pub fn load(path: impl AsRef<FilePath>) -> Result<Self, ScenarioError> {
        Self::load_with(path, &[] as &[&str])
    }

    /// Like [`Scenario::load`], with overrides as in [`Scenario::parse_with`].
    ///
    /// # Errors
    /// The file cannot be read, or everything that is wrong with it.
    pub fn load_with<S: AsRef<str>>(
        path: impl AsRef<FilePath>,
        sets: &[S],
    ) -> Result<Self, ScenarioError> {
        Self::load_overridden(path, &from_set(sets))
    }

    /// The same with overrides that say where each comes from.
    ///
    /// # Errors
    /// The file cannot be read, or everything that is wrong with it.
    pub fn load_overridden(
        path: impl AsRef<FilePath>,
        overrides: &[Override<'_>],
    ) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse_overridden(&text, &name, overrides),
            Err(error) => Err(ScenarioError::new(vec![Problem {
                kind: ProblemKind::Unreadable,
                source: name.clone(),
                line: 0,
                column: 0,
                length: 0,
                source_line: String::new(),
                key: String::new(),
                message: format!("the scenario `{name}` cannot be read: {error}"),
                help: "give the name of a scenario file (TOML)".into(),
            }])),
        }
    }
}

fn from_set<S: AsRef<str>>(sets: &[S]) -> Vec<Override<'_>> {
    sets.iter().map(|set| Override { option: "--set", change: set.as_ref() }).collect()
}

/// Reads a time such as `20 ms`, for other places than a scenario file.
///
/// # Errors
/// What is wrong with it, in one sentence.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    check::read(Dimension::Time, text).map(Duration::from_nanos)
}

/// Reads a rate such as `2 Mbit/s`, for other places than a scenario file.
///
/// # Errors
/// What is wrong with it, in one sentence.
pub fn parse_rate(text: &str) -> Result<Rate, String> {
    check::read(Dimension::Rate, text).map(Rate::from_bps)
}

/// Reads a size in bytes such as `45 kB`, for other places than a scenario file.
///
/// # Errors
/// What is wrong with it, in one sentence.
pub fn parse_size(text: &str) -> Result<u64, String> {
    check::read(Dimension::Size, text)
}
