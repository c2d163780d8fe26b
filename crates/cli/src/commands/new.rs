//! `ropewalk new`: writes a scenario to start with.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use clap::Args;

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

/// Arguments of `new`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ropewalk new\n  ropewalk new mine.toml")]
pub struct NewArgs {
    /// File to write, or a directory to write scenario.toml into; an existing file is not
    /// overwritten. Without it the scenario is printed
    file: Option<PathBuf>,
}

/// Writes or prints the scenario.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &NewArgs, console: Console) -> Result<(), Failure> {
    let Some(path) = &args.file else { return output::print(TEMPLATE) };
    let path = if path.is_dir() { path.join("scenario.toml") } else { path.clone() };
    let name = path.display();
    let created = std::fs::File::create_new(&path);
    match created.and_then(|mut file| file.write_all(TEMPLATE.as_bytes())) {
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
