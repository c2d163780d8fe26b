//! Keys of `[[path]]` and `[[link]]`.

use super::Fallback::{Derived, Empty, Is};
use super::link::{JITTER, LOSS, OUTAGES, QUEUE, REORDER_KIND, STEPS};
use super::scheduler::DELAY_ERROR;
use super::sctp::MANY_PACKETS;
use super::wifi::WIFI;
use super::{DELAY, Exclusive, Key, Kind, LONGEST_DELAY, PACKET, PROBABILITY, RATE, Table, time};

const WAYS_OF_RATE: Exclusive = Exclusive { ways: &[&["rate"], &["trace"]], required: false };
const WAYS_OF_RATE_DOWN: Exclusive =
    Exclusive { ways: &[&["rate_down"], &["trace_down"]], required: false };

/// The keys that shared links and paths have in common, in the order of the reference, with the keys that
/// precede them, replace the delay, or follow them.
macro_rules! keys_of_a_link {
    ([$($first:expr),* $(,)?], [$($delay:expr),* $(,)?], [$($last:expr),* $(,)?] $(,)?) => {
        &[
            $($first,)*
            RATE_UP, TRACE_UP, RATE_DOWN, TRACE_DOWN,
            $($delay,)*
            DELAY_UP, DELAY_DOWN, QUEUE_UP, QUEUE_DOWN, LOSS_UP, LOSS_DOWN, JITTER_UP, JITTER_DOWN,
            REORDER, DUPLICATE, CORRUPT, STEPS_KEY, OUTAGES_KEY,
            $($last,)*
        ]
    };
}

/// A shared link.
pub(super) static LINK: Table = Table {
    title: "[[link]]",
    doc: "A link that several paths share: every path that names it in `via` sends its data \
          over it, after its own link, and its acknowledgements back over it.",
    keys: keys_of_a_link!(
        [name("\"bottleneck\"", "link1, link2, ... by position")],
        [one_way(Is("10 ms"))],
        [],
    ),
    exclusive: &[
        WAYS_OF_RATE,
        WAYS_OF_RATE_DOWN,
        Exclusive { ways: &[&["delay"], &["delay_up", "delay_down"]], required: false },
    ],
};

/// A path.
pub(super) static PATH: Table = Table {
    title: "[[path]]",
    doc: "An interface of the sender, an interface of the receiver, and what lies between. At \
          least one, at most 64; the first is the primary path.",
    keys: keys_of_a_link!(
        [name("\"lte\"", "path1, path2, ... by position")],
        [
            Key {
                name: "rtt",
                kind: time(0, 2 * LONGEST_DELAY),
                default: Is("40 ms"),
                example: "\"20 ms\"",
                doc: "Round trip of propagation alone, half each way; queueing and serialisation \
                  come on top.",
            },
            one_way(Derived("half of `rtt`")),
        ],
        [
            Key {
                name: "cost",
                kind: Kind::Integer { min: 0, max: 1_000_000 },
                default: Is("1"),
                example: "10",
                doc: "Lower is preferred by `backup`; a path with a higher cost than another is a \
                  standby for `min-rtt`.",
            },
            Key {
                name: "weight",
                kind: Kind::Number { min: 1e-6, max: 1e6 },
                default: Is("1.0"),
                example: "2.0",
                doc: "Share of the path under `weighted`.",
            },
            Key {
                name: "window_limit",
                kind: Kind::Packets { min: 1, max: MANY_PACKETS },
                default: Derived("none; `static` needs one on every path"),
                example: "\"54 packets\"",
                doc: "Limit of the congestion window under the window manager `static`.",
            },
            Key {
                name: "delay_error",
                kind: DELAY_ERROR,
                default: Derived("`scheduler.delay_error`"),
                example: "0.2",
                doc: "Relative error put on the forward delay that the scheduler sees.",
            },
            Key {
                name: "via",
                kind: Kind::List { of: &Kind::Name, min: 0, max: 64 },
                default: Empty,
                example: "[\"bottleneck\"]",
                doc: "Names of the shared links that the path crosses, in order.",
            },
            Key {
                name: "mtu",
                kind: PACKET,
                default: Derived("`transfer.packet`"),
                example: "\"1280 B\"",
                doc: "Largest packet that the path takes; packets are the smaller of this and \
                  `transfer.packet`.",
            },
            WIFI,
        ],
    ),
    exclusive: &[
        WAYS_OF_RATE,
        WAYS_OF_RATE_DOWN,
        Exclusive { ways: &[&["rtt"], &["delay"], &["delay_up", "delay_down"]], required: false },
    ],
};

