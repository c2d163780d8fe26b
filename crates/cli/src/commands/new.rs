//! `ropewalk new`: writes a scenario to start with.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::PossibleValuesParser;
use ropewalk_scenario::{ACCESS_SCENARIOS, READY_SCENARIOS, ReadyScenario};

use crate::args::quoted;
use crate::console::Console;
use crate::failure::Failure;
use crate::output;

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
    ropewalk new boat.toml --from lte-satellite")]
pub struct NewArgs {
    /// File to write, or a directory to write scenario.toml into; an existing file is not
    /// overwritten. Without it the scenario is printed
    file: Option<PathBuf>,
    /// Start with a ready scenario
    #[arg(long, value_name = "NAME", value_parser = ready_names())]
    from: Option<String>,
    /// List the ready scenarios
    #[arg(long, conflicts_with_all = ["file", "from"])]
    list: bool,
}

/// The scenarios to start with.
fn ready_scenarios() -> impl Iterator<Item = &'static ReadyScenario> {
    READY_SCENARIOS.iter().chain(ACCESS_SCENARIOS)
}

/// The names of the ready scenarios, for messages and completions.
fn ready_names() -> PossibleValuesParser {
    PossibleValuesParser::new(ready_scenarios().map(|ready| ready.name))
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

/// The ready scenario to start with.
fn chosen(args: &NewArgs) -> Option<&'static ReadyScenario> {
    ready_scenarios().find(|ready| Some(ready.name) == args.from.as_deref())
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
    let ready = chosen(args);
    let text = ready.map_or(TEMPLATE, |ready| ready.text);
    let Some(path) = &args.file else { return output::print(text) };
    let path = if path.is_dir() { path.join("scenario.toml") } else { path.clone() };
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
