//! Random additions to delays: jitter, and delayed packets that others overtake.

use ropewalk_base::Duration;

use super::Scenario;
use super::builder::Builder;
use super::setting::Setting;
use crate::check::{Checked, FromValue, Value};
use crate::keys::{DELAY, Kind, PROBABILITY, Table, Tagged};
use crate::toml_text::inline;

variants! {
    /// Distributions of jitter. The delay as a whole never falls below zero.
    #[derive(Copy, Eq)]
    pub enum JitterShape {
        /// Uniform from zero to `max`.
        Uniform = "uniform" {
            /// The most that is added.
            max: Duration = DELAY.required().example("\"5 ms\"");
        },
        /// Normal; the total delay never falls below zero.
        Normal = "normal" {
            /// Mean of what is added.
            mean: Duration = DELAY.required().example("\"5 ms\"");
            /// Standard deviation.
            deviation: Duration = DELAY.required().example("\"2 ms\"");
        },
        /// Many small additions, few large ones.
        Exponential = "exponential" {
            /// Mean of what is added.
            mean: Duration = DELAY.required().example("\"5 ms\"");
        },
    }
}

table! {
    /// Random addition to the delay of each packet.
    #[derive(Copy, Eq)]
    pub struct Jitter {
        /// Whether a packet waits for those before it, as in a first-in first-out link, or may
        /// overtake them.
        keep_order: bool = Kind::Bool.is("true").example("false");
        also {
            /// How it is distributed.
            shape: JitterShape => JitterShape::read;
        }
    }
}

const KINDS: Tagged = Tagged {
    tag: "distribution",
    heading: "jitter = { distribution = \"?\", ... }",
    doc: Jitter::ABOUT,
    default: Some("uniform"),
    before: &[],
    variants: JitterShape::VARIANTS,
    after: [Jitter::KEYS, &[]],
};

/// A largest value alone (uniform), or a table with the distribution.
pub(super) const JITTER: Kind = Kind::OneOf(&[DELAY, Kind::Tagged(&KINDS)]);

/// Reads the jitter under `key`; `None` if nothing is added.
pub(super) fn jitter(builder: &mut Builder<'_>, table: &Checked, key: &str) -> Option<Jitter> {
    let jitter = Jitter::read_value(builder, table.value(key)?);
    let (JitterShape::Uniform { max: most } | JitterShape::Exponential { mean: most }) =
        jitter.shape
    else {
        return Some(jitter);
    };
    (!most.is_zero()).then_some(jitter)
}

impl Jitter {
    fn read_value(builder: &mut Builder<'_>, value: &Value) -> Self {
        match value {
            Value::Table(table) => Self::read(builder, table),
            other => {
                let max = Duration::from_value(other);
                Self { shape: JitterShape::Uniform { max }, keep_order: true }
            }
        }
    }
}

impl Setting for Jitter {
    fn read(builder: &mut Builder<'_>, value: &Value) -> Self {
        Self::read_value(builder, value)
    }

    fn toml(&self, _: &Kind, scenario: &Scenario) -> Option<String> {
        let (kind, own) = (self.shape.name(), self.shape.entries(scenario));
        Some(inline(KINDS.entries(kind, own, self.entries(scenario))))
    }
}

table! {
    /// Packets that are delayed and overtaken.
    #[derive(Copy)]
    pub struct Reorder {
        /// Probability that a packet is delayed.
        probability: f64 = PROBABILITY.required().example("0.01");
        /// Additional delay of such a packet.
        delay: Duration = DELAY.required().example("\"10 ms\"");
    }
}

const REORDER_TABLE: Table = Table::new("reorder = { ... }", Reorder::ABOUT, Reorder::KEYS);
pub(super) const REORDER: Kind = Kind::Table(&REORDER_TABLE);

inline_table!(Reorder);
