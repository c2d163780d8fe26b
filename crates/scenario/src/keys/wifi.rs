//! Keys of `wifi` and of `[[station]]`.

use super::Fallback::{Derived, Is};
use super::{
    Extra, INSTANT, Key, Kind, LARGEST_QUEUE, PACKET, PROBABILITY, RATE, Table, Tagged, UNLIMITED,
    Variant, choice,
};
use crate::quantity::Dimension;
use crate::types::{End, Named, Preamble, Side};

/// A queue limit without the unit BDP: the round-trip time over a contended channel is not known in advance.
const QUEUE: Kind = Kind::OneOf(&[
    Kind::Quantity {
        dimension: Dimension::Size,
        min: 1,
        max: LARGEST_QUEUE,
        also: &[Extra::Packets],
    },
    Kind::Choice(UNLIMITED),
]);

const fn rate(default: &'static str, example: &'static str, doc: &'static str) -> Key {
    Key { name: "rate", kind: RATE, default: Is(default), example, doc }
}

const RATE_B: Key =
    rate("11 Mbit/s", "\"2 Mbit/s\"", "1, 2, 5.5 or 11 Mbit/s, the same all the time.");
const RATE_G: Key = rate(
    "54 Mbit/s",
    "\"6 Mbit/s\"",
    "6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s, the same all the time.",
);
const PREAMBLE: Key = Key {
    name: "preamble",
    kind: Kind::Choice(Preamble::CHOICES),
    default: Is("long"),
    example: "\"short\"",
    doc: "What every frame begins with.",
};
const CHANNEL: Key = Key {
    name: "channel",
    kind: Kind::Integer { min: 1, max: 1_000 },
    default: Is("1"),
    example: "6",
    doc: "All stations of one channel contend, its one access point included: data with acknowledgements, path with path. \
          Different channels do not touch.",
};
const STATION_QUEUE: Key = Key {
    name: "queue",
    kind: QUEUE,
    default: Is("400 packets"),
    example: "\"100 packets\"",
    doc: "What waits in the station; the access point of a channel has the longest queue of its stations, for all of them.",
};
const FRAME_ERROR: Key = Key {
    name: "frame_error",
    kind: PROBABILITY,
    default: Is("0.0"),
    example: "0.1",
    doc: "Share of frames that arrive damaged although nobody else sends; each is sent up to seven times.",
};
const END: Key = Key {
    name: "end",
    kind: Kind::Choice(End::CHOICES),
    default: Is("sender"),
    example: "\"receiver\"",
    doc: "Which end of the path is the station; between the access point and the other end lies the path's own `rate`, \
          `delay` and `queue`.",
};

/// The wireless hop of a path.
pub(super) static WIFI_KINDS: Tagged = Tagged {
    tag: "standard",
    doc: "A hop over the air.",
    default: Some(1),
    variants: &[
        Variant {
            choice: choice("802.11b", "DSSS and CCK, up to 11 Mbit/s."),
            table: &Table {
                title: "wifi = { standard = \"802.11b\", ... }",
                doc: "",
                keys: &[RATE_B, PREAMBLE, CHANNEL, STATION_QUEUE, FRAME_ERROR, END],
                exclusive: &[],
            },
        },
        Variant {
            choice: choice("802.11g", "OFDM (ERP), up to 54 Mbit/s."),
            table: &Table {
                title: "wifi = { standard = \"802.11g\", ... }",
                doc: "",
                keys: &[RATE_G, CHANNEL, STATION_QUEUE, FRAME_ERROR, END],
                exclusive: &[],
            },
        },
    ],
};

const DIRECTION: Key = Key {
    name: "direction",
    kind: Kind::Choice(Side::CHOICES),
    default: Is("up"),
    example: "\"down\"",
    doc: "`up`: they send to the access point; `down`: it sends to them, out of its own queue.",
};
const LOAD: Key = Key {
    name: "load",
    kind: RATE,
    default: Derived("as much as the channel takes"),
    example: "\"2 Mbit/s\"",
    doc: "Mean bits per second of each, packets at exponentially distributed distances.",
};
const STATION_PACKET: Key = Key {
    name: "packet",
    kind: PACKET,
    default: Derived("`transfer.packet`"),
    example: "\"1400 B\"",
    doc: "Size of the packets without what 802.11 adds.",
};
const COUNT: Key = Key {
    name: "count",
    kind: Kind::Integer { min: 1, max: 10_000 },
    default: Is("1"),
    example: "5",
    doc: "Number of such stations, each with its own luck.",
};
const START: Key = Key {
    name: "start",
    kind: INSTANT,
    default: Is("0 s"),
    example: "\"10 s\"",
    doc: "When they begin.",
};
const STOP: Key = Key {
    name: "stop",
    kind: INSTANT,
    default: Derived("the end of the run"),
    example: "\"30 s\"",
    doc: "When they end; later than `start`.",
};

/// The keys of a station: those of the physical layer, then those of its traffic.
macro_rules! station_keys {
    ($($layer:expr),*) => {
        &[
            $($layer,)* CHANNEL, STATION_QUEUE, FRAME_ERROR, DIRECTION, LOAD, STATION_PACKET, COUNT,
            START, STOP,
        ]
    };
}

/// Background stations.
pub(super) static STATION_KINDS: Tagged = Tagged {
    tag: "standard",
    doc: "Other people's stations on a channel of 802.11.",
    default: Some(1),
    variants: &[
        Variant {
            choice: choice("802.11b", "DSSS and CCK, up to 11 Mbit/s."),
            table: &Table {
                title: "[[station]] standard = \"802.11b\"",
                doc: "",
                keys: station_keys![RATE_B, PREAMBLE],
                exclusive: &[],
            },
        },
        Variant {
            choice: choice("802.11g", "OFDM (ERP), up to 54 Mbit/s."),
            table: &Table {
                title: "[[station]] standard = \"802.11g\"",
                doc: "",
                keys: station_keys![RATE_G],
                exclusive: &[],
            },
        },
    ],
};

/// The key for the wireless hop of a path.
pub(super) const WIFI: Key = Key {
    name: "wifi",
    kind: Kind::Tagged(&WIFI_KINDS),
    default: Derived("none: a wire from end to end"),
    example: "{ standard = \"802.11g\", rate = \"54 Mbit/s\", channel = 1 }",
    doc: "A hop over the air at one end of the path.",
};
