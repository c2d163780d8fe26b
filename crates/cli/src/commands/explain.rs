//! `ropewalk explain`: why the scheduler put a packet on its path, or what limits the goodput.

use std::thread::available_parallelism;

use clap::Args;
use ropewalk_base::Time;
use ropewalk_lab::compare::Estimate;
use ropewalk_lab::explain::{Explanation, Question, ReasonCount, explain, limits};
use ropewalk_lab::result::Unit;
use ropewalk_scenario::{Scenario, duration_text, parse_duration};

use crate::args::ScenarioArgs;
use crate::console::{Console, layout, width, wrapped};
use crate::failure::Failure;
use crate::output;
use crate::printer::{count, time};
use crate::progress::{Progress, with_bar};
use crate::table::{Cell, Table};

/// Arguments of `explain`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ropewalk explain wifi-lte --first 5\n  \
    ropewalk explain wifi-lte --chunk 300\n  \
    ropewalk explain wifi-lte --first 0 --summary\n  \
    ropewalk explain wifi-lte --limits\n  \
    ropewalk explain wifi-lte --at 2500ms --path lte --json")]
pub struct ExplainArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Only decisions about this chunk of data, counted from 0
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    chunk: Option<u64>,
    /// Only decisions from this time on, with its unit: '2.5 s', 2500ms
    #[arg(long, value_name = "TIME", conflicts_with = "chunk", allow_hyphen_values = true)]
    at: Option<String>,
    /// Only decisions that send on this path
    #[arg(long, value_name = "NAME")]
    path: Option<String>,
    /// Decisions of this association's sender, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    association: u32,
    /// Show at most this many decisions
    #[arg(long, value_name = "N", default_value_t = 20)]
    first: usize,
    /// Also decisions that found nothing to send, or every window full
    #[arg(long)]
    all: bool,
    /// Also how often each reason was given in the whole run
    #[arg(long)]
    summary: bool,
    /// Instead of decisions, what limits the goodput: the scenario is simulated again with one thing changed at a
    /// time
    #[arg(long, conflicts_with_all = ["chunk", "at", "path", "all", "summary"])]
    limits: bool,
    /// With --limits, the number of runs of each change, with consecutive seeds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000), requires = "limits")]
    seeds: u64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the scenario and shows its decisions.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &ExplainArgs, console: Console) -> Result<(), Failure> {
    let scenario = args.scenario.load()?;
    if args.limits {
        return explain_limits(args, &scenario, console);
    }
    let question = question(args, &scenario)?;
    let label = format!("simulating {}", args.scenario.title());
    let progress = Progress::share();
    let work = || explain(&scenario, &question, &|share| progress.on_progress(share));
    let explanation = with_bar(console, &label, &progress, work)?;
    check_chunk(&question, &explanation)?;
    if args.json {
        return output::print_json(&explanation);
    }
    let mut text = heading(&args.scenario.title(), &explanation, &scenario);
    text += &answer(&explanation);
    if args.summary {
        text += &summary(&explanation.summary);
    }
    output::print(&text)
}

fn explain_limits(
    args: &ExplainArgs,
    scenario: &Scenario,
    console: Console,
) -> Result<(), Failure> {
    let title = args.scenario.title();
    let progress = Progress::share();
    let threads = available_parallelism().map_or(1, usize::from);
    let work = || limits(scenario, args.seeds, threads, &|share| progress.on_progress(share));
    let found = with_bar(console, &format!("simulating {title} with changes"), &progress, work)?;
    if args.json {
        return output::print_json(&found);
    }
    let mut table = Table::new(&["change", "goodput", "of the scenario's"]);
    let row = |table: &mut Table, change: &str, goodput: Estimate, ratio: Option<Estimate>| {
        let cells = [
            Cell::from(change),
            Cell::mean(Some(goodput), Unit::BitsPerSecond),
            Cell::mean(ratio, Unit::Ratio),
        ];
        table.row::<Cell>(cells.into());
    };
    row(&mut table, "(none)", found.goodput_bps, None);
    for one in &found.changes {
        row(&mut table, &one.change, one.goodput_bps, Some(one.ratio));
    }
    let mut text = format!("{title}: {}, {}\n\n", found.protocol, found.scheduler);
    text += &table.text(layout());
    text.push('\n');
    for sentence in &found.conclusions {
        text += &wrapped("", sentence, width());
    }
    output::print(&text)
}

