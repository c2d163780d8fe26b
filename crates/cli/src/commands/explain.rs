//! `ropewalk explain`: why a packet went where it went.

use clap::Args;
use ropewalk_base::Time;
use ropewalk_lab::explain::{Explanation, Question, explain};
use ropewalk_scenario::{Scenario, parse_duration};

use crate::args::ScenarioArgs;
use crate::failure::Failure;
use crate::output;
use crate::printer::{count, time};
use crate::progress::{Progress, with_bar};
use crate::table::Table;

/// Arguments of `explain`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ropewalk explain scenarios/wifi-lte.toml --first 5\n  \
    ropewalk explain scenarios/wifi-lte.toml --chunk 300\n  \
    ropewalk explain scenarios/wifi-lte.toml --at '2.5 s' --path lte --json")]
pub struct ExplainArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Only decisions about this chunk of data, counted from 0
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    chunk: Option<u64>,
    /// Only decisions from this time on, for example '2.5 s'
    #[arg(long, value_name = "TIME", conflicts_with = "chunk")]
    at: Option<String>,
    /// Only decisions that send on this path
    #[arg(long, value_name = "NAME")]
    path: Option<String>,
    /// At most so many decisions
    #[arg(long, value_name = "N", default_value_t = 20)]
    first: usize,
    /// Also decisions that found nothing to send, or every window full
    #[arg(long)]
    all: bool,
    /// Print the decisions as one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the scenario and tells of its decisions.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &ExplainArgs) -> Result<(), Failure> {
    let scenario = args.scenario.load()?;
    let question = question(args, &scenario)?;
    let label = format!("simulating {}", args.scenario.title());
    let explanation = with_bar(&label, &Progress::new(0), || explain(&scenario, &question))?;
    if args.json {
        return output::print_json(&explanation);
    }
    output::print(&text(&args.scenario.title(), &explanation))
}

fn question(args: &ExplainArgs, scenario: &Scenario) -> Result<Question, Failure> {
    let from = match &args.at {
        None => None,
        Some(text) => {
            let duration = parse_duration(text).map_err(|why| {
                Failure::input(format!("--at {text}: {why}"), "for example --at '2.5 s'")
            })?;
            Some(Time::ZERO + duration)
        }
    };
    let path = args.path.as_ref().map(|name| position(name, scenario)).transpose()?;
    Ok(Question { chunk: args.chunk, from, path, idle: args.all, first: args.first })
}

fn position(name: &str, scenario: &Scenario) -> Result<usize, Failure> {
    let names: Vec<&str> = scenario.paths.iter().map(|path| path.name.as_str()).collect();
    names.iter().position(|known| *known == name).ok_or_else(|| {
        let message = format!("--path {name}: the scenario has no such path");
        Failure::input(message, format!("valid: {}", names.join(", ")))
    })
}

fn text(title: &str, explanation: &Explanation) -> String {
    let Explanation { protocol, scheduler, seed, .. } = explanation;
    let mut text = format!("{title}: {protocol}, {scheduler}, seed {seed}\n\n");
    for decision in &explanation.decisions {
        text += &format!("{:>10}  {}\n", time(decision.at_s), decision.sentence);
    }
    if explanation.decisions.is_empty() {
        text += "No decision fits the question.\n";
    }
    if explanation.omitted > 0 {
        let omitted = count(explanation.omitted as u64);
        text += &format!("... and {omitted} more; see --first, --chunk, --at and --path\n");
    }
    text += "\nAll decisions of the run:\n";
    let mut table = Table::new(&["path", "count", "reason"]).left(2);
    for entry in &explanation.summary {
        let path = entry.path.clone().unwrap_or_else(|| "(none)".to_owned());
        table.row(vec![path, count(entry.count), entry.meaning.to_owned()]);
    }
    text + &table.text()
}
