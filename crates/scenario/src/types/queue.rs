//! Queues: discipline, and the limit in packets or bytes.

use ropewalk_base::Duration;

use super::Scenario;
use super::builder::Builder;
use super::setting::Setting;
use crate::check::{Checked, Value, fitting};
use crate::choice::Choice;
use crate::error::ProblemKind;
use crate::keys::{
    Extra, Key, Kind, LARGEST_QUEUE, NS_PER_MS, NS_PER_S, PROBABILITY, Tagged, Variant, choice,
    time,
};
use crate::quantity::{Dimension, size_text};
use crate::toml_text::{inline, quoted};

const UNLIMITED: &[Choice] = &[choice("unlimited", "No limit.")];

const fn limit_in(also: &'static [Extra]) -> Kind {
    Kind::Quantity { dimension: Dimension::Size, min: 1, max: LARGEST_QUEUE, also }
}

/// A limit, with the unit BDP.
const LIMIT: &[Kind] = &[limit_in(&[Extra::Packets, Extra::Bdp]), Kind::Choice(UNLIMITED)];

/// A queue limit without the unit BDP: the round-trip time over a contended channel is not known in advance.
pub(super) const PLAIN_LIMIT: Kind =
    Kind::OneOf(&[limit_in(&[Extra::Packets]), Kind::Choice(UNLIMITED)]);

/// ECN is written only where it is on.
const ECN: Key = Kind::Bool.is("false").example("true").sparse();

variants! {
    /// Queue disciplines.
    #[derive(Copy)]
    pub enum Discipline {
        /// Packets that arrive at a full queue are dropped.
        DropTail = "droptail",
        /// Random early detection (Floyd and Jacobson, 1993), gentle.
        Red = "red" [Variant::PLAIN.about("Needs a limit.")] where check_red {
            /// Average queue, as a share of `limit`, where drops begin.
            min: f64 = PROBABILITY.is("0.2").example("0.2");
            /// Average queue, as a share of `limit`, where `probability` is reached.
            max: f64 = PROBABILITY.is("0.6").example("0.6");
            /// Drop probability at `max`; from there to twice `max` it climbs to 1.
            probability: f64 = PROBABILITY.is("0.1").example("0.1");
            /// Weight of the newest sample in the average queue.
            weight: f64 = Kind::Number { min: 1e-6, max: 1.0 }.is("0.002").example("0.002");
            /// Packets that may be marked are marked where they would be dropped, unless the queue is
            /// full (RFC 3168); those of SCTP with `sctp.ecn`.
            ecn: bool = ECN;
        },
        /// Controlled delay (RFC 8289).
        CoDel = "codel" {
            /// Acceptable standing delay; not below the serialisation time of a packet.
            target: Duration = time(1, 10 * NS_PER_S).is("5 ms").example("\"5 ms\"");
            /// How long `target` may be exceeded: about the longest round trip.
            interval: Duration =
                time(NS_PER_MS, 100 * NS_PER_S).is("100 ms").example("\"100 ms\"");
            /// Packets that may be marked are marked where they would be dropped, unless the queue is
            /// full (RFC 3168); those of SCTP with `sctp.ecn`.
            ecn: bool = ECN;
        },
        /// Two coupled queues for L4S (RFC 9332): packets with ECT(1) or CE get short delays and early marks, all others
        /// a PI controller that marks or drops. Senders with and without L4S get similar shares.
        DualPi2 = "dualpi2" {
            /// Delay that is aimed at in the queue of all other packets; not below the serialisation time of a packet.
            target: Duration = time(NS_PER_MS, 10 * NS_PER_S).is("15 ms").example("\"15 ms\"");
            /// Longest round trip of the flows on the link. A larger value makes the controller slower.
            longest_rtt: Duration =
                time(NS_PER_MS, 100 * NS_PER_S).is("100 ms").example("\"100 ms\"");
            /// Coupling factor: the marking probability of L4S packets is this number times the square root of the
            /// probability of the others. A larger value gives flows with L4S less of the link.
            coupling: f64 = Kind::Number { min: 0.0, max: 1000.0 }.is("2.0").example("2.0");
            /// Delay of L4S packets above which they are marked.
            ramp_from: Duration = time(0, 10 * NS_PER_S).is("800 us").example("\"800 us\"");
            /// Width of the range of delays above `ramp_from` in which the marking probability rises from 0 to 1; 0 for a step.
            ramp: Duration = time(0, 10 * NS_PER_S).is("400 us").example("\"0 s\"");
            /// Share of the link that all other packets get at least while L4S packets wait.
            classic_weight: f64 = Kind::Number { min: 0.0, max: 0.99 }.is("0.0625").example("0.0625");
        },
    }
}

