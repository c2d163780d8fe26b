//! Runs the cells, several of them simultaneously.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;
use ropewalk_base::Duration;
use ropewalk_lab::live::check_live;
use ropewalk_lab::validate::{
    Cell, Changes, KernelTransport, Observed, Recorded, RecordedCell, SCHEMA, kernel_congestion,
    simulate, summary,
};
use ropewalk_runtime::kernel;
use ropewalk_scenario::Scenario;
use serde_json::json;

use super::room::{Room, rate_bps};
use super::{ValidateArgs, report, show};
use crate::commands::emulated;
use crate::console::Console;
use crate::failure::Failure;
use crate::files::{check_report, failed, save_report};
use crate::format::{Format, print_tables};
use crate::output;
use crate::progress::{Progress, with_bar};

/// One comparison to run.
type Job<'a> = (&'a str, &'a Scenario, KernelTransport);

/// Runs all comparisons, and prints them.
///
/// # Errors
/// [`Failure`].
pub fn execute(
    args: &ValidateArgs,
    scenarios: &[(String, Scenario)],
    console: Console,
) -> Result<(), Failure> {
    args.report.as_deref().map_or(Ok(()), check_report)?;
    let recorded = args.recorded.as_deref().map(|path| read_recorded(path, args)).transpose()?;
    if recorded.is_none() {
        check(args, scenarios)?;
    }
    args.out.as_deref().map_or(Ok(()), make_folder)?;
    let jobs: Vec<Job<'_>> = scenarios
        .iter()
        .flat_map(|(name, scenario)| {
            args.transport.iter().map(move |transport| (name.as_str(), scenario, *transport))
        })
        .collect();
    let (cells, failures) = run_all(args, &jobs, recorded.as_ref(), console);
    if !cells.is_empty() {
        let release = recorded.map_or_else(kernel::release, |recorded| recorded.kernel);
        print(args, &cells, &release, console)?;
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::Run(failures.join("\n"))) }
}

/// Prints the comparisons, and writes the report.
fn print(
    args: &ValidateArgs,
    cells: &[Cell],
    release: &str,
    console: Console,
) -> Result<(), Failure> {
    let counted = summary(cells);
    let line = show::summary(counted, release);
    if let Some(path) = &args.report {
        save_report(path, &report::report(cells, &line), console)?;
    }
    match args.format.format() {
        Format::Json => output::print_json(&json!({
            "schema": SCHEMA, "kernel": release, "options": changes(args), "summary": counted,
            "cells": cells,
        })),
        Format::Text => {
            let tables = show::tables(cells, &line).into_iter().map(|one| one.text());
            output::print(&tables.collect::<Vec<_>>().join("\n"))
        }
        format => print_tables(format, &show::flat(cells), || show::tables(cells, &line)),
    }
}

fn make_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| {
        let message = format!("--out {}: {error}", path.display());
        Failure::input(message, "give the name of a folder, which may exist")
    })
}

fn changes(args: &ValidateArgs) -> Changes {
    Changes {
        time_s: args.time.map(Duration::as_secs_f64),
        warmup_s: args.warmup.map(Duration::as_secs_f64),
        path: args.path.clone(),
    }
}

/// Reads the file of `--recorded`.
fn read_recorded(path: &Path, args: &ValidateArgs) -> Result<Recorded, Failure> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string());
    let found = text.and_then(|text| Recorded::parse(&text)).map_err(|error| {
        let message = format!("--recorded {}: {error}", path.display());
        Failure::input(message, "give a file that `ropewalk validate --json` has written")
    })?;
    if found.options != changes(args) {
        let Changes { time_s, warmup_s, path: tcp } = &found.options;
        let time = |name: &str, value: &Option<f64>| value.map(|s| format!("--{name} {s}s"));
        let given = [time("time", time_s), time("warmup", warmup_s)].into_iter().flatten();
        let given: Vec<_> =
            given.chain(tcp.as_ref().map(|name| format!("--path {name}"))).collect();
        let given = if given.is_empty() { "none of them".to_owned() } else { given.join(" ") };
        let message = format!(
            "--recorded {}: its runs had other options of --time, --warmup and --path",
            path.display()
        );
        return Err(Failure::input(message, format!("give {given}")));
    }
    Ok(found)
}

/// Checks all requirements of the runs before any of them starts.
fn check(args: &ValidateArgs, scenarios: &[(String, Scenario)]) -> Result<(), Failure> {
    for (name, scenario) in scenarios {
        args.path(name, scenario)?;
        check_live(&emulated::links(scenario))
            .map_err(|error| Failure::input(&error, error.hint))?;
    }
    let known = kernel::congestion_controls();
    for (name, scenario) in scenarios {
        let Some(other) = scenario.world.other_congestion else { continue };
        if !kernel_congestion(other).is_some_and(|name| known.iter().any(|one| one == name)) {
            let message = format!(
                "scenario {name}: world.other_congestion = \"{other}\": this kernel has no such congestion control"
            );
            return Err(Failure::input(message, "give newreno, cubic or bbr-v1"));
        }
    }
    for transport in &args.transport {
        let flow = transport.flow();
        if flow.multipath && !kernel::has_mptcp() {
            let help = "set net.mptcp.enabled = 1 by sysctl, or leave mptcp out of --transport";
            return Err(Failure::input("this kernel has no Multipath TCP", help));
        }
        if !known.iter().any(|name| name == flow.congestion) {
            let message = format!("this kernel has no congestion control {}", flow.congestion);
            let help = format!(
                "`modprobe tcp_{}`, or leave {transport} out of --transport",
                flow.congestion
            );
            return Err(Failure::input(message, help));
        }
    }
    let ss = Command::new("ss").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if ss.is_err() {
        return Err(Failure::input("there is no program `ss`", "install iproute2"));
    }
    scenarios.first().map_or(Ok(()), |(_, scenario)| emulated::check(scenario))
}

