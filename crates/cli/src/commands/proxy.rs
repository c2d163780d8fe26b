//! `ropewalk proxy`: carries connections of programs over all paths.

mod client;
mod exit;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ropewalk_apps::proxy::live;
use ropewalk_runtime::endpoint::Transport;

use crate::console::Console;
use crate::failure::Failure;
use crate::live::{ObserveArgs, Threads, TransportArgs, run_until_interrupted};

/// Arguments of `proxy`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Programs connect to the near end by SOCKS 5 or HTTP. Their connections leave at the exit, and all paths \
    between the two carry them, sealed. Names are resolved at the exit. Each end prints its public key, which \
    the other end needs. Nobody can use an exit without a key that it knows.\n\n\
    Examples:\n  \
    ropewalk proxy exit --allow PUBKEY                                   (at the far end)\n  \
    ropewalk proxy --to 192.0.2.7 --peer PUBKEY --socks 1080\n  \
    ropewalk proxy --to 192.0.2.7 --peer PUBKEY --http 8080 --forward 5432=db.example.org:5432\n  \
    curl --proxy socks5h://127.0.0.1:1080 http://example.org/"
)]
pub struct ProxyArgs {
    #[command(subcommand)]
    end: Option<End>,
    #[command(flatten)]
    client: client::ClientArgs,
}

/// The role of this end: the exit, or by default the near end.
#[derive(Debug, Subcommand)]
enum End {
    /// The far end, where connections leave
    Exit(exit::ExitArgs),
}

/// What both ends need.
#[derive(Clone, Debug, Args)]
struct CommonArgs {
    /// Own secret key file, instead of your default key, which is created when first needed
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    transport: TransportArgs,
    #[command(flatten)]
    observe: ObserveArgs,
    /// Show every connection
    #[arg(long, short)]
    verbose: bool,
}

impl CommonArgs {
    /// The transport: the proxy's defaults with the changes that the options make.
    fn transport(&self) -> Result<Transport, Failure> {
        let Transport { profile, scheduler, receive_buffer, congestion, .. } =
            self.transport.transport()?;
        Ok(Transport { profile, scheduler, receive_buffer, congestion, ..live::transport() })
    }
}

/// Runs one of the two ends until it is interrupted.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &ProxyArgs, console: Console) -> Result<(), Failure> {
    // Each connection is an open file at both ends, and the usual limit of 1024 is soon reached.
    ropewalk_apps::proxy::raise_file_limit();
    match &args.end {
        Some(End::Exit(args)) => {
            run_until_interrupted(Threads::PerCore, None, exit::prepare(args, console)?.run())
        }
        None => run_until_interrupted(Threads::PerCore, None, client::run(&args.client, console)),
    }
}