fn question(args: &ExplainArgs, scenario: &Scenario) -> Result<Question, Failure> {
    let from = args.at.as_ref().map(|text| from(text, scenario)).transpose()?;
    let path = args.path.as_ref().map(|name| position(name, scenario)).transpose()?;
    let there_are = scenario.world.associations;
    if args.association >= there_are {
        let message =
            format!("--association {}: the scenario has no such association", args.association);
        return Err(Failure::input(message, format!("valid: 0 to {}", there_are - 1)));
    }
    Ok(Question {
        chunk: args.chunk,
        from,
        path,
        idle: args.all,
        first: args.first,
        association: args.association,
    })
}

fn from(text: &str, scenario: &Scenario) -> Result<Time, Failure> {
    let help = "for example --at '2.5 s' or --at 2500ms";
    let wrong = |why: String| Failure::input(format!("--at {text}: {why}"), help);
    let from = parse_duration(text).map_err(wrong)?;
    let whole = scenario.transfer.duration;
    if from >= whole {
        return Err(wrong(format!("the run ends at {}", duration_text(whole))));
    }
    Ok(Time::ZERO + from)
}

fn position(name: &str, scenario: &Scenario) -> Result<usize, Failure> {
    let names: Vec<&str> = scenario.paths.iter().map(|path| path.name.as_str()).collect();
    names.iter().position(|known| *known == name).ok_or_else(|| {
        let message = format!("--path {name}: the scenario has no such path");
        Failure::input(message, format!("valid: {}", names.join(", ")))
    })
}

/// Checks `--chunk` after the run, because only the run knows how many chunks there are.
fn check_chunk(question: &Question, explanation: &Explanation) -> Result<(), Failure> {
    let Some(chunk) = question.chunk.filter(|chunk| *chunk >= explanation.chunks) else {
        return Ok(());
    };
    let there_are = count(explanation.chunks);
    let message = format!("--chunk {chunk}: the run has {there_are} chunks");
    let last = explanation.chunks.saturating_sub(1);
    Err(Failure::input(message, format!("valid: 0 to {last}")))
}

fn heading(title: &str, explanation: &Explanation, scenario: &Scenario) -> String {
    let Explanation { protocol, scheduler, seed, association, .. } = explanation;
    let whose = match scenario.world.associations {
        1 => String::new(),
        n => format!("; association {association} of 0 to {}", n - 1),
    };
    format!("{title}: {protocol}, {scheduler}, seed {seed}{whose}\n\n")
}

fn answer(explanation: &Explanation) -> String {
    let (mut text, width) = (String::new(), width());
    for decision in &explanation.decisions {
        let at = format!("{:>10}  ", time(decision.at_s));
        text += &wrapped(&at, &decision.sentence, width);
        text += &wrapped(&" ".repeat(at.chars().count()), &format!("({})", decision.known), width);
    }
    let shown = explanation.decisions.len();
    if shown == 0 && explanation.omitted == 0 {
        text += "No decision matches.\n";
    }
    if explanation.omitted > 0 {
        let omitted = count(explanation.omitted as u64);
        let more = if shown == 0 { "" } else { " more" };
        text += &format!("... {omitted}{more} decisions; see --first, --chunk, --at and --path\n");
    }
    text
}

fn summary(reasons: &[ReasonCount]) -> String {
    let path = |reason: &ReasonCount| reason.path.clone().unwrap_or_else(|| "(none)".to_owned());
    let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    let names = longest(&mut reasons.iter().map(|r| path(r).chars().count()));
    let counts = longest(&mut reasons.iter().map(|r| count(r.count).len()));
    let mut text = "\nAll decisions of the run:\n".to_owned();
    for reason in reasons {
        let head = format!("{:<names$}   {:>counts$}   ", path(reason), count(reason.count));
        text += &wrapped(&head, reason.meaning, width());
    }
    text
}
