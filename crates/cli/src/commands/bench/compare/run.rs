//! Runs the transports one after the other.

use ropewalk_lab::live::check_live;
use ropewalk_lab::validate::{Observed, median, simulate};
use ropewalk_runtime::kernel as linux;
use ropewalk_scenario::{Override, Scenario};
use serde_json::json;

use super::CompareArgs;
use super::contender::Contender;
use super::show::{Row, report, table};
use crate::args::FileArgs;
use crate::commands::emulated;
use crate::console::{Console, layout};
use crate::failure::Failure;
use crate::files::{VERSION, check_report, save_report};
use crate::format::{Captioned, Format, print_tables};
use crate::output;
use crate::progress::{Progress, with_bar};

/// Compares.
///
/// # Errors
/// [`Failure`]. Transports that failed are left out of the results and make the command fail at the end.
pub fn execute(args: &CompareArgs, console: Console) -> Result<(), Failure> {
    let scenario = load(args, &[])?;
    check_live(&scenario).map_err(|error| Failure::input(&error, error.hint))?;
    args.report.as_deref().map_or(Ok(()), check_report)?;
    let contenders = contenders(args, &scenario, console)?;
    emulated::check(&scenario)?;
    let progress = Progress::steps(contenders.len() as u64 * args.runs);
    let outcomes: Vec<Result<Row, Failure>> = with_bar(console, "comparing", &progress, || {
        contenders.iter().map(|one| row(args, &scenario, *one, &progress)).collect()
    });
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for (outcome, contender) in outcomes.into_iter().zip(&contenders) {
        match outcome {
            Ok(row) => rows.push(row),
            Err(Failure::Input(text) | Failure::Run(text)) => {
                failures.push(format!("{}: {text}", contender.title()));
            }
            Err(status) => return Err(status),
        }
    }
    if !rows.is_empty() {
        print(args, &rows, console)?;
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::Run(failures.join("\n"))) }
}

fn print(args: &CompareArgs, rows: &[Row], console: Console) -> Result<(), Failure> {
    if let Some(path) = &args.report {
        save_report(path, &report(&args.emulate.display().to_string(), rows), console)?;
    }
    let table = table(rows);
    match args.format.format() {
        Format::Json => output::print_json(&json!({
            "schema": "ropewalk.bench-compare/1", "version": VERSION, "kernel": linux::release(), "rows": rows,
        })),
        Format::Text => output::print(&table.text(layout())),
        format => print_tables(format, &table, || vec![Captioned::new("", table.clone())]),
    }
}

/// The scenario with the times of the options and `more`.
fn load(args: &CompareArgs, more: &[&str]) -> Result<Scenario, Failure> {
    let times = [
        ("--time", format!("transfer.duration={}ns", args.time.as_nanos())),
        ("--warmup", format!("transfer.warmup={}ns", args.warmup.as_nanos())),
    ];
    let mut overrides: Vec<Override<'_>> =
        times.iter().map(|(option, change)| Override { option, change }).collect();
    overrides.extend(more.iter().map(|change| Override { option: "--set", change }));
    FileArgs::new(args.emulate.clone(), args.sets.clone(), None).load_with(&overrides)
}

/// The transports to run. Without `--transport`, what cannot run here is noted; with it, this is an error.
fn contenders(
    args: &CompareArgs,
    scenario: &Scenario,
    console: Console,
) -> Result<Vec<Contender>, Failure> {
    if !args.transport.is_empty() {
        let wanted = args.transport.iter().map(|name| {
            let contender = Contender::named(name)?;
            contender.obstacle(scenario).map_or(Ok(contender), |reason| {
                let help = "leave it out of --transport";
                Err(Failure::input(format!("--transport {name}: {reason}"), help))
            })
        });
        return wanted.collect();
    }
    let mut all = Vec::new();
    for (name, contender) in Contender::ALL {
        match contender.obstacle(scenario) {
            None => all.push(contender),
            Some(reason) => console.note(format_args!("left out: {name}: {reason}")),
        }
    }
    Ok(all)
}

/// The place of the path with the highest rate.
fn fastest(scenario: &Scenario) -> usize {
    let rate = |at: &usize| scenario.paths[*at].up.capacity.mean_rate();
    (0..scenario.paths.len()).max_by_key(rate).unwrap_or(0)
}

fn row(
    args: &CompareArgs,
    scenario: &Scenario,
    contender: Contender,
    progress: &Progress,
) -> Result<Row, Failure> {
    let path = fastest(scenario);
    let (mut runs, mut latest): (Vec<Observed>, f64) = (Vec::new(), 0.0);
    for seed in args.seed..args.seed + args.runs {
        let (seen, lateness_s) = contender.run(scenario, path, seed)?;
        progress.step();
        runs.push(seen);
        latest = latest.max(lateness_s);
    }
    let middle = |figure: &dyn Fn(&Observed) -> Option<f64>| {
        median(runs.iter().filter_map(figure).collect())
    };
    let each = || runs.iter().map(|run| run.goodput_bps);
    let all = scenario.paths.iter().map(|path| path.name.clone());
    let paths = match contender.is_multipath() {
        true => all.collect(),
        false => vec![scenario.paths[path].name.clone()],
    };
    Ok(Row {
        transport: contender.title(),
        paths,
        goodput_bps: middle(&|run| Some(run.goodput_bps)).unwrap_or(0.0),
        range_bps: [each().fold(f64::INFINITY, f64::min), each().fold(0.0, f64::max)],
        retransmitted: middle(&|run| Some(run.retransmitted).filter(|part| part.is_finite())),
        rtt_s: middle(&Observed::rtt_s),
        simulated_bps: simulated(args, contender)?,
        lateness_s: latest,
    })
}

/// The goodput of Ropewalk in the simulator, with the settings of its live transport, bit/s.
fn simulated(args: &CompareArgs, contender: Contender) -> Result<Option<f64>, Failure> {
    let Contender::Ropewalk { in_order } = contender else { return Ok(None) };
    let unordered = format!("transfer.unordered={}", !in_order);
    let live = ["transfer.protocol=cmt-sctp", "transfer.preset=live", &unordered];
    let same = load(args, &live)?;
    let runs: Result<Vec<f64>, _> = (args.seed..args.seed + args.runs)
        .map(|seed| simulate(&same, seed).map(|seen| seen.goodput_bps))
        .collect();
    Ok(median(runs?))
}
