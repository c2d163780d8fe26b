//! `ropewalk tunnel status`: the running tunnels.

use clap::Args;

use super::super::status::print;
use crate::failure::Failure;
use crate::live::running;

/// Arguments of `tunnel status`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ropewalk tunnel status\n  ropewalk tunnel status --json")]
pub struct StatusArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Prints the status of all running tunnels.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &StatusArgs) -> Result<(), Failure> {
    let tunnels = running()?.into_iter().filter(|status| status.tunnel.is_some()).collect();
    print(tunnels, args.json, "no tunnel is running\n")
}
