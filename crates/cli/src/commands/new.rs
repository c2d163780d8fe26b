//! `ropewalk new`: writes an initial scenario.

mod logs;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use ropewalk_scenario::{ACCESS_SCENARIOS, READY_SCENARIOS, ReadyScenario};

use crate::args::quoted;
use crate::console::Console;
use crate::failure::Failure;
use crate::output;

use logs::LogArgs;

/// Two paths that are worth scheduling: one with a short round trip, one with a long one and twice the rate.
const TEMPLATE: &str = r#"[transfer]
duration       = "60 s"
scheduler      = "lay"
receive_buffer = "45 kB"

[[path]]
name = "wifi"
rate = "1 Mbit/s"
rtt  = "20 ms"

[[path]]
name = "lte"
rate = "2 Mbit/s"
rtt  = "200 ms"
"#;

/// Width of a line of the list.
const LINE: usize = 100;

/// Arguments of `new`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ropewalk new\n  \
    ropewalk new mine.toml\n  \
    ropewalk new --list\n  \
    ropewalk new boat.toml --from lte-satellite\n  \
    ropewalk new bus.toml --from bus.log --from starlink.csv")]
pub struct NewArgs {
    /// File to write, or a directory to write scenario.toml into; an existing file is not
    /// overwritten. Without it the scenario is printed
    file: Option<PathBuf>,
    /// Start with a ready scenario (--list shows them), or with logs of the rates of links, one path for each: CSV of time
    /// and rate, FCC, HSDPA and 4G bandwidth logs, 5G production, Lumos5G, Mahimahi
    #[arg(long, value_name = "NAME|FILE", value_parser = ReadyOrFile, hide_possible_values = true)]
    from: Vec<String>,
    #[command(flatten)]
    logs: LogArgs,
    /// List the ready scenarios
    #[arg(long, conflicts_with_all = ["file", "from"])]
    list: bool,
}

/// The scenarios to start with.
fn ready_scenarios() -> impl Iterator<Item = &'static ReadyScenario> {
    READY_SCENARIOS.iter().chain(ACCESS_SCENARIOS)
}

/// The name of a ready scenario, which completions know, or of a file.
#[derive(Clone, Debug)]
struct ReadyOrFile;

impl TypedValueParser for ReadyOrFile {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(ready_scenarios().map(|ready| PossibleValue::new(ready.name))))
    }
}

/// Prints the names of the ready scenarios, and what they describe.
fn list() -> Result<(), Failure> {
    let widest = ready_scenarios().map(|ready| ready.name.len()).max().unwrap_or(0);
    let indent = " ".repeat(widest + 2);
    let mut text = String::new();
    for ready in ready_scenarios() {
        let (description, mut width) = (ready.description(), 0);
        text += &format!("{:widest$}  ", ready.name);
        for word in description.split(' ') {
            if width > 0 && width + 1 + word.len() > LINE.saturating_sub(indent.len()) {
                text += &format!("\n{indent}");
                width = 0;
            }
            let space = if width > 0 { " " } else { "" };
            text += &format!("{space}{word}");
            width += space.len() + word.len();
        }
        text.push('\n');
    }
    output::print(&text)
}

/// The ready scenario to start with; `None` if there are logs instead.
fn chosen(args: &NewArgs) -> Result<Option<&'static ReadyScenario>, Failure> {
    let is_ready = |name: &String| ready_scenarios().find(|ready| ready.name == name);
    let Some(ready) = args.from.iter().find_map(is_ready) else { return Ok(None) };
    if args.from.len() > 1 {
        return Err(Failure::input(
            format!("--from {}: a ready scenario cannot be combined with others", ready.name),
            "give one ready scenario, or logs of rates only",
        ));
    }
    args.logs.refuse_all()?;
    Ok(Some(ready))
}

/// Writes a file that does not exist yet.
fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let name = path.display();
    let created = File::create_new(path);
    created.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
        if error.kind() == ErrorKind::AlreadyExists {
            return Failure::input(format!("`{name}` already exists"), "give another name");
        }
        Failure::input(
            format!("cannot write `{name}`: {error}"),
            "give the name of a file in a directory that exists",
        )
    })
}

/// Writes a file that a ready scenario names, unless it is there.
fn write_beside(path: &Path, text: &str) -> Result<(), Failure> {
    if std::fs::read_to_string(path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    let directory = path.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(directory).map_err(|error| {
        let message = format!("cannot create `{}`: {error}", directory.display());
        Failure::input(message, "give the name of a file in a directory that is writable")
    })?;
    write_new(path, text)
}

/// Writes or prints the scenario.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &NewArgs, console: Console) -> Result<(), Failure> {
    if args.list {
        return list();
    }
    let ready = chosen(args)?;
    let path = args.file.as_deref();
    let path =
        path.map(|path| if path.is_dir() { path.join("scenario.toml") } else { path.into() });
    let logged = if ready.is_none() && !args.from.is_empty() {
        Some(logs::scenario_of(&args.from, &args.logs, path.as_deref(), console)?)
    } else {
        None
    };
    let text = logged.as_deref().unwrap_or(ready.map_or(TEMPLATE, |ready| ready.text));
    let Some(path) = path else { return output::print(text) };
    write_new(&path, text)?;
    for (name, text) in ready.map_or(&[][..], |ready| ready.files) {
        write_beside(&path.with_file_name(name), text)?;
    }
    let word = quoted(&path.to_string_lossy());
    console.note(format_args!("wrote {}; next: ropewalk run {word}", path.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_to_start_from_is_sound() {
        let scenario = ropewalk_scenario::Scenario::parse(TEMPLATE, "new").expect("a scenario");
        assert_eq!(scenario.paths.len(), 2);
    }
}