table! {
    /// A queue with another discipline than drop-tail.
    #[derive(Copy)]
    pub struct Queue {
        /// Capacity of the queue.
        limit: Limit => limit = Kind::OneOf(LIMIT).is("100 packets").example("\"10 BDP\"");
        also {
            /// Queue management.
            discipline: Discipline => Discipline::read;
        }
    }
}

const KINDS: Tagged = Tagged {
    tag: "discipline",
    heading: "queue = { discipline = \"?\", ... }",
    doc: Queue::ABOUT,
    default: Some("droptail"),
    before: Queue::KEYS,
    variants: Discipline::VARIANTS,
    after: [&[], &[]],
};

/// A limit alone (drop-tail), or a table with the discipline.
pub(super) const QUEUE: Kind = Kind::OneOf(&[LIMIT[0], LIMIT[1], Kind::Tagged(&KINDS)]);

/// Capacity of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Unlimited.
    Unlimited,
    /// This many packets, at least one.
    Packets(u32),
    /// This many bytes, at least one packet.
    Bytes(u64),
}

/// Reads the queue under `key`.
pub(super) fn queue(builder: &mut Builder<'_>, table: &Checked, key: &str) -> Queue {
    match table.value(key) {
        Some(Value::Table(table)) => Queue::read(builder, table),
        _ => Queue { discipline: Discipline::DropTail, limit: limit(builder, table, key) },
    }
}

impl Setting for Queue {
    fn read(_: &mut Builder<'_>, value: &Value) -> Self {
        unreachable!("{value:?} is read with the rate of its link")
    }

    fn toml(&self, kind: &Kind, scenario: &Scenario) -> Option<String> {
        if self.discipline == Discipline::DropTail {
            return self.limit.toml(kind, scenario);
        }
        let own = self.discipline.entries(scenario);
        Some(inline(KINDS.entries(self.discipline.name(), own, self.entries(scenario))))
    }
}

impl Setting for Limit {
    fn read(_: &mut Builder<'_>, value: &Value) -> Self {
        match value {
            Value::Packets(n) => Self::Packets(fitting(*n)),
            Value::Bytes(bytes) => Self::Bytes(*bytes),
            _ => Self::Unlimited,
        }
    }

    fn toml(&self, _: &Kind, _: &Scenario) -> Option<String> {
        Some(quoted(match self {
            Self::Unlimited => "unlimited".into(),
            Self::Packets(n) => format!("{n} packets"),
            Self::Bytes(bytes) => size_text(*bytes),
        }))
    }
}

fn check_red(builder: &mut Builder<'_>, entry: &Checked) {
    if matches!(entry.value("limit"), Some(Value::Choice(_))) {
        let message =
            format!("`{}.limit` = \"unlimited\" leaves RED nothing to take shares of", entry.path);
        let help = "give it a limit, for example \"100 packets\"";
        builder.wrong(entry, "limit", ProblemKind::Conflict, message, help);
    }
    let (min, max): (f64, f64) = (entry.get("min"), entry.get("max"));
    if min >= max {
        let key = if entry.place("min").is_some() { "min" } else { "max" };
        let message = format!("`{}`: `min` = {min} is not below `max` = {max}", entry.path);
        builder.wrong(
            entry,
            key,
            ProblemKind::Conflict,
            message,
            "drops begin before they are many",
        );
    }
}

/// The limit under `key`, with a bandwidth-delay product converted to bytes.
fn limit(builder: &mut Builder<'_>, table: &Checked, key: &str) -> Limit {
    let rate = builder.around.rate;
    let packet = u64::from(builder.packet);
    let bytes = match table.value(key) {
        Some(Value::Packets(n)) => {
            return Limit::Packets(fitting(*n));
        }
        Some(Value::Bytes(bytes)) => *bytes,
        Some(Value::Bdp(times)) => match builder.around.longest {
            Some(rtt) => ((rate.bytes_in(rtt) as f64 * times).round() as u64).min(LARGEST_QUEUE),
            None => {
                let message = format!(
                    "`{}.{key}` = {}: no path crosses this link, so it has no round trip",
                    table.path,
                    builder.excerpt(table, key)
                );
                let help = "name the link in the `via` of a path, or give the limit in \
                            packets or bytes";
                builder.wrong(table, key, ProblemKind::Conflict, message, help);
                return Limit::Unlimited;
            }
        },
        _ => return Limit::Unlimited,
    };
    if bytes < packet {
        let text = builder.excerpt(table, key);
        let message = format!(
            "`{}.{key}` = {text} ({}) is smaller than one packet, {}",
            table.path,
            size_text(bytes),
            size_text(packet)
        );
        let help = format!("the nearest valid value is \"{}\"", size_text(packet));
        builder.wrong(table, key, ProblemKind::OutOfRange, message, help);
    }
    Limit::Bytes(bytes)
}
