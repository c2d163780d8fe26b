//! The far end.

use clap::Args;
use ropewalk_apps::mux::Limits;
use ropewalk_apps::proxy::exit::{Exit, Policy, Rule};
use ropewalk_apps::proxy::live;
use ropewalk_runtime::endpoint::{Endpoint, Options, Transport};
use ropewalk_runtime::seal::Allowed;

use super::{CommonArgs, ends, teller};
use crate::console::Console;
use crate::failure::Failure;

/// Arguments of `proxy exit`.
#[derive(Debug, Args)]
#[command(
    after_help = "Without --allow-to it leads to the open Internet, and not to this machine or its private networks.\n\n\
    Examples:\n  \
    ropewalk proxy exit --listen 0.0.0.0 --key exit.key --peer \"$NEAR\"\n  \
    ropewalk proxy exit --listen 192.0.2.7,198.51.100.7 --key exit.key --peer near-ends.txt\n  \
    ropewalk proxy exit --listen 0.0.0.0:4433 --key exit.key --peer \"$NEAR\" --allow-to 10.0.0.0/8:22,wiki.lan"
)]
pub struct ExitArgs {
    /// Addresses to listen at, one per path; without a port: 9899
    #[arg(long, value_name = "ADDR[:PORT]", value_delimiter = ',', required = true)]
    listen: Vec<String>,
    /// Public keys of the near ends that may use it, or a file with one in each line
    #[arg(long, value_name = "KEY|FILE", value_delimiter = ',', required = true)]
    peer: Vec<String>,
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
    let secret = ends::secret(args.common.key.as_deref())?;
    let peers = ends::peers(&args.peer)?;
    if peers.is_empty() {
        return Err(Failure::input(
            "no near end may use this exit: --peer names a file without a key",
            "put the public key of each near end on a line of its own",
        ));
    }
    let listen: Result<Vec<_>, _> = args.listen.iter().map(|text| ends::listen(text)).collect();
    let public = secret.public();
    let mut options = Options::listening(&listen?).sealed(secret, Allowed::Keys(peers));
    options.transport = Transport { scheduler: args.common.scheduler.clone(), ..live::transport() };
    let endpoint = Endpoint::open(options).map_err(|error| ends::not_open(&error))?;
    let tell = teller(console, args.common.verbose);
    let policy = Policy { rules: args.allow_to.clone(), allow_private: args.allow_private };
    let exit = Exit::new(policy, args.connections, tell.clone());
    let at: Vec<_> = endpoint.locals().iter().map(ToString::to_string).collect();
    console.note(format_args!("exit at {}; its public key: {public}", at.join(" and ")));
    live::serve(&endpoint, &exit, Limits::default(), &tell).await;
    Ok(())
}
