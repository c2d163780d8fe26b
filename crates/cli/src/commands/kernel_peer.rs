//! `ropewalk kernel-peer`: one end of a bulk transfer over the kernel's TCP or Multipath TCP, for `validate` and
//! `bench compare`, which run it in the namespaces of an emulation.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use ropewalk_base::Duration;
use ropewalk_lab::output::write_atomically;
use ropewalk_runtime::kernel::{ReceiverPlan, SenderPlan, receive, send};
use ropewalk_scenario::parse_duration;
use serde::Serialize;

use crate::failure::Failure;
use crate::files::failed;

/// Arguments of `kernel-peer`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  ropewalk kernel-peer receive --help")]
pub struct KernelPeerArgs {
    #[command(subcommand)]
    side: Side,
}

#[derive(Debug, Subcommand)]
enum Side {
    /// Receive, and write what arrived when
    Receive(ReceiveArgs),
    /// Send, and write the state of the sockets over time
    Send(SendArgs),
}

#[derive(Debug, Args)]
struct CommonArgs {
    /// Multipath TCP instead of TCP
    #[arg(long)]
    mptcp: bool,
    /// How long
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    time: Duration,
    /// Write the samples as one JSON document
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Debug, Args)]
struct ReceiveArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Number of connections
    #[arg(long, value_name = "N", default_value_t = 1)]
    flows: usize,
    /// SO_RCVBUF of each connection, bytes [default: the kernel tunes it]
    #[arg(long, value_name = "BYTES")]
    buffer: Option<usize>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct SendArgs {
    /// The receiver
    #[arg(long, value_name = "ADDRESS:PORT")]
    to: SocketAddr,
    /// Congestion control of each connection, such as cubic; each starts one
    #[arg(long, value_name = "NAME", required = true)]
    congestion: Vec<String>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Sends or receives.
///
/// # Errors
/// A socket cannot be used, or the document cannot be written.
pub fn execute(args: &KernelPeerArgs) -> Result<(), Failure> {
    match &args.side {
        Side::Receive(args) => {
            let plan = ReceiverPlan {
                address: args.listen,
                flows: args.flows,
                buffer: args.buffer,
                multipath: args.common.mptcp,
                time: std::time::Duration::from_nanos(args.common.time.as_nanos()),
            };
            write(&args.common, &receive(&plan).map_err(refused)?)
        }
        Side::Send(args) => {
            let plan = SenderPlan {
                to: args.to,
                congestion: args.congestion.clone(),
                multipath: args.common.mptcp,
                time: std::time::Duration::from_nanos(args.common.time.as_nanos()),
            };
            write(&args.common, &send(&plan).map_err(refused)?)
        }
    }
}

fn refused(error: std::io::Error) -> Failure {
    Failure::Run(format!("the kernel's transport failed: {error}"))
}

fn write(args: &CommonArgs, document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(document).expect("samples are plain JSON");
    write_atomically(&args.out, text.as_bytes()).map_err(|error| failed("--out", &args.out, error))
}
