//! `transfer.pacing`.

use ropewalk_base::Duration;

use super::Scenario;
use super::builder::Builder;
use super::setting::Setting;
use crate::check::Value;
use crate::keys::{Kind, NS_PER_MS, Table, time};
use crate::toml_text::inline;

/// Whether a window is spread over a round trip, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// Everything that acknowledgements permit is sent immediately.
    Off,
    /// The window is spread, by the preset's values unless others are given.
    On(Option<PacingOptions>),
}

table! {
    /// How a window is spread over a round trip.
    #[derive(Copy)]
    pub struct PacingOptions {
        /// Windows per smoothed round trip after slow start. With 1, a window would never be full, and so never grow.
        gain: f64 = Kind::Number { min: 1.01, max: 10.0 }.is("1.25").example("1.2");
        /// The same in slow start, in which the window doubles per round trip.
        gain_in_slow_start: f64 = Kind::Number { min: 1.01, max: 10.0 }.is("2.0").example("2.0");
        /// Packets that may always be sent together, as many as an initial window.
        burst: u32 = Kind::Packets { min: 1, max: 1_000 }.is("10 packets").example("\"2 packets\"");
        /// Time whose amount of data at the paced rate may be sent together, also with `bbr`. Live, a timer for each
        /// packet would cost more than it spares the queues.
        burst_time: Duration = time(0, 100 * NS_PER_MS).is("2 ms").example("\"1 ms\"");
    }
}

/// `pacing = { ... }`.
const OPTIONS: Table = Table::new("pacing = { ... }", PacingOptions::ABOUT, PacingOptions::KEYS);
/// Whether, or how.
pub(super) const PACING: Kind = Kind::OneOf(&[Kind::Bool, Kind::Table(&OPTIONS)]);

impl Setting for Pacing {
    fn read(builder: &mut Builder<'_>, value: &Value) -> Self {
        match value {
            Value::Table(options) => Self::On(Some(PacingOptions::read(builder, options))),
            Value::Bool(true) => Self::On(None),
            _ => Self::Off,
        }
    }

    fn toml(&self, _: &Kind, scenario: &Scenario) -> Option<String> {
        Some(match self {
            Self::Off => "false".to_owned(),
            Self::On(None) => "true".to_owned(),
            Self::On(Some(options)) => inline(options.entries(scenario)),
        })
    }
}
