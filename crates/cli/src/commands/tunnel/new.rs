//! `ropewalk tunnel new`: writes the configuration of a tunnel.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use clap::Args;

use super::{CONFIGURATIONS, configuration};
use crate::console::Console;
use crate::failure::Failure;

/// Arguments of `tunnel new`.
#[derive(Debug, Args)]
#[command(
    after_help = "The file has the options of `ropewalk tunnel up` or, with --hub, of `ropewalk tunnel serve`, each with a \
    comment. An existing file is not overwritten.\n\n\
    Examples:\n  \
    ropewalk tunnel new home --to 192.0.2.7 --peer PUBKEY\n  \
    ropewalk tunnel new hub --hub --allow PUBKEY"
)]
pub struct NewArgs {
    /// Name of the tunnel, for /etc/ropewalk/tunnel/NAME.toml, or a path
    #[arg(value_name = "NAME|FILE", value_parser = configuration)]
    file: PathBuf,
    /// Write the configuration of a hub
    #[arg(long, conflicts_with_all = ["to", "peer"])]
    hub: bool,
    /// Addresses of the hub, one per path
    #[arg(long, value_name = "ADDR[:PORT]", value_delimiter = ',')]
    to: Vec<String>,
    /// The hub, by name or public key
    #[arg(long, value_name = "NAME|PUBKEY")]
    peer: Option<String>,
    /// Clients of the hub, by name or public key
    #[arg(long, value_name = "NAME|PUBKEY", value_delimiter = ',', requires = "hub")]
    allow: Vec<String>,
}

/// A list of texts in TOML.
fn list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", quoted.join(", "))
}

/// A text in quotes: JSON quotes texts as TOML does.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn client(args: &NewArgs) -> String {
    let to = if args.to.is_empty() {
        "# to = [\"192.0.2.7\"]".to_owned()
    } else {
        format!("to = {}", list(&args.to))
    };
    let peer = args
        .peer
        .as_deref()
        .map_or_else(|| "# peer = \"hub\"".to_owned(), |peer| format!("peer = {}", quoted(peer)));
    format!(
        "# A tunnel to a hub: `ropewalk tunnel up NAME`. The keys are the options of this command.\n\n\
         # Addresses of the hub, one per path. A paired hub needs none.\n{to}\n\n\
         # The hub, by the name under which it was paired, or by its public key.\n{peer}\n\n\
         # Hubs that are used while those before them do not answer.\n# backup_hub = [\"198.51.100.9=PUBKEY\"]\n\n\
         # Interfaces or addresses to send from; all interfaces by default.\n# from = [\"wlan0\", \"wwan0\"]\n\n\
         # Networks that are reached through the tunnel; everything by default.\n# route = [\"10.20.0.0/16\"]\n\n\
         # Let nothing leave this machine outside of the tunnel, except to these networks.\n\
         # kill_switch = true\n# direct = [\"192.168.1.0/24\"]\n\n\
         # Name servers while the tunnel is up; those of the hub by default.\n# dns = [\"9.9.9.9\"]\n"
    )
}

fn hub(args: &NewArgs) -> String {
    let allow = if args.allow.is_empty() {
        "# allow = [\"laptop\"]".to_owned()
    } else {
        format!("allow = {}", list(&args.allow))
    };
    format!(
        "# The hub of a tunnel: `ropewalk tunnel serve NAME`. The keys are the options of this command.\n\n\
         # Clients, by the names under which they were paired, or by their public keys; or a file of peers.\n{allow}\n\
         # allow_file = \"/etc/ropewalk/peers.toml\"\n\n\
         # Addresses of this machine to listen on; all by default.\n# listen = [\"192.0.2.7\"]\n\n\
         # Networks of the tunnel.\nnetwork = [\"10.88.0.0/16\", \"fd88::/64\"]\n\n\
         # Without translation of addresses: the network routes the tunnel's networks to this hub.\n# routed = true\n\n\
         # What clients may reach besides the Internet.\n# client_to_client = true\n# allow_private = true\n\n\
         # What each client may carry: in each direction, and in a calendar month.\n# rate = \"20 Mbit/s\"\n# quota = \"20 GB/month\"\n\n\
         # Name servers that clients are told.\n# dns = [\"9.9.9.9\"]\n"
    )
}

/// Writes the file.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &NewArgs, console: Console) -> Result<(), Failure> {
    let (text, command) = if args.hub { (hub(args), "serve") } else { (client(args), "up") };
    let shown = args.file.display();
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::input(format!("`{shown}` already exists"), "edit it, or choose another name")
        }
        _ => Failure::input(
            format!("cannot write `{shown}`: {error}"),
            format!(
                "names are files in {CONFIGURATIONS}, which root may write; a path with a `/` is written there"
            ),
        ),
    };
    if let Some(directory) = args.file.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    let created = OpenOptions::new().write(true).create_new(true).open(&args.file);
    created.and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)?;
    let default = args.file.parent() == Some(std::path::Path::new(CONFIGURATIONS));
    let name =
        if default { args.file.file_stem().unwrap_or_default() } else { args.file.as_os_str() };
    let word = crate::args::quoted(&name.to_string_lossy());
    console.note(format_args!("wrote {shown}; next: ropewalk tunnel {command} {word}"));
    Ok(())
}
