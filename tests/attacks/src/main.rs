//! Attacks on a running `ropewalk`, over loopback, bounded in count and time. Each gives one figure.

#![allow(clippy::disallowed_methods, reason = "a program on real sockets that waits and measures")]

mod client;
mod exit;
mod figure;
mod fragments;
mod names;
mod paths;
mod queue;
mod relay;
mod retry;
mod socks;
mod state;
mod victim;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use figure::{Attack, Failure, Figure};

/// All attacks, in the order of the table.
const ATTACKS: [Attack; 16] = [
    Attack { name: "state: SSN 32767 ahead on every stream", run: state::far_ssn, cheap: true },
    Attack { name: "state: TSN 65535 ahead, 1000 associations", run: state::far_tsn, cheap: false },
    Attack { name: "state: the same within 1 GiB", run: state::far_tsn_limited, cheap: false },
    Attack { name: "state: one-byte messages behind a hole", run: state::one_byte, cheap: true },
    Attack { name: "state: 2000 idle associations", run: state::idle, cheap: false },
    Attack { name: "work: repeated PIECE at 300 kB/s", run: fragments::repeated, cheap: false },
    Attack { name: "paths: one datagram from elsewhere", run: paths::one_datagram, cheap: true },
    Attack { name: "paths: to and fro during a download", run: paths::to_and_fro, cheap: true },
    Attack { name: "paths: one SACK during a download", run: paths::one_sack, cheap: true },
    Attack { name: "paths: optimistic SACKs from elsewhere", run: paths::optimistic, cheap: true },
    Attack {
        name: "paths: early copies from another address",
        run: relay::early_copies,
        cheap: false,
    },
    Attack { name: "handshake: forged Retry", run: retry::forged, cheap: true },
    Attack { name: "files: a sender that only says Alive", run: queue::alive, cheap: false },
    Attack { name: "exit: one key takes all connections", run: exit::places, cheap: false },
    Attack { name: "exit: names that nobody answers", run: names::unanswered, cheap: false },
    Attack { name: "proxy: 2000 one-byte SOCKS clients", run: socks::one_byte, cheap: false },
];

/// Attacks a running `ropewalk` over loopback. Each attack gives one figure: a JSON line, or with --table a row.
#[derive(Parser)]
#[command(
    name = "ropewalk-attacks",
    after_help = "Examples:\n  \
    ropewalk-attacks --binary target/demo/ropewalk --cheap --check\n  \
    ropewalk-attacks --binary target/demo/ropewalk --only state paths --table"
)]
struct Arguments {
    /// The `ropewalk` that is attacked
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// Print rows of a table
    #[arg(long)]
    table: bool,
    /// Set status 1 if a figure exceeds its bound
    #[arg(long)]
    check: bool,
    /// Only attacks that are repeatable and take seconds, side by side
    #[arg(long)]
    cheap: bool,
    /// Only attacks whose name contains one of these words
    #[arg(long, value_name = "WORD", num_args = 1..)]
    only: Vec<String>,
    /// Rows of an earlier run, to show beside those of this one
    #[arg(long, value_name = "FILE", requires = "table")]
    before: Option<PathBuf>,
}

fn arguments() -> Result<Arguments, Failure> {
    let mut found = Arguments::parse();
    if !found.binary.is_file() {
        return Err(format!("--binary {}: no such file", found.binary.display()).into());
    }
    found.binary = found.binary.canonicalize()?;
    let matches = |word: &&String| !ATTACKS.iter().any(|attack| attack.name.contains(&***word));
    if let Some(word) = found.only.iter().find(matches) {
        let names: Vec<_> = ATTACKS.iter().map(|attack| format!("  {}", attack.name)).collect();
        return Err(format!("--only {word}: no attack has this name:\n{}", names.join("\n")).into());
    }
    Ok(found)
}

fn run() -> Result<bool, Failure> {
    let arguments = arguments()?;
    let before = arguments.before.as_deref().map(std::fs::read_to_string).transpose()?;
    if arguments.table {
        println!("{}", Figure::heading(before.is_some()));
    }
    let wanted = |attack: &&Attack| {
        (attack.cheap || !arguments.cheap)
            && (arguments.only.is_empty()
                || arguments.only.iter().any(|word| attack.name.contains(word)))
    };
    let chosen: Vec<&Attack> = ATTACKS.iter().filter(wanted).collect();
    // Attacks that do not measure speed run in parallel, each against a separate server.
    let together = if arguments.cheap { chosen.len() } else { 1 };
    let mut all_hold = true;
    for some in chosen.chunks(together.max(1)) {
        let figures = measured(some, &arguments.binary);
        for (attack, figure) in some.iter().zip(figures) {
            all_hold &= show(attack, figure, arguments.table, before.as_deref());
        }
    }
    Ok(all_hold || !arguments.check)
}

/// Runs these attacks at the same time.
fn measured(attacks: &[&Attack], binary: &Path) -> Vec<Result<Figure, Failure>> {
    std::thread::scope(|scope| {
        let run = |attack: &&Attack| {
            let run = attack.run;
            scope.spawn(move || run(binary))
        };
        let running: Vec<_> = attacks.iter().map(run).collect();
        let ended = running.into_iter().map(|one| one.join());
        ended.map(|one| one.unwrap_or_else(|_| Err("the attack panicked".into()))).collect()
    })
}

/// Prints a figure; whether it holds.
fn show(
    attack: &Attack,
    figure: Result<Figure, Failure>,
    table: bool,
    before: Option<&str>,
) -> bool {
    match figure {
        Ok(figure) => {
            let line = match table {
                true => figure.row(attack.name, before),
                false => figure.json(attack.name),
            };
            println!("{line}");
            figure.holds()
        }
        Err(error) => {
            eprintln!("{}: not measured: {error}", attack.name);
            false
        }
    }
}

fn main() -> ExitCode {
    // Connections count as open files of this process too.
    ropewalk_apps::proxy::raise_file_limit();
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
