//! Runs all transports in turn, over the links of each scenario.

use std::path::{Path, PathBuf};

use ropewalk_lab::live::check_live;
use ropewalk_lab::report::Report;
use ropewalk_lab::validate::{median, simulate};
use ropewalk_runtime::kernel as linux;
use ropewalk_scenario::{ACCESS_SCENARIOS, Override, Scenario};
use serde_json::json;

use super::contender::Contender;
use super::row::{Row, measure};
use super::summary::{Bundle, summary};
use super::{CompareArgs, show, show_set};
use crate::args::FileArgs;
use crate::commands::emulated;
use crate::console::{Console, layout};
use crate::failure::Failure;
use crate::files::{VERSION, check_report, save_report};
use crate::format::{Captioned, Format, print_tables};
use crate::output;
use crate::progress::{Progress, with_bar};

/// The links to emulate: the file of `--emulate`, and the scenario in it.
struct Links {
    file: PathBuf,
    scenario: Scenario,
}

/// Runs the comparison.
///
/// # Errors
/// [`Failure`]. Results omit transports that failed, and have no figures for those that were short of CPU. In both
/// cases, the command fails at the end.
pub fn execute(args: &CompareArgs, console: Console) -> Result<(), Failure> {
    let all = links(args)?;
    args.report.as_deref().map_or(Ok(()), check_report)?;
    let contenders = contenders(args, &all, console)?;
    all.first().map_or(Ok(()), |links| emulated::check(&links.scenario))?;
    let progress = Progress::steps(transfers(args, &all, &contenders));
    let mut failures = Vec::new();
    let bundles = with_bar(console, "comparing", &progress, || {
        let one = |links: &Links| bundle(args, links, &contenders, &progress, &mut failures);
        all.iter().map(one).collect::<Result<Vec<Bundle>, Failure>>()
    })?;
    if bundles.iter().any(|bundle| !bundle.rows.is_empty()) {
        print(args, &bundles, &contenders, console)?;
    }
    for bundle in &bundles {
        let short = bundle.rows.iter().filter_map(|row| Some((row, row.reason.as_ref()?)));
        failures.extend(short.map(|(row, reason)| {
            let transport = &row.transport;
            format!("{}: {transport}: {}: {reason}", bundle.scenario, show::SHORT_OF_CPU)
        }));
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::Run(failures.join("\n"))) }
}

/// Reads and checks all scenarios.
fn links(args: &CompareArgs) -> Result<Vec<Links>, Failure> {
    let files = match args.access {
        true => ACCESS_SCENARIOS.iter().map(|ready| ready.name.into()).collect(),
        false => args.emulate.clone(),
    };
    let read = |file: PathBuf| {
        let scenario = load(args, &file, &[])?;
        check_live(&scenario).map_err(|error| Failure::input(&error, error.hint))?;
        Ok(Links { file, scenario })
    };
    files.into_iter().map(read).collect()
}

/// The scenario in a file, with the times of the options and the overrides `more`.
fn load(args: &CompareArgs, file: &Path, more: &[&str]) -> Result<Scenario, Failure> {
    let times = [
        ("--time", format!("transfer.duration={}ns", args.time.as_nanos())),
        ("--warmup", format!("transfer.warmup={}ns", args.warmup.as_nanos())),
    ];
    let mut overrides: Vec<Override<'_>> =
        times.iter().map(|(option, change)| Override { option, change }).collect();
    overrides.extend(more.iter().map(|change| Override { option: "--set", change }));
    FileArgs::new(file.to_owned(), args.sets.clone(), None).load_with(&overrides)
}

/// The transports to run. Without `--transport`, those that cannot run here are noted; with it, they are
/// an error.
fn contenders(
    args: &CompareArgs,
    all: &[Links],
    console: Console,
) -> Result<Vec<Contender>, Failure> {
    let obstacle =
        |contender: Contender| all.iter().find_map(|links| contender.obstacle(&links.scenario));
    if !args.transport.is_empty() {
        let wanted = args.transport.iter().map(|name| {
            let contender = Contender::named(name)?;
            obstacle(contender).map_or(Ok(contender), |reason| {
                let help = "leave it out of --transport";
                Err(Failure::input(format!("--transport {name}: {reason}"), help))
            })
        });
        return wanted.collect();
    }
    let mut found = Vec::new();
    for (name, contender) in Contender::ALL {
        match obstacle(contender) {
            None => found.push(contender),
            Some(reason) => console.note(format_args!("left out: {name}: {reason}")),
        }
    }
    Ok(found)
}

