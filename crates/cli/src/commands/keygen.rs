//! `ropewalk keygen`: creates a secret key with its public key, or a pre-shared key.

use std::path::PathBuf;

use clap::Args;
use ropewalk_runtime::seal::{KeyFileError, PresharedKey, SecretKey, write_new_secret};
use serde::Serialize;

use crate::console::Console;
use crate::failure::Failure;
use crate::output;

/// Arguments of `keygen`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ropewalk keygen me.key\n  ropewalk keygen --public me.key\n  ropewalk keygen --psk shared.psk\n  ropewalk keygen --secrets secrets\n\n\
    The file holds the secret: keep it on this machine. Give the printed public key to the peer. \
    A pre-shared key and secrets are secret too, and both ends need the same file: copy it over a channel that nobody else can read."
)]
pub struct KeygenArgs {
    /// File for the new key, readable by you alone; an existing file is not overwritten
    file: PathBuf,
    /// Create no key: print the public key of the secret key in FILE
    #[arg(long)]
    public: bool,
    /// Create a pre-shared key, which both ends use in addition to their own keys
    #[arg(long, conflicts_with = "public")]
    psk: bool,
    /// Create a file with a secret for authenticated chunks (RFC 4895), for --secrets-file
    #[arg(long, conflicts_with_all = ["public", "psk"])]
    secrets: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    /// Absent for a pre-shared key and for secrets, which have no public key.
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<String>,
    file: String,
    created: bool,
}

/// Writes the secret key and prints the public one, or writes a pre-shared key or a file with secrets.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &KeygenArgs, console: Console) -> Result<(), Failure> {
    let public_key = match args.psk {
        true => create_psk(args, console).map(|()| None)?,
        false if args.secrets => create_secrets(args, console).map(|()| None)?,
        false if args.public => Some(SecretKey::read_file(&args.file)?.public().to_string()),
        false => Some(create(args, console)?.public().to_string()),
    };
    if !args.json {
        return public_key.map_or(Ok(()), |key| output::print(&(key + "\n")));
    }
    output::print_json(&Document {
        schema: "ropewalk.keygen/1",
        public_key,
        file: args.file.to_string_lossy().into_owned(),
        created: !args.public,
    })
}

fn create_psk(args: &KeygenArgs, console: Console) -> Result<(), Failure> {
    let psk = PresharedKey::generate().map_err(|error| Failure::Run(error.to_string()))?;
    psk.write_new_file(&args.file)?;
    let file = args.file.display();
    console.note(format_args!(
        "{file} holds the pre-shared key; both ends need it: --psk-file {file}"
    ));
    Ok(())
}

fn create_secrets(args: &KeygenArgs, console: Console) -> Result<(), Failure> {
    write_new_secret("1 hex:", &args.file)?;
    let file = args.file.display();
    console.note(format_args!(
        "{file} holds a secret for authenticated chunks; both ends need it: --plain --secrets-file {file}"
    ));
    Ok(())
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
