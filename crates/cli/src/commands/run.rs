//! `ropewalk run`: one scenario.

use std::thread::available_parallelism;

use clap::Args;
use ropewalk_lab::result::{Figure, Group, figures, path_columns};
use ropewalk_lab::{
    BufferHint, PathResult, Run, RunOptions, RunResult, buffer_hint, run_traced, run_watched,
};

use crate::args::ScenarioArgs;
use crate::console::{Console, width, wrapped};
use crate::failure::Failure;
use crate::files::OutputFiles;
use crate::output;
use crate::packet_files::PacketFileArgs;
use crate::printer::{count, percent, quantity, rate, size, time};
use crate::progress::{Progress, with_bar};
use crate::table::Table;

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ropewalk run scenarios/wifi-lte.toml\n  \
    ropewalk run scenarios/wifi-lte.toml --scheduler round-robin --set path.lte.rtt=40ms --json\n  \
    ropewalk run scenarios/sarwar.toml --seed 7 --report sarwar.html --out sarwar.parquet\n  \
    ropewalk run wifi-lte --set transfer.duration=10s --capture sender.pcapng --qlog sender.sqlog")]
pub struct RunArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    files: OutputFiles,
    #[command(flatten)]
    packets: PacketFileArgs,
}

/// Runs the scenario and shows its result.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &RunArgs, console: Console) -> Result<(), Failure> {
    let scenario = args.scenario.load()?;
    let files = args.files.check(console)?;
    let options = RunOptions {
        series: files.wants_series(),
        sequence: files.sequence(),
        ..RunOptions::default()
    };
    let label = format!("simulating {}", args.scenario.title());
    let progress = Progress::share();
    let trace = args.packets.open(&scenario, &args.scenario.title())?;
    let on_progress = |share| progress.on_progress(share);
    let work = || match trace {
        Some(trace) => {
            let traced = run_traced(&scenario, &options, &on_progress, trace);
            traced.map(|(run, trace)| (run, Some(trace)))
        }
        None => run_watched(&scenario, &options, &on_progress).map(|run| (run, None)),
    };
    let (run, trace) = with_bar(console, &label, &progress, work)?;
    if let Some(trace) = trace {
        args.packets.finish(trace, console)?;
    }
    let title = format!("{}, {}", args.scenario.title(), run.result.scheduler);
    files.write_run(title, &scenario, &run)?;
    if args.json {
        return output::print_json(&run.result);
    }
    output::print(&summary(&args.scenario.title(), &run))?;
    if let Some(speed) = line(&run.result, Group::Engine) {
        console.note(speed);
    }
    if !console.is_quiet() {
        let threads = available_parallelism().map_or(1, usize::from);
        if let Some(hint) = buffer_hint(&scenario, &run.result, threads) {
            console.note(wrapped("hint: ", &sentence(&hint), width()).trim_end());
        }
    }
    Ok(())
}

/// The hint in words.
fn sentence(hint: &BufferHint) -> String {
    let length = hint.shortened_s.map_or_else(String::new, |s| format!(" over {}", time(s)));
    format!(
        "{} carries {} of its rate: the receive buffer of {} is too small. With {} the simulation{length} \
         gives {} instead of {}. Set transfer.receive_buffer; `ropewalk tune --reach` finds the smallest \
         sufficient one.",
        hint.path,
        percent(hint.utilisation),
        size(hint.receive_buffer_bytes as f64),
        size(hint.sufficient_bytes as f64),
        rate(hint.sufficient_bps),
        rate(hint.goodput_bps),
    )
}

fn summary(title: &str, run: &Run) -> String {
    let result = &run.result;
    let heading = format!(
        "{title}: {}, {}, seed {}; {} after a warm-up of {}\n",
        result.protocol,
        result.scheduler,
        result.seed,
        time(result.duration_s),
        time(result.warmup_s),
    );
    [heading, lines(result), paths(result)].join("\n")
}

/// A line for each group of figures.
fn lines(result: &RunResult) -> String {
    let width = width();
    let shown = Group::ALL.iter().filter(|group| **group != Group::Engine);
    let line = |group: &Group| {
        let text = match group {
            Group::Associations if !result.association_goodput_bps.is_empty() => {
                associations(&result.association_goodput_bps)
            }
            Group::Run | Group::Associations => return None,
            group => line(result, *group)?,
        };
        Some(wrapped(&format!("{:<16}", group.label().to_lowercase()), &text, width))
    };
    shown.filter_map(line).collect()
}

/// The known figures of a group in one line; none if there are none.
fn line(result: &RunResult, group: Group) -> Option<String> {
    let own = figures().into_iter().filter(|figure| figure.show.group == group);
    let known = own.filter_map(|figure| {
        let value = quantity((figure.of)(result)?, figure.show.unit);
        Some(figure.phrase().replace("{}", &value))
    });
    let known: Vec<String> = known.collect();
    let note = if group.note().is_empty() { String::new() } else { format!("; {}", group.note()) };
    (!known.is_empty()).then(|| known.join(", ") + &note)
}

fn associations(goodputs: &[f64]) -> String {
    let mean = goodputs.iter().sum::<f64>() / goodputs.len() as f64;
    let least = goodputs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = goodputs.iter().copied().fold(0.0, f64::max);
    let [mean, least, most] = [mean, least, most].map(rate);
    format!("{}; goodput {mean} mean, {least} least, {most} most", count(goodputs.len() as u64))
}

fn paths(result: &RunResult) -> String {
    let mut columns = path_columns();
    // A figure that documents leave out if it is zero is left out here if it is zero on all paths.
    let zero = |path: &PathResult, figure: &Figure<PathResult>| (figure.of)(path) == Some(0.0);
    columns.retain(|figure| {
        !figure.omitted_if_zero || !result.paths.iter().all(|path| zero(path, figure))
    });
    let headings: Vec<String> = columns.iter().map(|figure| figure.heading()).collect();
    let headings: Vec<&str> =
        std::iter::once("path").chain(headings.iter().map(String::as_str)).collect();
    let mut table = Table::new(&headings);
    for path in &result.paths {
        let cells = columns.iter().map(|figure| {
            (figure.of)(path).map_or_else(|| "-".to_owned(), |x| quantity(x, figure.show.unit))
        });
        table.row(std::iter::once(path.name.clone()).chain(cells).collect());
    }
    table.text(width())
}
