//! `--config FILE.toml`: options of a command from a file.
//!
//! The keys are the long names of the command's options. The file is converted to words of the command line, so
//! that clap checks both in the same way. Errors are reported with their line in the file. Options on the command
//! line take precedence over the file.

use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use ropewalk_scenario::{Problem, ProblemKind, nearest};
use serde_json::{Map, Value, json};
use toml::de::{DeTable, DeValue};

use crate::failure::Failure;

/// Name of the option, as an argument and in a file.
const OPTION: &str = "config";
/// The argument of the tunnel's commands that names a file instead.
const TUNNEL: &str = "tunnel";

/// The innermost command's arguments, from its command line and the current contents of its file.
///
/// # Errors
/// The file cannot be read, or contains an error.
pub fn read_again(root: &Command, words: Vec<OsString>) -> Result<ArgMatches, Failure> {
    let configured = expand(root, words)?;
    let matched = root.clone().try_get_matches_from(&configured.words);
    let mut matches = matched.map_err(|error| {
        configured.locate(&error).unwrap_or_else(|| Failure::Input(error.to_string()))
    })?;
    while let Some((_, inner)) = matches.remove_subcommand() {
        matches = inner;
    }
    Ok(matches)
}

/// Whether the values of the option with this long name differ.
pub fn differs(command: &Command, long: &str, old: &ArgMatches, new: &ArgMatches) -> bool {
    let Some(option) = command.get_arguments().find(|it| it.get_long() == Some(long)) else {
        return false;
    };
    let values = |matches: &ArgMatches| -> Vec<OsString> {
        let raw = matches.try_get_raw(option.get_id().as_str()).ok().flatten();
        raw.map(|values| values.map(ToOwned::to_owned).collect()).unwrap_or_default()
    };
    values(old) != values(new)
}

/// A command line with the options of its file.
#[derive(Debug)]
pub struct Configured {
    /// The words to parse.
    pub words: Vec<OsString>,
    file: Option<ConfigFile>,
}

/// A file that was read.
#[derive(Debug)]
struct ConfigFile {
    source: String,
    text: String,
    /// The options that it sets, with the positions of their values.
    options: Vec<(String, Range<usize>)>,
}

/// Adds the options of the file that `--config` names, if the option is present and the command
/// takes it.
///
/// # Errors
/// The file cannot be read, is not TOML, or has a key or value that the command does not accept.
pub fn expand(root: &Command, mut words: Vec<OsString>) -> Result<Configured, Failure> {
    let found = root.clone().ignore_errors(true).try_get_matches_from(&words).ok();
    let Some((path, given)) = found.as_ref().and_then(|matches| named(root, matches)) else {
        return Ok(Configured { words, file: None });
    };
    let (command, matches) = given;
    let source = path.display().to_string();
    let text = fs::read_to_string(&path).map_err(|error| {
        let help = match (path_of(matches, OPTION), path_of(matches, TUNNEL)) {
            (None, Some(_)) => "`ropewalk tunnel new` writes this file; a path has a `/`",
            _ => "--config names a TOML file",
        };
        Failure::input(format!("cannot read `{source}`: {error}"), help)
    })?;
    let mut file = ConfigFile { source, text, options: Vec::new() };
    let added = file.words(command, matches)?;
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    words.splice(end..end, added);
    Ok(Configured { words, file: Some(file) })
}

/// The file that is passed to the innermost command, and that command.
fn named<'a>(
    root: &'a Command,
    matches: &'a ArgMatches,
) -> Option<(PathBuf, (&'a Command, &'a ArgMatches))> {
    let (mut command, mut matches) = (root, matches);
    while let Some((name, inner)) = matches.subcommand() {
        (command, matches) = (command.find_subcommand(name)?, inner);
    }
    let path = path_of(matches, OPTION).or_else(|| path_of(matches, TUNNEL))?;
    Some((path.clone(), (command, matches)))
}

fn path_of<'a>(matches: &'a ArgMatches, id: &str) -> Option<&'a PathBuf> {
    matches.try_get_one(id).ok().flatten()
}

impl Configured {
    /// Converts clap's error to one with its position in the file, if it comes from the file.
    pub fn locate(&self, error: &clap::Error) -> Option<Failure> {
        let file = self.file.as_ref()?;
        let ContextValue::String(option) = error.get(ContextKind::InvalidArg)? else { return None };
        let long = option.trim_start_matches('-').split([' ', '=']).next()?;
        let (_, place) = file.options.iter().find(|(name, _)| name == long)?;
        let text = error.to_string();
        let message = text.lines().next()?.trim_start_matches("error: ");
        let help = match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(valid)) => format!("valid: {}", valid.join(", ")),
            _ => String::new(),
        };
        Some(file.problem(place, ProblemKind::OutOfRange, message, &help))
    }
}

