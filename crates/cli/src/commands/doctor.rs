//! `ropewalk doctor`: checks this machine, its links and the way to a peer.

mod facts;
mod local;
mod nat;
mod peer;
mod routes;
mod show;
mod verdict;

use clap::Args;

use self::facts::{Facts, KeyFact};
use self::show::Document;
use self::verdict::Check;
use super::transfer::runtime;
use crate::console::{Console, width};
use crate::failure::Failure;
use crate::live::{ReachArgs, TransportArgs, listen};
use crate::output;

/// The address that servers listen on by default.
const ANYWHERE: &str = "0.0.0.0";

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(
    mut_arg("to", |arg| arg.requires("peer")),
    mut_arg("plain", |arg| arg.hide(true)),
    mut_arg("port", |arg| arg.hide(true)),
    after_help = "Without --to, nothing is sent. Exit status: 0 ok or warnings, 1 a check failed, 2 the input is wrong.\n\n\
    Examples:\n  \
    ropewalk doctor\n  \
    ropewalk doctor --json\n  \
    ropewalk doctor --to 192.0.2.7 --from wlan0,wwan0 --peer PUBKEY"
)]
pub struct DoctorArgs {
    #[command(flatten)]
    reach: ReachArgs,
    #[command(flatten)]
    transport: TransportArgs,
    /// Address whose UDP port should be free; all addresses, port 9899, by default
    #[arg(long, value_name = "ADDR[:PORT]")]
    listen: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Checks, and prints what was found.
///
/// # Errors
/// [`Failure`]; status 1 if a check failed.
pub fn execute(args: &DoctorArgs, console: Console) -> Result<(), Failure> {
    let default = [ANYWHERE.to_owned()];
    let texts = if args.listen.is_empty() { &default[..] } else { &args.listen };
    let addresses = texts.iter().map(|text| listen(text)).collect::<Result<Vec<_>, _>>()?;
    let facts = Facts::gather(&addresses, !args.listen.is_empty(), args.reach.key_file());
    let usable = !matches!(facts.key, KeyFact::Unusable(..));
    let (mut remotes, mut reached, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    if args.reach.is_given() && usable {
        let (options, target) = args.reach.options(&args.transport, console)?;
        remotes = target.addresses.iter().map(|remote| remote.ip()).collect();
        let found = runtime()?.block_on(peer::probe(&options, &target));
        rows = peer::rows(&found);
        reached = peer::checks(&found, args.reach.names_links());
    } else if args.reach.is_given() {
        reached.push(Check::not_checked("reach peer", "the key cannot be used"));
    }
    let mut checks = local::checks(&facts, &remotes);
    checks.extend(reached);
    let document = Document::new(&checks, &rows);
    match args.json {
        true => output::print_json(&document)?,
        false => output::print(&show::text(&checks, width()))?,
    }
    if document.has_failed() { Err(Failure::Status(1)) } else { Ok(()) }
}