/// Number of transfers.
fn transfers(args: &CompareArgs, all: &[Links], contenders: &[Contender]) -> u64 {
    let each = |links: &Links| -> usize {
        let paths = |of: &Contender| if of.is_multipath() { 1 } else { links.scenario.paths.len() };
        contenders.iter().map(paths).sum()
    };
    all.iter().map(each).sum::<usize>() as u64 * args.runs
}

/// Runs all transports over the links of a scenario. Failures are added to `failures`.
fn bundle(
    args: &CompareArgs,
    links: &Links,
    contenders: &[Contender],
    progress: &Progress,
    failures: &mut Vec<String>,
) -> Result<Bundle, Failure> {
    let scenario = links.file.display().to_string();
    let mut rows = Vec::new();
    for contender in contenders {
        match row(args, links, *contender, progress) {
            Ok(row) => rows.push(row),
            Err(Failure::Input(text) | Failure::Run(text)) => {
                failures.push(format!("{scenario}: {}: {text}", contender.title()));
            }
            Err(status) => return Err(status),
        }
    }
    Ok(Bundle { scenario, rows })
}

fn row(
    args: &CompareArgs,
    links: &Links,
    contender: Contender,
    progress: &Progress,
) -> Result<Row, Failure> {
    let seeds = args.seed..args.seed + args.runs;
    let row = measure(contender, &links.scenario, seeds, &|path, seed| {
        let outcome = contender.run(&links.scenario, path, seed);
        progress.step();
        outcome
    })?;
    Ok(Row { simulated_bps: simulated(args, links, contender)?, ..row })
}

/// Simulated goodput of Ropewalk with the settings of its live transport, bit/s.
fn simulated(
    args: &CompareArgs,
    links: &Links,
    contender: Contender,
) -> Result<Option<f64>, Failure> {
    let Contender::Ropewalk { in_order } = contender else { return Ok(None) };
    let unordered = format!("transfer.unordered={}", !in_order);
    let live = ["transfer.protocol=cmt-sctp", "transfer.preset=live", &unordered];
    let same = load(args, &links.file, &live)?;
    let runs: Result<Vec<f64>, _> = (args.seed..args.seed + args.runs)
        .map(|seed| simulate(&same, seed).map(|seen| seen.goodput_bps))
        .collect();
    Ok(median(runs?))
}

fn print(
    args: &CompareArgs,
    bundles: &[Bundle],
    contenders: &[Contender],
    console: Console,
) -> Result<(), Failure> {
    let save = |report: Report| {
        args.report.as_deref().map_or(Ok(()), |path| save_report(path, &report, console))
    };
    let format = args.format.format();
    if let [bundle] = bundles {
        save(show::report(&bundle.scenario, &bundle.rows))?;
        return print_one(&bundle.rows, format);
    }
    let title = if args.access { "ordinary access links" } else { "several bundles of links" };
    save(show_set::report(&format!("Transports over {title}"), bundles, contenders))?;
    let verdicts = summary(bundles);
    let tables = || show_set::tables(bundles, contenders, &verdicts);
    match format {
        Format::Json => output::print_json(&json!({
            "schema": "ropewalk.bench-compare-set/1", "version": VERSION, "kernel": linux::release(),
            "scenarios": bundles, "summary": verdicts,
        })),
        Format::Text => {
            let texts: Vec<String> = tables().into_iter().map(|one| one.text()).collect();
            output::print(&texts.join("\n"))
        }
        format => print_tables(format, &show_set::table(bundles, contenders, true), tables),
    }
}

/// Prints the rows of a single scenario.
fn print_one(rows: &[Row], format: Format) -> Result<(), Failure> {
    let table = show::table(rows, false);
    match format {
        Format::Json => output::print_json(&json!({
            "schema": "ropewalk.bench-compare/1", "version": VERSION, "kernel": linux::release(), "rows": rows,
        })),
        Format::Text => output::print(&table.text(layout())),
        format => {
            print_tables(format, &show::table(rows, true), || vec![Captioned::new("", table)])
        }
    }
}
