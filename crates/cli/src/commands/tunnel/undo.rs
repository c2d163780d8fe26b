//! `ropewalk tunnel undo`: removes the changes that a killed tunnel has left.

use std::path::PathBuf;

use clap::Args;
use ropewalk_apps::tunnel::machine;

use super::{STATE_DIRECTORY, configuration, failed, name_of};
use crate::failure::Failure;
use crate::output;

/// Arguments of `tunnel undo`.
#[derive(Debug, Args)]
#[command(
    after_help = "A tunnel undoes its changes when it ends. If it was killed, its next start undoes them, and so does this \
    command. It also opens a kill switch that was left closed.\nA tunnel that is running is left alone.\n\n\
    Examples:\n  \
    ropewalk tunnel undo home"
)]
pub struct UndoArgs {
    /// Name of the tunnel, or the path of the file of its options
    #[arg(value_name = "NAME|FILE", value_parser = configuration)]
    name: Option<PathBuf>,
    /// Directory of the journal of changes on this machine
    #[arg(long, value_name = "DIR", default_value = STATE_DIRECTORY, alias = "run-directory")]
    state_directory: PathBuf,
}

/// Undoes what is left of a tunnel.
///
/// # Errors
/// [`Failure`]: the tunnel is running, or its journal cannot be opened.
pub fn execute(args: &UndoArgs) -> Result<(), Failure> {
    let name = name_of(args.name.as_deref());
    let undone = machine::undo(&args.state_directory, &name).map_err(failed)?;
    match undone {
        0 => output::print(&format!("nothing was left of the tunnel {name}\n")),
        count => output::print(&format!("changes of the tunnel {name} that are undone: {count}\n")),
    }
}
