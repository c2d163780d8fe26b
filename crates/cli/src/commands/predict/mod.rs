//! `ropewalk predict`: results of the closed forms and of the slot model, without a run.

mod slot;

use clap::{Args, ValueEnum};
use ropewalk_lab::predict::{
    Formulas, PathPrediction, Planned, Prediction, Throughput, Validity, predict_by,
};
use ropewalk_lab::result::Unit;
use ropewalk_scenario::Scenario;

use crate::args::ScenarioArgs;
use crate::console::{layout, width, wrapped};
use crate::failure::Failure;
use crate::format::{Captioned, Format, FormatArgs, print_markdown};
use crate::output;
use crate::printer::{count, rate, size, time};
use crate::table::{Cell, Table};

/// Arguments of `predict`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ropewalk predict wifi-lte\n  \
    ropewalk predict sarwar --set transfer.receive_buffer=50kB --json\n  \
    ropewalk predict wifi-lte --paper\n  \
    ropewalk predict sarwar --model slot --set path.slow.delay_error=1.0")]
pub struct PredictArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Model to use
    #[arg(long, value_enum, value_name = "MODEL", default_value = "closed-forms")]
    model: Model,
    /// Use the formulas as the papers print them: acknowledgements take no time, and the receive
    /// buffer holds floor(B / L) packets. Without this option the figures are comparable with those of a run;
    /// they differ by less than 1 %
    #[arg(long)]
    paper: bool,
    /// What the planner of the slot model keeps constant where a path has a `delay_error`: its packets per
    /// forward delay (per-window), or its rate (per-rate)
    #[arg(long, value_name = "WHAT", value_parser = str::parse::<Planned>)]
    planned: Option<Planned>,
    #[command(flatten)]
    format: FormatArgs,
}

/// The model to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Model {
    /// Closed forms and chains: limits, buffers, waits, throughput with loss
    ClosedForms,
    /// Packet by packet in whole ticks, without loss or queues: round robin against delay-aware
    /// (Sarwar et al. 2013)
    Slot,
}

/// Evaluates the models and shows their results.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &PredictArgs) -> Result<(), Failure> {
    let scenario = args.scenario.load()?;
    if args.model == Model::Slot {
        if args.paper {
            let help = "leave --paper out: the slot model is the paper's own, without headers";
            return Err(Failure::input("--paper is about the closed forms", help));
        }
        return slot::execute(
            &args.scenario.title(),
            &scenario,
            args.planned,
            args.format.format(),
        );
    }
    if args.planned.is_some() {
        let help = "add --model slot";
        return Err(Failure::input("--planned is about the slot model", help));
    }
    let formulas = if args.paper { Formulas::AsPrinted } else { Formulas::OnTheWire };
    let prediction = predict_by(formulas, &scenario);
    match args.format.format() {
        Format::Json => output::print_json(&prediction),
        Format::Csv => output::print(&flat(&prediction).csv()),
        Format::Markdown => print_markdown(&[
            Captioned::new("Paths", paths(&prediction)),
            Captioned::new("Throughput", throughput(&prediction)),
        ]),
        Format::Text => output::print(&text(&args.scenario.title(), &scenario, &prediction)),
    }
}

fn text(title: &str, scenario: &Scenario, prediction: &Prediction) -> String {
    let which = match prediction.formulas {
        Formulas::OnTheWire => "closed forms",
        Formulas::AsPrinted => "closed forms as the papers print them",
    };
    let parts = [
        format!("{title}: {which}, nothing was run\n"),
        figures(prediction),
        paths(prediction).text(layout()),
        throughput(prediction).text(layout()) + &validity(prediction),
        notes(scenario, prediction),
    ];
    parts.join("\n")
}

/// A row for each path with the limits of the closed forms and the throughput of each model, and one for the
/// bundle.
fn flat(prediction: &Prediction) -> Table {
    let mut table = Table::new(&["path"]);
    for name in
        ["rate", "round_trip", "share", "window", "packets_per_period", "loss", "window_packets"]
    {
        table.column(name, "");
    }
    for name in ["markov", "renewal", "pftk", "mathis"] {
        table.column(name, &format!("{name}_bps"));
    }
    for path in &prediction.paths {
        let found = &path.throughput;
        let own = [
            Cell::known(found.loss, Unit::Ratio),
            found.window_packets.map_or(Cell::Unknown, |packets| Cell::count(packets.into())),
        ];
        let cells = path_cells(path).into_iter().chain(own);
        table.row(cells.chain(models(&found.throughput)).collect());
    }
    if prediction.paths.len() > 1 {
        let names = std::iter::once(Cell::from("bundle")).chain((0..7).map(|_| Cell::Unknown));
        table.row(names.chain(models(&prediction.bundle)).collect());
    }
    table
}

/// A path and its share of the bundle.
fn path_cells(path: &PathPrediction) -> [Cell; 6] {
    [
        Cell::from(path.name.clone()),
        Cell::of(path.rate_bps, Unit::BitsPerSecond),
        Cell::of(path.round_trip_s.unwrap_or(path.rtt_s), Unit::Seconds),
        Cell::known(path.share_bps, Unit::BitsPerSecond),
        Cell::known(path.window_bytes, Unit::Bytes),
        path.packets_per_period.map_or(Cell::Unknown, Cell::count),
    ]
}

/// The throughput that each model predicts.
fn models(found: &Throughput) -> [Cell; 4] {
    let figures =
        [found.markov_bps.independent, found.renewal_bps, found.pftk_bps, found.mathis_bps];
    figures.map(|bps| Cell::known(bps, Unit::BitsPerSecond))
}

