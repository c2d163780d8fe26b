//! The far end.

use clap::Args;
use ropewalk_apps::mux::Limits;
use ropewalk_apps::proxy::exit::{Exit, Policy, Rule};
use ropewalk_apps::proxy::live;
use ropewalk_runtime::endpoint::{Endpoint, Options};

use super::{CommonArgs, teller};
use crate::console::Console;
use crate::failure::Failure;
use crate::live::{AccessArgs, identity, listen, refused};

/// Arguments of `proxy exit`.
#[derive(Debug, Args)]
#[command(
    after_help = "Without --allow-to it leads to the open Internet, and not to this machine or its private networks.\n\n\
    Examples:\n  \
    ropewalk proxy exit --allow PUBKEY\n  \
    ropewalk proxy exit --listen 192.0.2.7 --listen 198.51.100.7:443 --allow PUBKEY --allow PUBKEY\n  \
    ropewalk proxy exit --allow PUBKEY --allow-to 10.0.0.0/8:22,wiki.lan"
)]
pub struct ExitArgs {
    /// Address of this machine, one per path; every one of them unless said otherwise
    #[arg(long, value_name = "ADDR[:PORT]", value_delimiter = ',', default_value = "0.0.0.0")]
    listen: Vec<String>,
    #[command(flatten)]
    access: AccessArgs,
    /// Lead there only: networks, hosts, ports, such as 10.0.0.0/8, wiki.lan:443, *.example.org, *:443
    #[arg(long, value_name = "DEST", value_delimiter = ',')]
    allow_to: Vec<Rule>,
    /// Lead to this machine, and to private and link-local networks, too
    #[arg(long)]
    allow_private: bool,
    /// Most connections at a time, of all near ends together
    #[arg(long, value_name = "N", default_value_t = 4096)]
    connections: usize,
    #[command(flatten)]
    common: CommonArgs,
}

/// Serves until it is interrupted.
pub async fn run(args: &ExitArgs, console: Console) -> Result<(), Failure> {
    if args.access.is_anyone() {
        let help = "name the near ends: --allow PUBKEY for each, or --allow-file peers.toml";
        return Err(Failure::input("an exit without --allow would be open to everybody", help));
    }
    let access = args.access.open()?;
    let secret = identity(args.common.key.as_deref(), console)?;
    let at: Result<Vec<_>, _> = args.listen.iter().map(|text| listen(text)).collect();
    let public = secret.public();
    let mut options = access.seal(Options::listening(&at?), secret);
    options.transport = args.common.transport()?;
    options.capture = args.common.transport.capture(console)?;
    let endpoint = Endpoint::open(options).map_err(refused)?;
    access.watch(&endpoint, console);
    let tell = teller(console, args.common.verbose);
    let policy = Policy { rules: args.allow_to.clone(), allow_private: args.allow_private };
    let exit = Exit::new(policy, args.connections, tell.clone());
    let at: Vec<_> = endpoint.locals().iter().map(ToString::to_string).collect();
    console.note(format_args!("exit at {}; its public key: {public}", at.join(" and ")));
    live::serve(&endpoint, &exit, Limits::default(), &tell).await;
    Ok(())
}