/// Runs all comparisons. Returns those that succeeded, and the reasons for the others.
fn run_all(
    args: &ValidateArgs,
    jobs: &[Job<'_>],
    recorded: Option<&Recorded>,
    console: Console,
) -> (Vec<Cell>, Vec<String>) {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let workers = args.jobs.map_or(cores, usize::from).min(jobs.len().max(1));
    let room = Room::new(cores);
    let (next, progress) = (AtomicUsize::new(0), Progress::steps(jobs.len() as u64));
    let done: Mutex<Vec<Option<Result<Cell, Failure>>>> = Mutex::new(vec![None; jobs.len()]);
    with_bar(console, "validating", &progress, || {
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some((at, job)) = take(&next, jobs) {
                        let cell = match recorded {
                            Some(recorded) => compare_recorded(args, job, recorded),
                            None => run(args, job, &room),
                        };
                        done.lock()[at] = Some(cell);
                        progress.step();
                    }
                });
            }
        });
    });
    let done = done.into_inner();
    let (mut cells, mut failures) = (Vec::new(), Vec::new());
    for (outcome, (name, _, transport)) in done.into_iter().zip(jobs) {
        match outcome {
            Some(Ok(cell)) => cells.push(cell),
            Some(Err(Failure::Input(text) | Failure::Run(text) | Failure::NotRun(_, text))) => {
                failures.push(format!("{name}, {transport}: {text}"));
            }
            Some(Err(Failure::Status(_))) | None => {}
        }
    }
    (cells, failures)
}

fn take<'a, 'b>(next: &AtomicUsize, jobs: &'a [Job<'b>]) -> Option<(usize, &'a Job<'b>)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(at).map(|job| (at, job))
}

fn run(
    args: &ValidateArgs,
    (name, scenario, transport): &Job<'_>,
    room: &Room,
) -> Result<Cell, Failure> {
    let flow = transport.flow();
    let path = if flow.multipath { 0 } else { args.path(name, scenario)? };
    let places = if flow.multipath { (0..scenario.paths.len()).collect() } else { vec![path] };
    let rate_bps = rate_bps(scenario, &places);
    let same = transport.simulated(scenario, path);
    let (mut kernel, mut simulated): (Vec<Observed>, Vec<Observed>) = (Vec::new(), Vec::new());
    let mut latest = 0.0_f64;
    for seed in args.seed..args.seed + args.runs {
        let folder = args.out.as_ref().map(|out| folder(out, name, *transport, seed));
        let (seen, conditions) = room.with(rate_bps, || {
            emulated::kernel::run(scenario, flow, path, seed, folder.as_deref())
        })?;
        kernel.push(seen);
        latest = latest.max(conditions.lateness_s);
        simulated.push(simulate(&same, seed)?);
        if let Some(folder) = folder {
            let mut same = same.clone();
            same.transfer.seed = seed;
            let file = folder.join("simulated.toml");
            fs::write(&file, same.to_toml()).map_err(|error| failed("--out", &file, error))?;
        }
    }
    let paths = &scenario.paths;
    Ok(Cell::judge((*name).to_owned(), paths, *transport, kernel, simulated, latest))
}

/// Simulates as many seeds as the kernel has runs.
fn compare_recorded(
    args: &ValidateArgs,
    (name, scenario, transport): &Job<'_>,
    recorded: &Recorded,
) -> Result<Cell, Failure> {
    let Some(RecordedCell { kernel, lateness_s, .. }) = recorded.cell(name, *transport) else {
        return Err(Failure::Run("not in the file of --recorded".to_owned()));
    };
    let path = if transport.flow().multipath { 0 } else { args.path(name, scenario)? };
    let same = transport.simulated(scenario, path);
    let seeds = args.seed..args.seed + kernel.len() as u64;
    let simulated = seeds.map(|seed| simulate(&same, seed)).collect::<Result<Vec<_>, _>>()?;
    let (kernel, paths) = (kernel.clone(), &scenario.paths);
    Ok(Cell::judge((*name).to_owned(), paths, *transport, kernel, simulated, *lateness_s))
}

/// The folder of one run: `DIR/10x20-10x20-1M/mptcp-1`.
fn folder(out: &Path, scenario: &str, transport: KernelTransport, seed: u64) -> PathBuf {
    let stem = scenario.strip_suffix(".toml").unwrap_or(scenario);
    out.join(stem.trim_matches(['.', '/']).replace('/', "-")).join(format!("{transport}-{seed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_a_folder_of_its_own_below_that_of_the_option() {
        for (scenario, expected) in [
            ("10x20-10x20-1M", "out/10x20-10x20-1M/mptcp-7"),
            ("../mine/links.toml", "out/mine-links/mptcp-7"),
            ("/links.toml", "out/links/mptcp-7"),
        ] {
            let found = folder(Path::new("out"), scenario, KernelTransport::Mptcp, 7);
            assert_eq!(found, Path::new(expected));
        }
    }
}
