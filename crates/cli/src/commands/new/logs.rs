//! Scenarios of links whose rates were logged by other programs.

use std::io::ErrorKind;
use std::path::{Path, absolute};

use clap::Args;
use ropewalk_scenario::nearest;
use ropewalk_scenario::rates::{
    LARGEST_LOG, LoggedPath, RateLog, RateUnit, Rates, ReadOptions, scenario,
};

use super::ready_scenarios;
use crate::console::Console;
use crate::failure::Failure;
use crate::record_file;

/// How to read logs of rates.
#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// Column of the rates in a log with several
    #[arg(long, value_name = "NAME", requires = "from")]
    column: Option<String>,
    /// Unit of the rates, if the name of their column has none
    #[arg(long, value_name = "UNIT", requires = "from")]
    unit: Option<RateUnit>,
    /// Only the rows of a log that have this value in this column; may be repeated
    #[arg(long = "where", value_name = "COLUMN=VALUE", requires = "from", value_parser = column_and_value)]
    filter: Vec<(String, String)>,
}

impl LogArgs {
    /// Refuses these options for a ready scenario.
    pub(super) fn refuse_all(&self) -> Result<(), Failure> {
        if self.column.is_none() && self.unit.is_none() && self.filter.is_empty() {
            return Ok(());
        }
        Err(Failure::input(
            "--column, --unit and --where apply to logs of rates",
            "leave them out, or give a file with --from",
        ))
    }
}

fn column_and_value(text: &str) -> Result<(String, String), String> {
    let (column, value) = text.split_once('=').ok_or("use COLUMN=VALUE, for example run_num=1")?;
    Ok((column.trim().to_owned(), value.trim().to_owned()))
}

/// The scenario of these logs, for a file `out`. Says how each one was read.
pub(super) fn scenario_of(
    files: &[String],
    args: &LogArgs,
    out: Option<&Path>,
    console: Console,
) -> Result<String, Failure> {
    let options =
        ReadOptions { column: args.column.clone(), unit: args.unit, filter: args.filter.clone() };
    let mut paths = Vec::new();
    for name in files {
        let log = read(name, &options, console)?;
        console.note(format_args!("{name}: {}", log.summary()));
        let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let file = match log.rates {
            Rates::Mahimahi(_) => trace_name(name, out)?,
            Rates::Intervals(_) => name.clone(),
        };
        paths.push(LoggedPath { file, name: stem, log });
    }
    let lengths = || paths.iter().map(|path| path.log.seconds());
    let (shortest, longest) =
        (lengths().fold(f64::INFINITY, f64::min), lengths().fold(0.0, f64::max));
    if longest > shortest * 1.01 {
        console.note(format_args!(
            "the scenario lasts as long as the shortest log, {shortest:.0} s; the longest one takes {longest:.0} s"
        ));
    }
    Ok(scenario(&paths))
}

/// The name of a trace as a scenario at `out` has it: relative to the scenario, or absolute.
fn trace_name(name: &str, out: Option<&Path>) -> Result<String, Failure> {
    let folder = out.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_none() {
        return Ok(name.to_owned());
    }
    let path = absolute(name).map_err(|error| {
        Failure::input(format!("--from {name}: {error}"), "give an absolute name")
    })?;
    Ok(path.to_string_lossy().into_owned())
}

fn read(name: &str, options: &ReadOptions, console: Console) -> Result<RateLog, Failure> {
    let path = Path::new(name);
    if path.is_dir() {
        let help = "give each file with a --from of its own";
        return Err(Failure::input(format!("--from {name}: it is a directory"), help));
    }
    let content = record_file::read(path, LARGEST_LOG, console).map_err(|error| {
        if error.kind() == ErrorKind::FileTooLarge {
            let help = "cut out the rows of one link, for example with grep";
            return Failure::input(format!("--from {name}: {error}"), help);
        }
        absent(name, &error)
    })?;
    RateLog::read(&content, options).map_err(|error| {
        let place = if error.line > 0 { format!(":{}", error.line) } else { String::new() };
        Failure::input(format!("--from {name}{place}: {}", error.message), error.help)
    })
}

/// A name that is neither that of a ready scenario nor of a readable file.
fn absent(name: &str, error: &std::io::Error) -> Failure {
    let names: Vec<&str> = ready_scenarios().map(|ready| ready.name).collect();
    let help = nearest(name, &names).map_or_else(
        || "`ropewalk new --list` shows the ready scenarios".to_owned(),
        |ready| format!("did you mean the ready scenario `{ready}`?"),
    );
    let message = format!("--from {name}: not a ready scenario, and as a file: {error}");
    Failure::input(message, help)
}
