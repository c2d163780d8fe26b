//! `ropewalk run`: one scenario.

use clap::Args;
use ropewalk_lab::{Run, RunOptions, RunResult, run_watched};

use crate::args::ScenarioArgs;
use crate::console::{Console, width, wrapped};
use crate::failure::Failure;
use crate::files::OutputFiles;
use crate::output;
use crate::printer::{count, percent, rate, size, time, time_or_dash};
use crate::progress::{Progress, with_bar};
use crate::table::Table;

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ropewalk run scenarios/wifi-lte.toml\n  \
    ropewalk run scenarios/wifi-lte.toml --scheduler round-robin --set path.lte.rtt=40ms --json\n  \
    ropewalk run scenarios/sarwar.toml --seed 7 --report sarwar.html --out sarwar.parquet")]
pub struct RunArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    files: OutputFiles,
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
    let work = || run_watched(&scenario, &options, &|share| progress.on_progress(share));
    let run = with_bar(console, &label, &progress, work)?;
    let title = format!("{}, {}", args.scenario.title(), run.result.scheduler);
    files.write_run(title, &scenario, &run)?;
    if args.json {
        return output::print_json(&run.result);
    }
    output::print(&summary(&args.scenario.title(), &run))?;
    console.note(speed(&run.result));
    Ok(())
}

/// The speed of the simulation, in a sentence.
fn speed(result: &RunResult) -> String {
    let engine = &result.engine;
    format!(
        "{} packets, {} events in {} of CPU time: {} packets per second",
        count(engine.packets),
        count(engine.events),
        time(engine.cpu_s),
        count(engine.packets_per_cpu_s as u64),
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
    [heading, figures(result), paths(result)].join("\n")
}

fn figures(result: &RunResult) -> String {
    let mut lines = vec![("goodput", goodput(result))];
    if let Some(seconds) = result.completion_s {
        lines.push(("completed", format!("after {}", time(seconds))));
    }
    let delivered = size(result.delivered_bytes as f64);
    lines
        .push(("delivered", format!("{delivered} in {} packets", count(result.delivered_packets))));
    let buffer = &result.receive_buffer;
    lines.push((
        "receive buffer",
        format!(
            "{} mean, {} p99, {} peak; blocked for {}, {} of the time",
            size(buffer.mean_bytes),
            size(buffer.p99_bytes as f64),
            size(buffer.max_bytes as f64),
            time(buffer.blocked_s),
            percent(buffer.blocked_s / result.duration_s),
        ),
    ));
    let wait = &result.blocking_time_s;
    let wait = (wait.mean, wait.p50, wait.p99, wait.max);
    lines.push(("blocking time", format!("{}, from arrival to in-order delivery", spread(wait))));
    let delay = &result.app_delay_s;
    let delay = (delay.mean, delay.p50, delay.p99, delay.max);
    lines.push(("delay", format!("{}, from first sent to in-order delivery", spread(delay))));
    lines.push(("out of order", format!("{} of the packets", percent(result.out_of_order.ratio))));
    let again = result.paths.iter().map(|p| p.retransmitted_packets).sum();
    let spurious = count(result.spurious_retransmissions);
    lines.push(("sent again", format!("{} packets, {spurious} of them spurious", count(again))));
    if !result.association_goodput_bps.is_empty() {
        lines.push(("associations", associations(&result.association_goodput_bps)));
    }
    let width = width();
    lines.iter().map(|(name, text)| wrapped(&format!("{name:<16}"), text, width)).collect()
}

fn goodput(result: &RunResult) -> String {
    let goodput = rate(result.goodput_bps);
    match (result.flow_control_bound_bps, result.share_of_bound) {
        (Some(bound), Some(share)) => format!(
            "{goodput}; {} with headers, {} of the flow-control bound of {}",
            rate(result.goodput_wire_bps),
            percent(share),
            rate(bound),
        ),
        _ => format!("{goodput}; {} with headers", rate(result.goodput_wire_bps)),
    }
}

fn spread((mean, median, p99, max): (f64, f64, f64, f64)) -> String {
    let [mean, median, p99, max] = [mean, median, p99, max].map(time);
    format!("{mean} mean, {median} median, {p99} p99, {max} longest")
}

fn associations(goodputs: &[f64]) -> String {
    let mean = goodputs.iter().sum::<f64>() / goodputs.len() as f64;
    let least = goodputs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = goodputs.iter().copied().fold(0.0, f64::max);
    let [mean, least, most] = [mean, least, most].map(rate);
    format!("{}; goodput {mean} mean, {least} least, {most} most", count(goodputs.len() as u64))
}

fn paths(result: &RunResult) -> String {
    let headings =
        ["path", "throughput", "used", "RTT", "window", "sent", "sent again", "lost", "timeouts"];
    let mut table = Table::new(&headings);
    for path in &result.paths {
        table.row(vec![
            path.name.clone(),
            rate(path.throughput_bps),
            percent(path.utilisation),
            time_or_dash(path.srtt_s),
            size(path.cwnd_bytes as f64),
            count(path.sent_packets),
            count(path.retransmitted_packets),
            count(path.lost_packets),
            count(path.timeouts),
        ]);
    }
    table.text(width())
}