fn or_dash(value: Option<f64>, show: fn(f64) -> String) -> String {
    value.map_or("-".into(), show)
}

fn figures(prediction: &Prediction) -> String {
    let limit = or_dash(prediction.flow_control_bound_bps, rate);
    let buffer = or_dash(prediction.receive_buffer_min_bytes, size);
    let wait = or_dash(prediction.blocking_time_max_s, time);
    let period = prediction.period.as_ref().map(|period| {
        let cut = if period.capped { ", cut short" } else { "" };
        let packets = count(period.packets);
        let meaning = format!("after which a delay-aware schedule repeats: {packets} packets{cut}");
        ("period", time(period.length_s), meaning)
    });
    let lines = [
        (
            "flow-control bound",
            limit,
            "of the rates, and of receive buffer over round trips".to_owned(),
        ),
        (
            "buffer needed",
            buffer,
            "so that no path ever stops: all rates times longest RTT".to_owned(),
        ),
        (
            "blocking time",
            wait,
            "longest wait for a packet sent at once on another path".to_owned(),
        ),
    ];
    let line = |(name, value, meaning): (&str, String, String)| {
        wrapped(&format!("{name:<20}{value:>13}   "), &meaning, width())
    };
    lines.into_iter().chain(period).map(line).collect()
}

fn paths(prediction: &Prediction) -> Table {
    let headings = ["path", "rate", "round trip", "of bound", "window", "packets per period"];
    let mut table = Table::new(&headings);
    for path in &prediction.paths {
        table.row(path_cells(path).into());
    }
    table
}

/// The throughput that each model predicts for each path, with the window that the buffer allows, and for the bundle.
fn throughput(prediction: &Prediction) -> Table {
    let headings = ["throughput", "loss", "window", "Markov", "renewal", "PFTK", "Mathis"];
    let mut table = Table::new(&headings);
    let mut row = |name: &str, loss: String, window: String, found: &Throughput| {
        let cells = [name.to_owned(), loss, window].map(Cell::from);
        table.row(cells.into_iter().chain(models(found)).collect());
    };
    for path in &prediction.paths {
        let found = &path.throughput;
        let loss = match found.loss {
            Some(0.0) => "none".to_owned(),
            loss => or_dash(loss, |share| format!("{:.3} %", share * 100.0)),
        };
        let window =
            found.window_packets.map_or("-".into(), |n| format!("{} packets", count(n.into())));
        row(&path.name, loss, window, &found.throughput);
    }
    if prediction.paths.len() > 1 {
        row("bundle", String::new(), "best split".to_owned(), &prediction.bundle);
    }
    table
}

/// Selects the statement about one model.
type WordOf = fn(&Validity) -> &'static str;

/// How far each model can be trusted, on which paths.
fn validity(prediction: &Prediction) -> String {
    let models: [(&str, WordOf); 4] = [
        ("Markov", |words| words.markov),
        ("renewal", |words| words.renewal),
        ("PFTK", |words| words.pftk),
        ("Mathis", |words| words.mathis),
    ];
    let lossless = |words: &Validity| words.markov == words.mathis;
    let mut text = String::new();
    let mut line = |head: &str, of: &dyn Fn(&Validity) -> Option<&'static str>| {
        let mut said: Vec<(&str, Vec<&str>)> = Vec::new();
        for path in &prediction.paths {
            let Some(word) = path.throughput.validity.as_ref().and_then(of) else { continue };
            match said.iter_mut().find(|(known, _)| *known == word) {
                Some((_, names)) => names.push(&path.name),
                None => said.push((word, vec![&path.name])),
            }
        }
        let said = said.iter().map(|(word, names)| format!("{word} ({})", names.join(", ")));
        let said: Vec<String> = said.collect();
        if !said.is_empty() {
            text += &wrapped(&format!("{head:<13}"), &said.join("; "), width());
        }
    };
    line("all models", &|words| lossless(words).then_some(words.markov));
    for (name, of) in models {
        line(name, &|words| (!lossless(words)).then_some(of(words)));
    }
    let lossy = |path: &PathPrediction| path.throughput.validity.is_some_and(|w| !lossless(&w));
    if prediction.paths.len() > 1 && prediction.paths.iter().any(lossy) {
        let split = "the best split of the receive buffer by each model; renewal and PFTK predict more \
                     with a window that just fills a path than with a larger one";
        text += &wrapped(&format!("{:<13}", "bundle"), split, width());
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// What the figures count, and why some are missing.
fn notes(scenario: &Scenario, prediction: &Prediction) -> String {
    let file = size(scenario.transfer.receive_buffer as f64);
    let wire = size(prediction.receive_buffer_bytes);
    let headers = match prediction.formulas {
        Formulas::OnTheWire => format!(
            "rates, windows and buffers count headers; the receive buffer of {file} in the scenario \
             takes packets of {wire} with them; round trips count the acknowledgement (--paper \
             leaves it out)"
        ),
        Formulas::AsPrinted => format!(
            "acknowledgements take no time, and the receive buffer of {file} holds whole packets of \
             {}; a run has headers and acknowledgements (leave --paper out)",
            size(f64::from(scenario.transfer.packet))
        ),
    };
    let notes = [headers].into_iter().chain(prediction.notes.iter().cloned());
    let mut text: String = notes.map(|note| wrapped("note: ", &note, width())).collect();
    if !prediction.notes.is_empty() {
        text += "A dash stands for what no closed form can say; the notes tell why.\n";
    }
    text
}