const fn name(example: &'static str, default: &'static str) -> Key {
    Key {
        name: "name",
        kind: Kind::Name,
        default: Derived(default),
        example,
        doc: "Unique among paths and links; letters, digits, `-` and `_`.",
    }
}

const fn one_way(default: super::Fallback) -> Key {
    Key {
        name: "delay",
        kind: DELAY,
        default,
        example: "\"10 ms\"",
        doc: "One-way propagation delay, the same in both directions.",
    }
}

const RATE_UP: Key = Key {
    name: "rate",
    kind: RATE,
    default: Is("10 Mbit/s"),
    example: "\"2 Mbit/s\"",
    doc: "How fast packets leave, in the data direction and, unless said otherwise, in the \
          return direction.",
};
const TRACE_UP: Key = Key {
    name: "trace",
    kind: Kind::File,
    default: Derived("none; or `rate`"),
    example: "\"traces/drive.mahi\"",
    doc: "In place of `rate`: a file in the format of Mahimahi, one line per opportunity to \
          deliver 1504 B, in milliseconds; it begins again at its end.",
};
const RATE_DOWN: Key = Key {
    name: "rate_down",
    kind: RATE,
    default: Derived("`rate`, or the mean rate of `trace`"),
    example: "\"1 Mbit/s\"",
    doc: "Rate of the return direction.",
};
const TRACE_DOWN: Key = Key {
    name: "trace_down",
    kind: Kind::File,
    default: Derived("none; or `rate_down`"),
    example: "\"traces/drive.mahi\"",
    doc: "In place of `rate_down`: a trace for the return direction.",
};
const DELAY_UP: Key = Key {
    name: "delay_up",
    kind: DELAY,
    default: Derived("`delay`"),
    example: "\"300 ms\"",
    doc: "One-way delay of the data direction; together with `delay_down`.",
};
const DELAY_DOWN: Key = Key {
    name: "delay_down",
    kind: DELAY,
    default: Derived("`delay`"),
    example: "\"40 ms\"",
    doc: "One-way delay of the return direction; together with `delay_up`.",
};
const QUEUE_UP: Key = Key {
    name: "queue",
    kind: QUEUE,
    default: Is("100 packets"),
    example: "\"50 packets\"",
    doc: "What waits while the link is busy in the data direction; at least one packet. A BDP \
          is `rate` times the round trip of the path; for a shared link, of the longest path \
          over it. Longer queues lose less and delay more.",
};
const QUEUE_DOWN: Key = Key {
    name: "queue_down",
    kind: QUEUE,
    default: Is("unlimited"),
    example: "\"64 kB\"",
    doc: "The same for the return direction.",
};
const LOSS_UP: Key = Key {
    name: "loss",
    kind: LOSS,
    default: Is("0.0"),
    example: "{ model = \"bernoulli\", rate = 1e-3 }",
    doc: "Loss in the data direction, besides what the queue drops.",
};
const LOSS_DOWN: Key = Key {
    name: "loss_down",
    kind: LOSS,
    default: Is("0.0"),
    example: "0.001",
    doc: "Loss in the return direction.",
};
const JITTER_UP: Key = Key {
    name: "jitter",
    kind: JITTER,
    default: Is("0 s"),
    example: "\"5 ms\"",
    doc: "Random addition to the delay in the data direction; a plain time is the most that a \
          uniform distribution adds.",
};
const JITTER_DOWN: Key = Key {
    name: "jitter_down",
    kind: JITTER,
    default: Is("0 s"),
    example: "{ distribution = \"exponential\", mean = \"2 ms\" }",
    doc: "The same for the return direction.",
};
const REORDER: Key = Key {
    name: "reorder",
    kind: REORDER_KIND,
    default: Derived("nothing falls behind"),
    example: "{ probability = 0.01, delay = \"10 ms\" }",
    doc: "Data packets that fall behind.",
};
const DUPLICATE: Key = Key {
    name: "duplicate",
    kind: PROBABILITY,
    default: Is("0.0"),
    example: "0.001",
    doc: "Probability that a data packet arrives twice.",
};
const CORRUPT: Key = Key {
    name: "corrupt",
    kind: PROBABILITY,
    default: Is("0.0"),
    example: "0.001",
    doc: "Probability that a data packet arrives damaged and fails its checksum.",
};
const STEPS_KEY: Key = Key {
    name: "steps",
    kind: STEPS,
    default: Empty,
    example: "[{ at = \"10 s\", rate = \"500 kbit/s\" }]",
    doc: "Changes while it runs.",
};
const OUTAGES_KEY: Key = Key {
    name: "outages",
    kind: OUTAGES,
    default: Empty,
    example: "[{ from = \"10 s\", to = \"12 s\" }]",
    doc: "Times in which nothing gets through.",
};
