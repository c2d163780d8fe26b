//! One file per command.

mod advise;
mod bench;
mod compare;
mod completions;
mod doctor;
mod emulate;
#[cfg(target_os = "linux")]
mod emulated;
mod explain;
#[cfg(target_os = "linux")]
mod kernel_peer;
mod keygen;
mod man;
mod measure;
mod new;
mod pair;
mod predict;
#[cfg(target_os = "linux")]
mod preload;
mod proxy;
mod recv;
mod reproduce;
mod run;
mod schema;
mod send;
mod status;
mod sweep;
mod top;
mod tournament;
mod transfer;
mod tune;
#[cfg(target_os = "linux")]
mod tunnel;
mod validate;

use clap::Subcommand;

use crate::console::Console;
use crate::failure::Failure;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Simulate one scenario
    #[command(alias = "simulate")]
    Run(run::RunArgs),
    /// Simulate several schedulers, or several values of a key, side by side
    Compare(compare::CompareArgs),
    /// Let all schedulers compete on several scenarios, under both protocols
    Tournament(tournament::TournamentArgs),
    /// Simulate a grid of values, resumable, on all cores
    Sweep(sweep::SweepArgs),
    /// Evaluate the closed forms, without a simulation
    Predict(predict::PredictArgs),
    /// Advise which links to use, with which scheduler, congestion control and receive buffer
    Advise(advise::AdviseArgs),
    /// Find the best window limits, and the smallest receive buffer
    Tune(tune::TuneArgs),
    /// Reproduce the tables and figures of the papers
    Reproduce(reproduce::ReproduceArgs),
    /// Compare the simulator with Linux TCP and Multipath TCP over emulated links
    Validate(validate::ValidateArgs),
    /// Explain why the scheduler put a packet on its path, or what limits the goodput
    Explain(explain::ExplainArgs),
    /// Create a key that identifies this machine to its peers
    Keygen(keygen::KeygenArgs),
    /// Pair two machines by a short code, so that each knows the other by name
    Pair(pair::PairArgs),
    /// Run any program over a scenario's links, in real time
    Emulate(emulate::EmulateArgs),
    /// Measure throughput and latency over all paths at once
    Bench(bench::BenchArgs),
    /// Measure each link to a server, and write a scenario of them
    Measure(Box<measure::MeasureArgs>),
    /// Check this machine, its links and the way to a peer
    Doctor(Box<doctor::DoctorArgs>),
    /// Send files and folders over all paths at once
    Send(send::SendArgs),
    /// Receive files and folders
    Recv(recv::RecvArgs),
    /// Show what the running commands do
    Status(status::StatusArgs),
    /// Show a running command's links, rates and events, kept up to date
    Top(top::TopArgs),
    /// Write a scenario to start with
    New(new::NewArgs),
    /// Carry programs' connections over all paths: SOCKS 5, HTTP, ports
    Proxy(Box<proxy::ProxyArgs>),
    /// Run a program that speaks SCTP over all network interfaces at once, without changing it
    #[cfg(target_os = "linux")]
    Preload(preload::PreloadArgs),
    /// Carry all IP traffic of this machine over all links at once, to a hub
    #[cfg(target_os = "linux")]
    Tunnel(tunnel::TunnelArgs),
    /// Print the JSON Schema of the scenario file
    Schema(schema::SchemaArgs),
    /// Print a script that completes the command line in a shell
    Completions(completions::CompletionsArgs),
    /// Write the manual pages of all commands, for packages
    #[command(hide = true)]
    Man(man::ManArgs),
    /// Be one end of a transfer over the kernel's TCP, for other commands
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    KernelPeer(kernel_peer::KernelPeerArgs),
}

/// Executes a command.
///
/// # Errors
/// [`Failure`].
pub fn execute(command: Command, console: Console) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::execute(&args, console),
        Command::Compare(args) => compare::execute(&args, console),
        Command::Tournament(args) => tournament::execute(&args, console),
        Command::Sweep(args) => sweep::execute(&args, console),
        Command::Predict(args) => predict::execute(&args),
        Command::Advise(args) => advise::execute(&args, console),
        Command::Tune(args) => tune::execute(&args, console),
        Command::Reproduce(args) => reproduce::execute(&args, console),
        Command::Validate(args) => validate::execute(&args, console),
        Command::Explain(args) => explain::execute(&args, console),
        Command::Keygen(args) => keygen::execute(&args, console),
        Command::Pair(args) => pair::execute(&args, console),
        Command::Emulate(args) => emulate::execute(&args, console),
        Command::Bench(args) => bench::execute(&args, console),
        Command::Measure(args) => measure::execute(&args, console),
        Command::Doctor(args) => doctor::execute(&args, console),
        Command::Send(args) => send::execute(&args, console),
        Command::Recv(args) => recv::execute(&args, console),
        Command::Status(args) => status::execute(&args),
        Command::Top(args) => top::execute(&args),
        Command::New(args) => new::execute(&args, console),
        Command::Proxy(args) => proxy::execute(&args, console),
        #[cfg(target_os = "linux")]
        Command::Preload(args) => preload::execute(&args, console),
        #[cfg(target_os = "linux")]
        Command::Tunnel(args) => tunnel::execute(&args, console),
        Command::Schema(args) => schema::execute(&args),
        Command::Completions(args) => completions::execute(&args),
        Command::Man(args) => man::execute(&args),
        #[cfg(target_os = "linux")]
        Command::KernelPeer(args) => kernel_peer::execute(&args),
    }
}
