//! `ropewalk tunnel new`: writes the configuration of a tunnel.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};

use super::client::UpArgs;
use super::hub::ServeArgs;
use super::{CONFIGURATIONS, configuration};
use crate::config;
use crate::console::Console;
use crate::failure::Failure;

const AFTER_HELP: &str = "The file has the options of `ropewalk tunnel up` or, with --hub, of `ropewalk tunnel serve`: those that are given, and the most usual \
    ones as comments. An existing file is not overwritten.\n\n\
    Examples:\n  \
    ropewalk tunnel new home --to 192.0.2.7 --peer PUBKEY\n  \
    ropewalk tunnel new home --peer PUBKEY --to 192.0.2.7 --kill-switch --link 'wwan0 use=backup'\n  \
    ropewalk tunnel new hub --hub --allow PUBKEY";

/// Identifiers of the arguments that are not written to the file.
const FILE: &str = "new-file";
const HUB: &str = "new-hub";

const CLIENT_TEXT: &str = "\
# A tunnel to a hub: `ropewalk tunnel up NAME`. The keys are the options of this command.

# Addresses of the hub, one per path. A paired hub needs none.
# to = [\"192.0.2.7\"]

# The hub, by the name under which it was paired, or by its public key.
# peer = \"hub\"

# Hubs that are used while those before them do not answer.
# backup_hub = [\"198.51.100.9=PUBKEY\"]

# Interfaces or addresses to send from; all interfaces by default.
# from = [\"wlan0\", \"wwan0\"]

# When a link carries data, and how much.
# link = [\"wwan0 use=backup cap=20GB/month\"]

# Networks that are reached through the tunnel; everything by default.
# route = [\"10.20.0.0/16\"]

# Let nothing leave this machine outside of the tunnel, except to these networks.
# kill_switch = true
# direct = [\"192.168.1.0/24\"]

# Name servers while the tunnel is up; those of the hub by default.
# dns = [\"9.9.9.9\"]
";

const HUB_TEXT: &str = "\
# The hub of a tunnel: `ropewalk tunnel serve NAME`. The keys are the options of this command.

# Clients, by the names under which they were paired, or by their public keys; or a file of peers.
# allow = [\"laptop\"]
# allow_file = \"/etc/ropewalk/peers.toml\"

# Addresses of this machine to listen on; all by default.
# listen = [\"192.0.2.7\"]

# Networks of the tunnel.
network = [\"10.88.0.0/16\", \"fd88::/64\"]

# Without translation of addresses: the network routes the tunnel's networks to this hub.
# routed = true

# What clients may reach besides the Internet.
# client_to_client = true
# allow_private = true

# What each client may carry: in each direction, and in a calendar month.
# rate = \"20 Mbit/s\"
# quota = \"20 GB/month\"

# Name servers that clients are told.
# dns = [\"9.9.9.9\"]
";

/// Arguments of `tunnel new`: the options of both ends.
#[derive(Debug)]
pub struct NewArgs {
    file: PathBuf,
    hub: bool,
    given: Vec<Given>,
}

/// An option that was given.
#[derive(Debug)]
struct Given {
    long: String,
    help: String,
    /// In TOML.
    value: String,
}

/// The options of `tunnel up` and of `tunnel serve`.
fn ends() -> [Vec<Arg>; 2] {
    let [up, serve] =
        [UpArgs::augment_args(Command::new("up")), ServeArgs::augment_args(Command::new("serve"))];
    [&up, &serve].map(|command| config::options(command).cloned().collect())
}

/// The options of both, without duplicates.
fn options() -> Vec<Arg> {
    let [mut all, serve] = ends();
    let is_new = |option: &Arg| !all.iter().any(|other| other.get_id() == option.get_id());
    let more: Vec<Arg> = serve.into_iter().filter(is_new).collect();
    all.extend(more);
    all
}

impl Args for NewArgs {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new(FILE)
            .value_name("NAME|FILE")
            .value_parser(configuration)
            .required(true)
            .help("Name of the tunnel, for /etc/ropewalk/tunnel/NAME.toml, or a path");
        let hub = Arg::new(HUB)
            .long("hub")
            .action(ArgAction::SetTrue)
            .value_parser(value_parser!(bool))
            .help("Write the configuration of a hub");
        command.arg(file).arg(hub).args(options()).after_help(AFTER_HELP)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for NewArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self {
            file: matches.get_one::<PathBuf>(FILE).cloned().unwrap_or_default(),
            hub: matches.get_flag(HUB),
            given: options().iter().filter_map(|option| Given::of(option, matches)).collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Given {
    fn of(option: &Arg, matches: &ArgMatches) -> Option<Self> {
        let id = option.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            return None;
        }
        let raw = matches.get_raw(id).into_iter().flatten();
        let texts: Vec<String> = raw.map(|text| quoted(&text.to_string_lossy())).collect();
        let value = match (config::is_switch(option), config::is_list(option)) {
            (true, _) => "true".to_owned(),
            (false, true) => format!("[{}]", texts.join(", ")),
            (false, false) => texts.join(""),
        };
        let long = option.get_long()?.to_owned();
        Some(Self { long, help: config::help_of(option), value })
    }

    /// Sets the option in the text of a file, replacing its line or appending one.
    fn set_in(&self, text: &str) -> String {
        let key = self.long.replace('-', "_");
        let new = format!("{key} = {}", self.value);
        let is_its = |line: &str| {
            let line = line.strip_prefix("# ").unwrap_or(line);
            line.strip_prefix(&key).is_some_and(|rest| rest.starts_with(" = "))
        };
        if !text.lines().any(is_its) {
            let help = self.help.lines().next().unwrap_or_default();
            return format!("{text}\n# {help}.\n{new}\n");
        }
        text.lines()
            .map(|line| if is_its(line) { new.clone() } else { line.to_owned() } + "\n")
            .collect()
    }
}

/// A quoted text. JSON and TOML quote texts in the same way.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The text of the file.
///
/// # Errors
/// An option does not belong to the command that reads the file.
fn text(args: &NewArgs) -> Result<String, Failure> {
    let [up, serve] = ends();
    let (own, text, command) =
        if args.hub { (serve, HUB_TEXT, "serve") } else { (up, CLIENT_TEXT, "up") };
    let is_own = |given: &Given| own.iter().any(|option| option.get_long() == Some(&given.long));
    if let Some(foreign) = args.given.iter().find(|given| !is_own(given)) {
        let message = format!("--{} is no option of `ropewalk tunnel {command}`", foreign.long);
        let help = match args.hub {
            true => "without --hub, the file is that of a client",
            false => "with --hub, the file is that of a hub",
        };
        return Err(Failure::input(message, help));
    }
    Ok(args.given.iter().fold(text.to_owned(), |text, given| given.set_in(&text)))
}

/// Writes the file.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &NewArgs, console: Console) -> Result<(), Failure> {
    let (text, command) = (text(args)?, if args.hub { "serve" } else { "up" });
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
