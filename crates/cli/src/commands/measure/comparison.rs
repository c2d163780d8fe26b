//! Runs a scenario that was written from a record, and compares it with the record.

use std::thread::available_parallelism;

use ropewalk_base::statistics::mean;
use ropewalk_lab::CustomSchedulers;
use ropewalk_lab::compare::{CompareOptions, Variant, compare};

use ropewalk_scenario::Scenario;

use crate::console::Console;
use crate::failure::Failure;
use crate::printer::{rate, time};
use crate::progress::{Progress, with_bar};

/// Maximum duration of a run, and maximum amount of its data, bytes.
const LONGEST_S: f64 = 60.0;
const MOST_BYTES: f64 = 200e6;
/// Runs of each scenario. If losses are random, the record is only one sample.
const SEEDS: u64 = 5;
/// Minimum duration of a run. A shorter record does not show the capacity of the link.
const SHORTEST_S: f64 = 1.0;
/// A buffer that does not limit the sender, because systems grow theirs.
const BUFFER: &str = "8 MB";
/// Maximum difference that needs no explanation.
const CLOSE: f64 = 0.05;

/// Data carried according to a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    /// Goodput with headers, bit/s.
    pub bps: f64,
    /// Duration, seconds.
    pub seconds: f64,
    pub by: CarriedBy,
}

/// The protocol of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum CarriedBy {
    Sctp,
    /// TCP, with the name of its congestion control if it is known.
    Tcp(Option<String>),
}

impl CarriedBy {
    /// The `[transfer]` keys of possible senders of the record. The first one is the most common.
    fn senders(&self) -> Vec<(&'static str, &'static str)> {
        let cubic = ("TCP with CUBIC", "protocol = \"mptcp\"\npreset = \"linux-6\"\n");
        let bbr =
            ("TCP with BBR", "protocol = \"mptcp\"\npreset = \"linux-6\"\ncongestion = \"bbr\"\n");
        match self {
            Self::Sctp => vec![("SCTP", "protocol = \"cmt-sctp\"\n")],
            Self::Tcp(Some(name)) if name.starts_with("bbr") => vec![bbr],
            Self::Tcp(Some(_)) => vec![cubic],
            Self::Tcp(None) => vec![cubic, bbr],
        }
    }
}

/// A scenario with these tables of paths, and with the sender and duration of the record. It begins with a comment
/// that compares simulated and recorded goodput.
///
/// # Errors
/// The scenario cannot be run.
pub fn compared(tables: &str, carried: &Carried, console: Console) -> Result<String, Failure> {
    let Carried { bps, seconds, by } = carried;
    let longest = LONGEST_S.min((MOST_BYTES * 8.0 / bps).max(SHORTEST_S));
    let duration = seconds.clamp(SHORTEST_S, longest);
    let senders = by.senders();
    let variant = |(name, keys): &(&str, &str)| {
        let toml = format!(
            "[transfer]\n{keys}receive_buffer = \"{BUFFER}\"\nduration = \"{duration:.1} s\"\n\n{tables}"
        );
        // For data in the other direction, the paths are reversed.
        let turned = toml.replace("rate_down =", "rate =").replace("queue_down =", "queue =");
        let scenario = Scenario::parse(&turned, "record")?;
        Ok::<_, Failure>((Variant { label: (*name).to_owned(), scenario }, toml))
    };
    let variants: Vec<_> = senders.iter().map(variant).collect::<Result<_, _>>()?;
    let (variants, written): (Vec<Variant>, Vec<String>) = variants.into_iter().unzip();
    let options = CompareOptions {
        seeds: SEEDS,
        threads: available_parallelism().map_or(1, usize::from),
        series: false,
        sequence: None,
        single_paths: false,
        custom_schedulers: CustomSchedulers::default(),
    };
    let progress = Progress::share();
    let compared = with_bar(console, "comparing with the record", &progress, || {
        compare(&variants, &options, &|share| progress.on_progress(share))
    });
    let goodputs = compared.into_iter().map(|one| Ok(one.outcome?.result.goodput_wire_bps));
    let goodputs: Vec<f64> = goodputs.collect::<Result<_, Failure>>()?;
    let each = goodputs.chunks(SEEDS as usize).zip(variants.iter().zip(written));
    let runs = each.map(|(found, (variant, toml))| (found, variant.label.as_str(), toml));
    let off = |found: &[f64]| (mean(found) / bps).ln().abs();
    let best = runs.reduce(|a, b| if off(b.0) < off(a.0) - CLOSE { b } else { a });
    let (found, sender, toml) = best.expect("there is a sender");
    let (least, most) =
        found.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), one| (a.min(*one), b.max(*one)));
    let mut said = format!(
        "# The record carried {} with headers in {}; this scenario, {sender}, carries {}",
        rate(*bps),
        time(*seconds),
        rate(mean(found))
    );
    if least < most {
        said += &format!(", {} to {} with {SEEDS} seeds", rate(least), rate(most));
    }
    said += if *bps < least * (1.0 - CLOSE) {
        ". Not explained:\n# the program or the receiver may have slowed the sender down, other traffic may have used the link, \
         or its rate varies."
    } else if *bps > most * (1.0 + CLOSE) {
        ". Not explained:\n# the queue may be larger than the record shows, or losses may come in another pattern."
    } else {
        "."
    };
    console.note(said.trim_start_matches("# ").replace("\n# ", " "));
    Ok(format!("{said}\n{toml}"))
}
