//! Loss models.

use super::builder::Builder;
use super::declare::read_key;
use super::setting::Setting;
use super::{Scenario, numbered_lines};
use crate::check::{Checked, FromValue, Value};
use crate::error::ProblemKind;
use crate::keys::{Exclusive, Kind, PROBABILITY, Tagged, Variant};
use crate::toml_text::inline;

/// Tolerance for the sum of a row of a Markov chain: enough for rounding, too small for mistakes.
const ROW_TOLERANCE: f64 = 1e-9;

/// One probability for each state of a Markov chain.
const STATES: Kind = Kind::List { of: &PROBABILITY, min: 1, max: 64 };
/// What a file of losses contains.
const LOSSES: &str = "one whole number per line, ascending; lines that begin with # do not count";
const PACKETS: Kind =
    Kind::List { of: &Kind::Integer { min: 0, max: i64::MAX as u64 }, min: 0, max: 10_000_000 };

variants! {
    /// A loss model; probabilities are per packet.
    pub enum Loss {
        /// Independent losses; the same as a plain number.
        Bernoulli = "bernoulli" {
            /// Probability that a packet is lost.
            rate: f64 = PROBABILITY.required().example("1e-3");
        },
        /// A good and a bad state (Gilbert, 1960; Elliott, 1963); begins in the good one.
        GilbertElliott = "gilbert-elliott" [Variant::PLAIN.about(
            "One step per packet. Bursts last 1/r packets on average, and p/(p + r) of all packets fall \
             into one."
        )] {
            /// Probability to go from good to bad.
            p: f64 = PROBABILITY.required().example("0.001");
            /// Probability to go from bad to good.
            r: f64 = PROBABILITY.required().example("0.1");
            /// Loss in the good state.
            good: f64 = PROBABILITY.is("0.0").example("0.0");
            /// Loss in the bad state.
            bad: f64 = PROBABILITY.is("1.0").example("1.0");
        },
        /// Any number of states; begins in the first.
        Markov = "markov" [Variant::PLAIN.about("One step per packet.")] where check_markov {
            /// Square: row i holds the probabilities to go from state i to each state, and sums to 1.
            transitions: Vec<Vec<f64>> = Kind::List { of: &STATES, min: 1, max: 64 }
                .required()
                .example("[[0.99, 0.01], [0.2, 0.8]]");
            /// Loss in each state, as many as there are rows.
            loss: Vec<f64> = STATES.required().example("[0.0, 0.5]");
        },
        /// After the first loss in a round the rest of it is lost too.
        Round = "round" [Variant::PLAIN.about(
            "The correlated loss that throughput models assume. A round is a round trip of the sender \
             that the packet belongs to."
        )] {
            /// Probability of the first loss, per packet.
            rate: f64 = PROBABILITY.required().example("1e-3");
        },
        /// Exactly the packets that are listed.
        Trace = "trace" [
            Variant::PLAIN
                .about("Packets are counted from 0 in the order in which they reach the link.")
                .extra(keys! {
                    /// A text file with one packet number per line, ascending.
                    file = Kind::File.derived("none; or `losses`").example("\"traces/losses.txt\"");
                })
                .exclusive(&[Exclusive { ways: &[&["file"], &["losses"]], required: true }])
        ] {
            /// The packet numbers themselves, ascending.
            losses: Vec<u64> => listed =
                PACKETS.derived("none; or `file`").example("[100, 101, 250]");
        },
        otherwise
        /// No loss; a probability of zero in the file.
        None
    }
}

const MODELS: Tagged = Tagged {
    tag: "model",
    heading: "loss = { model = \"?\", ... }",
    doc: "A loss model; probabilities are per packet.",
    default: None,
    before: &[],
    variants: Loss::VARIANTS,
    after: [&[], &[]],
};

/// A probability alone (Bernoulli), or a table with the model.
pub(super) const LOSS: Kind = Kind::OneOf(&[PROBABILITY, Kind::Tagged(&MODELS)]);

impl Setting for Loss {
    fn read(builder: &mut Builder<'_>, value: &Value) -> Self {
        let loss = match value {
            Value::Table(table) => Self::read(builder, table),
            other => Self::Bernoulli { rate: f64::from_value(other) },
        };
        if loss == (Self::Bernoulli { rate: 0.0 }) { Self::None } else { loss }
    }

    fn toml(&self, kind: &Kind, scenario: &Scenario) -> Option<String> {
        match self {
            Self::None => 0.0.toml(kind, scenario),
            Self::Bernoulli { rate } => rate.toml(kind, scenario),
            model => {
                let own = model.entries(scenario);
                Some(inline(MODELS.entries(model.name(), own, Vec::new())))
            }
        }
    }
}

/// Checks that the rows form a square of probabilities, with a loss for each.
fn check_markov(builder: &mut Builder<'_>, entry: &Checked) {
    let losses = entry.list("loss").len();
    let rows = entry.list("transitions");
    let key = format!("{}.transitions", entry.path);
    for (i, item) in rows.iter().enumerate() {
        let Value::List(row) = &item.value else { unreachable!("rows are lists") };
        let sum: f64 = row.iter().map(|item| f64::from_value(&item.value)).sum();
        let trouble = if row.len() != rows.len() {
            Some(format!("row {i} of `{key}` has {} entries, not {}", row.len(), rows.len()))
        } else if (sum - 1.0).abs() > ROW_TOLERANCE {
            Some(format!("row {i} of `{key}` sums to {sum}, not to 1"))
        } else {
            None
        };
        if let Some(message) = trouble {
            let help = "a square of probabilities; each row says where one state goes";
            builder.wrong_at(&item.span, &key, ProblemKind::Conflict, message, help);
        }
    }
    if losses != rows.len() {
        let message =
            format!("`{}.loss` has {} entries for {} states", entry.path, losses, rows.len());
        let help = "one loss probability for each row of `transitions`";
        builder.wrong(entry, "loss", ProblemKind::Conflict, message, help);
    }
}

/// Losses that are listed, in the scenario or in a file.
fn listed(builder: &mut Builder<'_>, entry: &Checked, key: &str) -> Vec<u64> {
    if let Some(file) = entry.opt::<String>("file") {
        return losses_of_file(builder, entry, &file);
    }
    let losses: Vec<u64> = read_key(builder, entry, key);
    if let Some(at) = losses.windows(2).position(|pair| pair[1] <= pair[0]) {
        let span = &entry.list(key)[at + 1].span;
        let key = format!("{}.{key}", entry.path);
        let message = format!("`{key}`: {} follows {}", losses[at + 1], losses[at]);
        let help = "packet numbers ascend";
        builder.wrong_at(span, &key, ProblemKind::Conflict, message, help);
    }
    losses
}

fn losses_of_file(builder: &mut Builder<'_>, entry: &Checked, file: &str) -> Vec<u64> {
    let Some(text) = builder.read_file(entry, "file", file) else { return Vec::new() };
    let mut losses: Vec<u64> = Vec::new();
    for (line, content) in numbered_lines(&text) {
        match content.parse() {
            Ok(number) if losses.last().is_none_or(|last| number > *last) => losses.push(number),
            Ok(number) => {
                let reason = format!("{number} does not ascend");
                builder.bad_file(entry, "file", (file, line), &reason, LOSSES);
                break;
            }
            Err(_) => {
                let reason = format!("`{content}` is not a packet number");
                builder.bad_file(entry, "file", (file, line), &reason, LOSSES);
                break;
            }
        }
    }
    losses
}
