//! One file per command.

mod run;

use clap::Subcommand;

use crate::failure::Failure;

/// What can be asked for.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Simulate one scenario
    Run(run::RunArgs),
}

/// Does what was asked for.
///
/// # Errors
/// [`Failure`].
pub fn execute(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::execute(&args),
    }
}
