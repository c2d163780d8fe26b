//! From text to [`Scenario`].

use std::path::Path as FilePath;

use ropewalk_base::{Duration, Rate};

use crate::build;
use crate::check::{self, Checker};
use crate::error::{Problem, ProblemKind, ScenarioError};
use crate::overrides;
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

    /// Like [`Scenario::parse`], with overrides of the form `key=value`, applied in order before
    /// anything is checked: `transfer.scheduler=daps`, `path.lte.rtt=40ms`, `path[1].loss=0.01`
    /// (positions count from 0). The value is TOML, or text without quotes. An override wins
    /// over keys that exclude its own: setting `rtt` takes `delay` away.
    ///
    /// # Errors
    /// Everything that is wrong, first in the file, then in the overrides.
    pub fn parse_with<S: AsRef<str>>(
        text: &str,
        source_name: &str,
        sets: &[S],
    ) -> Result<Self, ScenarioError> {
        // A byte order mark, as some editors write it, is no part of the text.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut sources = vec![Source { name: source_name.into(), text: text.into() }];
        sources.extend(sets.iter().map(|set| {
            let text = set.as_ref().to_owned();
            Source { name: format!("--set {text}"), text }
        }));
        let one = |problem: Box<Problem>| ScenarioError::new(vec![*problem]);
        let mut root = tree::parse(&sources, 0).map_err(one)?;
        for source in 1..sources.len() {
            overrides::apply(&mut root, &sources, source).map_err(one)?;
        }
        let mut checker = Checker::new(&sources);
        let checked = checker.root(&root);
        checker.finish()?;
        let checked = checked.expect("what has no problem is whole");
        build::scenario(checker, &checked, build::directory_of(source_name))
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
        let path = path.as_ref();
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse_with(&text, &name, sets),
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
