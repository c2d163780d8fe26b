//! `ropewalk completions`: a completion script for a shell.

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::failure::Failure;
use crate::{Cli, output};

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  ropewalk completions bash")]
pub struct CompletionsArgs {
    /// Shell to complete for
    shell: Shell,
}

/// Prints the completion script.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "ropewalk", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
