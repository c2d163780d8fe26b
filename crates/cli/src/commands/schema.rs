//! `ropewalk schema`: the JSON Schema of the scenario file, or of a command's file of options.

use clap::{Args, Command, CommandFactory};

use crate::failure::Failure;
use crate::{Cli, config, output};

/// Arguments of `schema`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ropewalk schema\n  ropewalk schema --config recv\n  ropewalk schema --config proxy exit\n  ropewalk schema --config tunnel up"
)]
pub struct SchemaArgs {
    /// Print the schema of the file that this command takes with --config
    #[arg(long, value_name = "COMMAND", num_args = 1..)]
    config: Vec<String>,
}

/// The commands below `command` that take a file, with the words before their names.
fn taking(command: &Command, before: &str) -> Vec<String> {
    let below = command.get_subcommands().flat_map(|inner| {
        let name = format!("{before}{}", inner.get_name());
        let further = taking(inner, &format!("{name} "));
        config::schema(inner).map(|_| name).into_iter().chain(further)
    });
    below.collect()
}

/// Prints the schema.
///
/// # Errors
/// There is no such command, or it takes no file.
pub fn execute(SchemaArgs { config: names }: &SchemaArgs) -> Result<(), Failure> {
    if names.is_empty() {
        return output::print(&ropewalk_scenario::json_schema());
    }
    let mut root = Cli::command();
    root.build();
    let mut command = Some(&root);
    for name in names.iter().flat_map(|name| name.split_whitespace()) {
        command = command.and_then(|command| command.find_subcommand(name));
    }
    let schema = command.and_then(config::schema).ok_or_else(|| {
        let message = format!("`{}` is no command that takes --config", names.join(" "));
        Failure::input(message, format!("these take it: {}", taking(&root, "").join(", ")))
    })?;
    output::print(&format!("{schema:#}"))
}
