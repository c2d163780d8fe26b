//! The `ropewalk` command.
//!
//! Data goes to stdout, everything else to stderr. The exit status is 0 on success, 1 when the run failed, and
//! 2 when the input was wrong and nothing was run or written.

mod args;
mod commands;
mod config;
mod console;
mod failure;
mod files;
mod live;
mod output;
mod printer;
mod progress;
mod table;
mod vary;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use ropewalk_scenario::json_schema;

use crate::commands::Command;
use crate::console::Console;
use crate::failure::Failure;

/// Simulates, predicts and explains multipath transport.
#[derive(Debug, Parser)]
#[command(name = "ropewalk", version, arg_required_else_help = true)]
#[command(after_help = "Examples:\n  \
    ropewalk run scenarios/wifi-lte.toml\n  \
    ropewalk compare scenarios/kuhn-2-200-45.toml\n  \
    ropewalk predict scenarios/wifi-lte.toml --json\n\n\
    Exit status: 0 success, 1 the run failed, 2 the input is wrong.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Write nothing but errors to stderr: no progress bar, no notes
    #[arg(long, short, global = true)]
    quiet: bool,
}

fn main() -> ExitCode {
    let result =
        parsed().and_then(|Cli { command, quiet }| commands::execute(command, Console::new(quiet)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::Status(_)) {
                console::write_error(&failure);
            }
            failure.exit_code()
        }
    }
}

/// The command line with the options of its file. What clap refuses of the command line ends the program here.
fn parsed() -> Result<Cli, Failure> {
    let configured = config::expand(&Cli::command(), std::env::args_os().collect())?;
    Cli::try_parse_from(&configured.words).or_else(|error| match configured.locate(&error) {
        Some(failure) => Err(failure),
        None => with_key(error).exit(),
    })
}

/// Suggests `--set` for an unknown option that is a key of the scenario, such as `--duration`.
fn with_key(mut error: clap::Error) -> clap::Error {
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => option.trim_start_matches('-').replace('-', "_"),
        _ => return error,
    };
    let schema: serde_json::Value = serde_json::from_str(&json_schema()).unwrap_or_default();
    let table = schema["properties"]["transfer"]["$ref"].as_str().unwrap_or_default();
    let keys = schema.pointer(table.trim_start_matches('#')).map(|table| &table["properties"]);
    let is_key = keys.is_some_and(|keys| keys.get(&unknown).is_some());
    if error.kind() == ErrorKind::UnknownArgument && is_key {
        let tip =
            format!("to change this key of the scenario, use '--set transfer.{unknown}=VALUE'");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn an_option_that_is_a_key_of_the_scenario_points_to_set() {
        for (option, tip) in [("--duration", true), ("--receive-buffer", true), ("--length", false)]
        {
            let error = Cli::try_parse_from(["ropewalk", "run", "a.toml", option, "1"]);
            let shown = with_key(error.expect_err("there is no such option")).to_string();
            assert_eq!(shown.contains("--set transfer."), tip, "{shown}");
        }
    }

    #[test]
    fn the_declaration_of_all_arguments_is_sound() {
        Cli::command().debug_assert();
    }
}
