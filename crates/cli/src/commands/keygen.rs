//! `ropewalk keygen`: a key that a peer knows one by.

use std::path::PathBuf;

use clap::Args;
use ropewalk_runtime::seal::{KeyFileError, SecretKey};
use serde::Serialize;

use crate::console::Console;
use crate::failure::Failure;
use crate::output;

/// Arguments of `keygen`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ropewalk keygen me.key\n  ropewalk keygen --public me.key\n\n\
    The file holds the secret: keep it on this machine. Give the printed public key to the peer."
)]
pub struct KeygenArgs {
    /// File for the new secret key, readable by you alone; a file that exists is left alone
    file: PathBuf,
    /// Make no key: print the public key of the secret one in FILE
    #[arg(long)]
    public: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    public_key: String,
    file: String,
    created: bool,
}

/// Writes the secret key, and prints the public one.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &KeygenArgs, console: Console) -> Result<(), Failure> {
    let key = if args.public { SecretKey::read_file(&args.file)? } else { create(args, console)? };
    let public_key = key.public().to_string();
    if !args.json {
        return output::print(&(public_key + "\n"));
    }
    output::print_json(&Document {
        schema: "ropewalk.keygen/1",
        public_key,
        file: args.file.to_string_lossy().into_owned(),
        created: !args.public,
    })
}

fn create(args: &KeygenArgs, console: Console) -> Result<SecretKey, Failure> {
    let key = SecretKey::generate().map_err(|error| Failure::Run(error.to_string()))?;
    key.write_new_file(&args.file)?;
    let file = args.file.display();
    console.note(format_args!("{file} holds the secret; give the public key to the peer:"));
    Ok(key)
}

impl From<KeyFileError> for Failure {
    fn from(error: KeyFileError) -> Self {
        Self::input(&error, error.help())
    }
}
