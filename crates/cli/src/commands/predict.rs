//! `ropewalk predict`: what the closed forms say, without a run.

use clap::Args;
use ropewalk_lab::predict::{Prediction, predict};

use crate::args::ScenarioArgs;
use crate::failure::Failure;
use crate::output;
use crate::printer::{count, rate, size, time};
use crate::table::Table;

/// Arguments of `predict`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ropewalk predict scenarios/wifi-lte.toml\n  \
    ropewalk predict scenarios/sarwar.toml --set transfer.receive_buffer=50kB --json")]
pub struct PredictArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Print the prediction as one JSON document
    #[arg(long)]
    json: bool,
}

/// Asks the models and shows what they say.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &PredictArgs) -> Result<(), Failure> {
    let prediction = predict(&args.scenario.load()?);
    if args.json {
        return output::print_json(&prediction);
    }
    output::print(&text(&args.scenario.title(), &prediction))
}

fn text(title: &str, prediction: &Prediction) -> String {
    let or_dash = |value: Option<f64>, show: fn(f64) -> String| value.map_or("-".into(), show);
    let buffer = size(prediction.receive_buffer_bytes);
    let mut text = format!("{title}: closed forms, nothing was run\n\n");
    for (name, value, meaning) in [
        (
            "physical limit",
            or_dash(prediction.flow_control_bound_bps, rate),
            format!("of windows and round trips, through {buffer} of receive buffer"),
        ),
        (
            "buffer needed",
            or_dash(prediction.receive_buffer_min_bytes, size),
            "so that no path ever stops for want of room: rates times longest RTT".to_owned(),
        ),
        (
            "blocking time",
            or_dash(prediction.blocking_time_max_s, time),
            "longest wait for a packet sent at the same moment on another path".to_owned(),
        ),
    ] {
        text += &format!("{name:<16}{value:>13}   {meaning}\n");
    }
    if let Some(period) = &prediction.period {
        let cut = if period.capped { ", cut short" } else { "" };
        let packets = count(period.packets);
        let meaning = format!("after which a delay-aware schedule repeats: {packets} packets{cut}");
        text += &format!("{:<16}{:>13}   {meaning}\n", "period", time(period.length_s));
    }
    text += "\n";
    let headings = ["path", "rate", "round trip", "of the limit", "window", "packets per period"];
    let mut table = Table::new(&headings);
    for path in &prediction.paths {
        table.row(vec![
            path.name.clone(),
            rate(path.rate_bps),
            time(path.round_trip_s.unwrap_or(path.rtt_s)),
            or_dash(path.share_bps, rate),
            or_dash(path.window_bytes, size),
            path.packets_per_period.map_or("-".into(), count),
        ]);
    }
    text += &table.text();
    for note in &prediction.notes {
        text += &format!("\nnote: {note}\n");
    }
    text
}
