//! The `ropewalk` command.
//!
//! Data goes to stdout, everything else to stderr. The exit status is 0 on success, 1 when the run failed, and
//! 2 when the input was wrong and nothing was run or written.

mod args;
mod commands;
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

use clap::Parser;

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
    let Cli { command, quiet } = Cli::parse();
    match commands::execute(command, Console::new(quiet)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::Status(_)) {
                eprintln!("{failure}");
            }
            failure.exit_code()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_declaration_of_all_arguments_is_sound() {
        Cli::command().debug_assert();
    }
}
