//! `ropewalk new`: writes a scenario to start with.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use ropewalk_scenario::{READY_SCENARIOS, ReadyScenario};

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

/// The names of the ready scenarios, for messages and completions.
fn ready_names() -> PossibleValuesParser {
    PossibleValuesParser::new(READY_SCENARIOS.iter().map(|ready| ready.name))
}

/// Prints the names of the ready scenarios, and what they describe.
fn list() -> Result<(), Failure> {
    let widest = READY_SCENARIOS.iter().map(|ready| ready.name.len()).max().unwrap_or(0);
    let indent = " ".repeat(widest + 2);
    let mut text = String::new();
    for ready in READY_SCENARIOS {
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

/// The scenario to write.
fn template(args: &NewArgs) -> &'static str {
    let wanted = |ready: &&ReadyScenario| Some(ready.name) == args.from.as_deref();
    READY_SCENARIOS.iter().find(wanted).map_or(TEMPLATE, |ready| ready.text)
}

/// Writes or prints the scenario.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &NewArgs, console: Console) -> Result<(), Failure> {
    if args.list {
        return list();
    }
    let template = template(args);
    let Some(path) = &args.file else { return output::print(template) };
    let path = if path.is_dir() { path.join("scenario.toml") } else { path.clone() };
    let name = path.display();
    let created = std::fs::File::create_new(&path);
    match created.and_then(|mut file| file.write_all(template.as_bytes())) {
        Ok(()) => {
            let word = quoted(&path.to_string_lossy());
            console.note(format_args!("wrote {name}; next: ropewalk run {word}"));
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(Failure::input(format!("`{name}` already exists"), "give another name"))
        }
        Err(error) => Err(Failure::input(
            format!("cannot write `{name}`: {error}"),
            "give the name of a file in a directory that exists",
        )),
    }
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
