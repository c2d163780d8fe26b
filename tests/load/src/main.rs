//! Prints the throughput and the costs of many clients of one hub.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use ropewalk_load::{Failure, Load, run};

/// Many tunnel clients of one hub, in network namespaces: memory of idle ones, fairness of busy ones. Needs root.
#[derive(Parser)]
#[command(name = "ropewalk-hub-load")]
struct Arguments {
    /// The `ropewalk` that serves
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// Number of clients
    #[arg(long, value_name = "N", default_value_t = 1000)]
    clients: usize,
    /// How many of them carry data
    #[arg(long, value_name = "N", default_value_t = 100)]
    busy: usize,
    /// Length of the measurement of idle clients, s
    #[arg(long, value_name = "S", default_value_t = 10)]
    idle: u64,
    /// Time before the measurement of busy clients, s
    #[arg(long, value_name = "S", default_value_t = 10)]
    warmup: u64,
    /// Length of the measurement of busy clients, s
    #[arg(long, value_name = "S", default_value_t = 20)]
    seconds: u64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

fn measured(arguments: &Arguments) -> Result<String, Failure> {
    let seconds = Duration::from_secs;
    let load = Load {
        clients: arguments.clients,
        busy: arguments.busy.min(arguments.clients),
        idle: seconds(arguments.idle.max(1)),
        warmup: seconds(arguments.warmup),
        measured: seconds(arguments.seconds.max(1)),
    };
    let report = run(&arguments.binary.canonicalize()?, load)?;
    if arguments.json {
        return Ok(format!("{}\n", serde_json::to_string(&report)?));
    }
    Ok(report.to_string())
}

fn main() -> ExitCode {
    match measured(&Arguments::parse()) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
