//! Keys of `[[cross]]`, `[world]` and `[record]`, and the file as a whole.

use super::Fallback::{Derived, Empty, Is, Required};
use super::path::{LINK, PATH};
use super::scheduler::SCHEDULER;
use super::sctp::SCTP;
use super::tcp::TCP;
use super::transfer::TRANSFER;
use super::wifi::STATION_KINDS;
use super::{
    INSTANT, Key, Kind, LONGEST_DELAY, NS_PER_MS, NS_PER_US, PACKET, RATE, Table, Tagged, Variant,
    choice, time,
};
use crate::types::{Named, Side};

/// The file as a whole.
pub(crate) static ROOT: Table = Table {
    title: "The file",
    doc: "",
    keys: &[
        table("transfer", &TRANSFER),
        table("scheduler", &SCHEDULER),
        table("sctp", &SCTP),
        table("tcp", &TCP),
        list("path", &Kind::Table(&PATH), 1, 64, PATH.doc),
        list("link", &Kind::Table(&LINK), 0, 256, LINK.doc),
        list("cross", &Kind::Tagged(&CROSS_KINDS), 0, 256, CROSS_KINDS.doc),
        list("station", &Kind::Tagged(&STATION_KINDS), 0, 256, STATION_KINDS.doc),
        table("world", &WORLD),
        table("record", &RECORD),
    ],
    exclusive: &[],
};

const fn table(name: &'static str, table: &'static Table) -> Key {
    Key { name, kind: Kind::Table(table), default: Empty, example: "", doc: table.doc }
}

const fn list(
    name: &'static str,
    of: &'static Kind,
    min: usize,
    max: usize,
    doc: &'static str,
) -> Key {
    let default = if min == 0 { Empty } else { Required };
    Key { name, kind: Kind::List { of, min, max }, default, example: "", doc }
}

const CROSS_ON: Key = Key {
    name: "on",
    kind: Kind::Name,
    default: Required,
    example: "\"bottleneck\"",
    doc: "Name of the path (its own link) or shared link that it crosses.",
};
const CROSS_SIDE: Key = Key {
    name: "direction",
    kind: Kind::Choice(Side::CHOICES),
    default: Is("up"),
    example: "\"down\"",
    doc: "In which direction it runs.",
};
const CROSS_PACKET: Key = Key {
    name: "packet",
    kind: PACKET,
    default: Derived("`transfer.packet`"),
    example: "\"1000 B\"",
    doc: "Size of its packets on the wire.",
};
const CROSS_FLOWS: Key = Key {
    name: "flows",
    kind: Kind::Integer { min: 1, max: 100_000 },
    default: Is("1"),
    example: "10",
    doc: "Number of such flows, each with its own luck.",
};
const CROSS_START: Key = Key {
    name: "start",
    kind: INSTANT,
    default: Is("0 s"),
    example: "\"10 s\"",
    doc: "When it begins.",
};
const CROSS_STOP: Key = Key {
    name: "stop",
    kind: INSTANT,
    default: Derived("the end of the run"),
    example: "\"30 s\"",
    doc: "When it ends; later than `start`.",
};
const CROSS_RATE: Key = Key {
    name: "rate",
    kind: RATE,
    default: Is("1 Mbit/s"),
    example: "\"500 kbit/s\"",
    doc: "Bits per second on the wire, of each flow; the mean for `poisson`, the rate while on \
          for `on-off`.",
};
/// On-times and off-times.
const SPELL: Kind = time(NS_PER_US, LONGEST_DELAY);

/// The keys of a kind of cross traffic: those of every kind around its own.
macro_rules! cross_keys {
    ($($own:expr),* $(,)?) => {
        &[CROSS_ON, CROSS_SIDE, $($own,)* CROSS_PACKET, CROSS_FLOWS, CROSS_START, CROSS_STOP]
    };
}

/// Kinds of cross traffic.
pub(crate) static CROSS_KINDS: Tagged = Tagged {
    tag: "kind",
    doc: "Other people's traffic.",
    default: None,
    variants: &[
        Variant {
            choice: choice("cbr", "Constant bit rate: one packet after equal times."),
            table: &Table {
                title: "[[cross]] kind = \"cbr\"",
                doc: "",
                keys: cross_keys![CROSS_RATE,],
                exclusive: &[],
            },
        },
        Variant {
            choice: choice("on-off", "Constant rate while on, silence while off; both random."),
            table: &Table {
                title: "[[cross]] kind = \"on-off\"",
                doc: "",
                keys: cross_keys![
                    CROSS_RATE,
                    Key {
                        name: "on_time",
                        kind: SPELL,
                        default: Is("500 ms"),
                        example: "\"500 ms\"",
                        doc: "Mean of the exponentially distributed on-times.",
                    },
                    Key {
                        name: "off_time",
                        kind: SPELL,
                        default: Is("500 ms"),
                        example: "\"500 ms\"",
                        doc: "Mean of the exponentially distributed off-times.",
                    },
                ],
                exclusive: &[],
            },
        },
        Variant {
            choice: choice("poisson", "Packets at exponentially distributed distances."),
            table: &Table {
                title: "[[cross]] kind = \"poisson\"",
                doc: "",
                keys: cross_keys![CROSS_RATE,],
                exclusive: &[],
            },
        },
        Variant {
            choice: choice(
                "greedy",
                "A bulk transfer with additive increase and multiplicative decrease.",
            ),
            table: &Table {
                title: "[[cross]] kind = \"greedy\"",
                doc: "",
                keys: cross_keys![Key {
                    name: "rtt",
                    kind: time(NS_PER_US, LONGEST_DELAY),
                    default: Is("40 ms"),
                    example: "\"40 ms\"",
                    doc: "Its round trip without the queue of this link.",
                },],
                exclusive: &[],
            },
        },
    ],
};

static WORLD: Table = Table {
    title: "[world]",
    doc: "How many transfers run side by side.",
    keys: &[
        Key {
            name: "associations",
            kind: Kind::Integer { min: 1, max: 1_000_000 },
            default: Is("1"),
            example: "1000",
            doc: "Associations with the same settings. Each has links of its own for its paths; \
                  shared links it shares with all.",
        },
        Key {
            name: "stagger",
            kind: time(0, LONGEST_DELAY),
            default: Is("0 s"),
            example: "\"10 ms\"",
            doc: "Between the starts of two of them.",
        },
    ],
    exclusive: &[],
};

static RECORD: Table = Table {
    title: "[record]",
    doc: "What is kept of the run.",
    keys: &[
        Key {
            name: "interval",
            kind: time(NS_PER_MS, LONGEST_DELAY),
            default: Is("100 ms"),
            example: "\"10 ms\"",
            doc: "Distance of the points of the time series.",
        },
        Key {
            name: "decisions",
            kind: Kind::Bool,
            default: Is("false"),
            example: "true",
            doc: "Keep every decision of the scheduler, for `ropewalk explain`. Costs memory.",
        },
        Key {
            name: "packets",
            kind: Kind::Bool,
            default: Is("false"),
            example: "true",
            doc: "Keep every packet. Costs much memory.",
        },
    ],
    exclusive: &[],
};
