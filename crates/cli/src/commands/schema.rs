//! `ropewalk schema`: the JSON Schema of the scenario file.

use clap::Args;

use crate::failure::Failure;
use crate::output;

/// Arguments of `schema`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  ropewalk schema")]
pub struct SchemaArgs {}

/// Prints the schema.
///
/// # Errors
/// [`Failure`].
pub fn execute(SchemaArgs {}: &SchemaArgs) -> Result<(), Failure> {
    output::print(&ropewalk_scenario::json_schema())
}