impl ConfigFile {
    /// The file as words of the command line, without the options on the command line itself.
    fn words(&mut self, command: &Command, given: &ArgMatches) -> Result<Vec<OsString>, Failure> {
        let text = std::mem::take(&mut self.text);
        let table = DeTable::parse(&text).map(toml::Spanned::into_inner);
        self.text.clone_from(&text);
        let table = table.map_err(|error| {
            let place = error.span().unwrap_or(0..0);
            self.problem(&place, ProblemKind::Syntax, error.message(), "the file is TOML")
        })?;
        let mut words = Vec::new();
        for (key, value) in table {
            let (name, place) = (key.get_ref().replace('_', "-"), value.span());
            let Some(option) = options(command).find(|option| answers_to(option, &name)) else {
                return Err(self.unknown(command, &name, &key.span()));
            };
            let long = option.get_long().unwrap_or_default().to_owned();
            if self.options.iter().any(|(other, _)| *other == long) {
                let message = format!("`{long}` is set twice");
                let help = "`_` and `-` are the same in names";
                return Err(self.problem(&key.span(), ProblemKind::Duplicate, &message, help));
            }
            let values = self.values(option, value.get_ref(), &place)?;
            if given.value_source(option.get_id().as_str()) != Some(ValueSource::CommandLine) {
                words.extend(values.into_iter().map(|value| match value {
                    Some(value) => format!("--{long}={value}").into(),
                    None => format!("--{long}").into(),
                }));
                self.options.push((long, place));
            }
        }
        Ok(words)
    }

    /// The values of an option. Empty for a switch that is on.
    fn values(
        &self,
        option: &Arg,
        value: &DeValue<'_>,
        place: &Range<usize>,
    ) -> Result<Vec<Option<String>>, Failure> {
        let wrong = |wanted: &str| {
            let long = option.get_long().unwrap_or_default();
            let message = format!("`{long}` is {wanted}");
            Err(self.problem(place, ProblemKind::WrongType, &message, &help_of(option)))
        };
        match (value, is_switch(option)) {
            (DeValue::Boolean(true), true) => Ok(vec![None]),
            (DeValue::Boolean(false), true) => Ok(Vec::new()),
            (_, true) => wrong("true or false"),
            (DeValue::Array(items), false) if is_list(option) => {
                let items: Option<Vec<_>> =
                    items.iter().map(|item| scalar(item.get_ref())).collect();
                items.map_or_else(
                    || wrong("a list of texts or numbers"),
                    |items| Ok(items.into_iter().map(Some).collect()),
                )
            }
            (other, false) => match scalar(other) {
                Some(text) => Ok(vec![Some(text)]),
                None if is_list(option) => wrong("a text, a number or a list of them"),
                None => wrong("a text or a number"),
            },
        }
    }

    fn unknown(&self, command: &Command, name: &str, place: &Range<usize>) -> Failure {
        let names: Vec<&str> = options(command).filter_map(Arg::get_long).collect();
        let help = nearest(name, &names).map_or_else(
            || "`--help` of the command lists the options".to_owned(),
            |option| format!("did you mean `{option}`?"),
        );
        let message = format!("unknown option `{name}`");
        self.problem(place, ProblemKind::UnknownKey, &message, &help)
    }

    fn problem(&self, at: &Range<usize>, kind: ProblemKind, message: &str, help: &str) -> Failure {
        let before = self.text.get(..at.start).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let source_line = self.text[line_start..].lines().next().unwrap_or_default();
        let column = before[line_start..].chars().count() + 1;
        let shown = self.text.get(at.clone()).unwrap_or_default().lines().next();
        let problem = Problem {
            kind,
            source: self.source.clone(),
            line: before.matches('\n').count() + 1,
            column,
            length: shown.map_or(1, |text| text.chars().count()).max(1),
            source_line: source_line.to_owned(),
            key: String::new(),
            message: message.to_owned(),
            help: help.to_owned(),
        };
        Failure::Input(problem.to_string())
    }
}

/// The options that a file may set.
pub fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let named = command.get_arguments().filter(|option| option.get_long().is_some());
    named.filter(|option| ![OPTION, "help", "version"].contains(&option.get_id().as_str()))
}

fn answers_to(option: &Arg, name: &str) -> bool {
    let aliases = option.get_all_aliases().unwrap_or_default();
    option.get_long() == Some(name) || aliases.contains(&name)
}

/// Whether an option is a switch.
pub fn is_switch(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::SetTrue | ArgAction::SetFalse)
}

/// Whether an option may have several values.
pub fn is_list(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::Append)
}

fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}

/// Description of an option in one line.
pub fn help_of(option: &Arg) -> String {
    option.get_help().map(ToString::to_string).unwrap_or_default()
}

/// The JSON Schema of the files that a command takes. `None` if the command takes no file.
pub fn schema(command: &Command) -> Option<Value> {
    command.get_arguments().find(|option| option.get_id() == OPTION)?;
    let mut properties = Map::new();
    for option in options(command) {
        let single = json!({ "type": ["string", "number"] });
        let mut property = match (is_switch(option), is_list(option)) {
            (true, _) => json!({ "type": "boolean" }),
            (false, false) => single,
            (false, true) => json!({ "oneOf": [single, { "type": "array", "items": single }] }),
        };
        property["description"] = help_of(option).into();
        let long = option.get_long().unwrap_or_default().to_owned();
        let snake = long.replace('-', "_");
        if snake != long {
            properties.insert(snake, property.clone());
        }
        properties.insert(long, property);
    }
    Some(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("Options of {}", command.get_bin_name().unwrap_or(command.get_name())),
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    }))
}
