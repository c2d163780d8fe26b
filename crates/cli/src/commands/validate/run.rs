//! Runs the cells, several at the same time.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use ropewalk_lab::live::check_live;
use ropewalk_lab::validate::{Cell, KernelTransport, Observed, simulate, summary};
use ropewalk_runtime::kernel;
use ropewalk_scenario::Scenario;
use serde_json::json;

use super::{ValidateArgs, show};
use crate::commands::emulated;
use crate::console::{Console, layout};
use crate::failure::Failure;
use crate::files::{check_report, save_report};
use crate::format::{Captioned, Format, print_tables};
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
    if let Some(path) = &args.report {
        check_report(path)?;
    }
    check(args, scenarios)?;
    let jobs: Vec<Job<'_>> = scenarios
        .iter()
        .flat_map(|(name, scenario)| {
            args.transport.iter().map(move |transport| (name.as_str(), scenario, *transport))
        })
        .collect();
    let cells = run_all(args, &jobs, console)?;
    let counted = summary(&cells);
    let line = show::summary(counted, &kernel::release());
    if let Some(path) = &args.report {
        save_report(path, &show::report(&cells, &line), console)?;
    }
    let table = show::table(&cells);
    match args.format.format() {
        Format::Json => output::print_json(&json!({
            "schema": "ropewalk.validate/1", "kernel": kernel::release(), "summary": counted, "cells": cells,
        })),
        Format::Text => output::print(&format!("{}\n{line}", table.text(layout()))),
        format => {
            print_tables(format, &table, || vec![Captioned::new(line.trim_end(), table.clone())])
        }
    }
}

/// Checks all that the runs need before any of them starts.
fn check(args: &ValidateArgs, scenarios: &[(String, Scenario)]) -> Result<(), Failure> {
    for (_, scenario) in scenarios {
        check_live(&emulated::links(scenario))
            .map_err(|error| Failure::input(&error, error.hint))?;
    }
    let known = kernel::congestion_controls();
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

fn run_all(args: &ValidateArgs, jobs: &[Job<'_>], console: Console) -> Result<Vec<Cell>, Failure> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let workers = args.jobs.map_or(cores, usize::from).min(jobs.len().max(1));
    let (next, progress) = (AtomicUsize::new(0), Progress::steps(jobs.len() as u64));
    let done: Mutex<Vec<Option<Result<Cell, Failure>>>> = Mutex::new(vec![None; jobs.len()]);
    with_bar(console, "validating", &progress, || {
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some((at, job)) = take(&next, jobs) {
                        let cell = run(args, job);
                        done.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(cell);
                        progress.step();
                    }
                });
            }
        });
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_iter().flatten().collect()
}

fn take<'a, 'b>(next: &AtomicUsize, jobs: &'a [Job<'b>]) -> Option<(usize, &'a Job<'b>)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(at).map(|job| (at, job))
}

fn run(args: &ValidateArgs, (name, scenario, transport): &Job<'_>) -> Result<Cell, Failure> {
    let same = transport.simulated(scenario);
    let (mut kernel, mut latest) = (Vec::new(), 0.0_f64);
    for run in 0..args.runs {
        let (seen, lateness_s) =
            emulated::kernel::run(scenario, transport.flow(), 0, args.seed + run)?;
        kernel.push(seen);
        latest = latest.max(lateness_s);
    }
    let simulated: Result<Vec<Observed>, _> =
        (0..args.runs).map(|run| simulate(&same, args.seed + run)).collect();
    Ok(Cell::judge((*name).to_owned(), *transport, kernel, simulated?, latest))
}
