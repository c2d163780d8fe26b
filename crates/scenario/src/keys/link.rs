//! Keys that paths and links share: queue, loss, jitter, reordering, steps, outages.

use super::Fallback::{Derived, Is, Required};
use super::{
    DELAY, Exclusive, Extra, INSTANT, Key, Kind, LARGEST_QUEUE, NS_PER_MS, NS_PER_S, PROBABILITY,
    RATE, Table, Tagged, UNLIMITED, Variant, choice, time,
};
use crate::quantity::Dimension;

const LIMIT: &[Kind] = &[
    Kind::Quantity {
        dimension: Dimension::Size,
        min: 1,
        max: LARGEST_QUEUE,
        also: &[Extra::Packets, Extra::Bdp],
    },
    Kind::Choice(UNLIMITED),
];

/// A limit alone (drop-tail), or a table with the discipline.
pub(super) const QUEUE: Kind = Kind::OneOf(&[LIMIT[0], LIMIT[1], Kind::Tagged(&QUEUE_KINDS)]);
/// A probability alone (Bernoulli), or a table with the model.
pub(super) const LOSS: Kind = Kind::OneOf(&[PROBABILITY, Kind::Tagged(&LOSS_MODELS)]);
/// A largest value alone (uniform), or a table with the distribution.
pub(super) const JITTER: Kind = Kind::OneOf(&[DELAY, Kind::Tagged(&JITTER_KINDS)]);
pub(super) const REORDER_KIND: Kind = Kind::Table(&REORDER);
pub(super) const STEPS: Kind = Kind::List { of: &Kind::Table(&STEP), min: 0, max: 100_000 };
pub(super) const OUTAGES: Kind = Kind::List { of: &Kind::Table(&OUTAGE), min: 0, max: 100_000 };

const QUEUE_LIMIT: Key = Key {
    name: "limit",
    kind: Kind::OneOf(LIMIT),
    default: Is("100 packets"),
    example: "\"10 BDP\"",
    doc: "What the queue holds at most.",
};

const ECN: Key = Key {
    name: "ecn",
    kind: Kind::Bool,
    default: Is("false"),
    example: "true",
    doc: "Packets that may be marked are marked where they would be dropped, unless the queue is full \
          (RFC 3168); those of SCTP with `sctp.ecn`.",
};

const fn share(name: &'static str, default: &'static str, doc: &'static str) -> Key {
    Key { name, kind: PROBABILITY, default: Is(default), example: default, doc }
}

/// Disciplines of a queue.
pub(crate) static QUEUE_KINDS: Tagged = Tagged {
    tag: "discipline",
    doc: "A queue with another discipline than drop-tail.",
    default: Some(0),
    variants: &[
        Variant {
            choice: choice("droptail", "What comes when the queue is full is dropped."),
            table: &Table {
                title: "queue = { discipline = \"droptail\", ... }",
                doc: "",
                keys: &[QUEUE_LIMIT],
                exclusive: &[],
            },
        },
        Variant {
            choice: choice("red", "Random early detection (Floyd and Jacobson, 1993), gentle."),
            table: &Table {
                title: "queue = { discipline = \"red\", ... }",
                doc: "Needs a limit.",
                keys: &[
                    QUEUE_LIMIT,
                    share("min", "0.2", "Average queue, as a share of `limit`, where drops begin."),
                    share(
                        "max",
                        "0.6",
                        "Average queue, as a share of `limit`, where `probability` is reached.",
                    ),
                    share(
                        "probability",
                        "0.1",
                        "Drop probability at `max`; from there to twice \
                           `max` it climbs to 1.",
                    ),
                    Key {
                        name: "weight",
                        kind: Kind::Number { min: 1e-6, max: 1.0 },
                        default: Is("0.002"),
                        example: "0.002",
                        doc: "Weight of the newest sample in the average queue.",
                    },
                    ECN,
                ],
                exclusive: &[],
            },
        },
        Variant {
            choice: choice("codel", "Controlled delay (RFC 8289)."),
            table: &Table {
                title: "queue = { discipline = \"codel\", ... }",
                doc: "",
                keys: &[
                    QUEUE_LIMIT,
                    Key {
                        name: "target",
                        kind: time(1, 10 * NS_PER_S),
                        default: Is("5 ms"),
                        example: "\"5 ms\"",
                        doc: "Standing delay that is acceptable; not below the serialisation \
                              time of a packet.",
                    },
                    Key {
                        name: "interval",
                        kind: time(NS_PER_MS, 100 * NS_PER_S),
                        default: Is("100 ms"),
                        example: "\"100 ms\"",
                        doc: "How long `target` may be exceeded: about the longest round trip.",
                    },
                    ECN,
                ],
                exclusive: &[],
            },
        },
    ],
};

const fn required(name: &'static str, kind: Kind, example: &'static str, doc: &'static str) -> Key {
    Key { name, kind, default: Required, example, doc }
}

/// Loss models.
pub(crate) static LOSS_MODELS: Tagged = Tagged {
    tag: "model",
    doc: "A loss model; probabilities are per packet.",
    default: None,
    variants: &[
        Variant {
            choice: choice("bernoulli", "Each packet by itself; the same as a plain number."),
            table: &Table {
                title: "loss = { model = \"bernoulli\", ... }",
                doc: "",
                keys: &[required(
                    "rate",
                    PROBABILITY,
                    "1e-3",
                    "Probability that a packet is lost.",
                )],
                exclusive: &[],
            },
        },
        Variant {
            choice: choice(
                "gilbert-elliott",
                "A good and a bad state (Gilbert, 1960; Elliott, 1963); begins in the good one.",
            ),
            table: &Table {
                title: "loss = { model = \"gilbert-elliott\", ... }",
                doc: "One step per packet. Bursts last 1/r packets on average, and p/(p + r) of \
                      all packets fall into one.",
                keys: &[
                    required("p", PROBABILITY, "0.001", "Probability to go from good to bad."),
                    required("r", PROBABILITY, "0.1", "Probability to go from bad to good."),
                    share("good", "0.0", "Loss in the good state."),
                    share("bad", "1.0", "Loss in the bad state."),
                ],
                exclusive: &[],
            },
        },
        Variant {
            choice: choice("markov", "Any number of states; begins in the first."),
            table: &Table {
                title: "loss = { model = \"markov\", ... }",
                doc: "One step per packet.",
                keys: &[
                    required(
                        "transitions",
                        Kind::List {
                            of: &Kind::List { of: &PROBABILITY, min: 1, max: 64 },
                            min: 1,
                            max: 64,
                        },
                        "[[0.99, 0.01], [0.2, 0.8]]",
                        "Square: row i holds the probabilities to go from state i to each state, \
                         and sums to 1.",
                    ),
                    required(
                        "loss",
                        Kind::List { of: &PROBABILITY, min: 1, max: 64 },
                        "[0.0, 0.5]",
                        "Loss in each state, as many as there are rows.",
                    ),
                ],
                exclusive: &[],
            },
        },
        Variant {
            choice: choice("round", "After the first loss in a round the rest of it is lost too."),
            table: &Table {
                title: "loss = { model = \"round\", ... }",
                doc: "The correlated loss that throughput models assume. A round is a round trip of the \
                      sender that the packet belongs to.",
                keys: &[required(
                    "rate",
                    PROBABILITY,
                    "1e-3",
                    "Probability of the first loss, per packet.",
                )],
                exclusive: &[],
            },
        },
        Variant {
            choice: choice("trace", "Exactly the packets that are listed."),
            table: &Table {
                title: "loss = { model = \"trace\", ... }",
                doc: "Packets are counted from 0 in the order in which they reach the link.",
                keys: &[
                    Key {
                        name: "file",
                        kind: Kind::File,
                        default: Derived("none; or `losses`"),
                        example: "\"traces/losses.txt\"",
                        doc: "A text file with one packet number per line, ascending.",
                    },
                    Key {
                        name: "losses",
                        kind: Kind::List {
                            of: &Kind::Integer { min: 0, max: i64::MAX as u64 },
                            min: 0,
                            max: 10_000_000,
                        },
                        default: Derived("none; or `file`"),
                        example: "[100, 101, 250]",
                        doc: "The packet numbers themselves, ascending.",
                    },
                ],
                exclusive: &[Exclusive { ways: &[&["file"], &["losses"]], required: true }],
            },
        },
    ],
};

const KEEP_ORDER: Key = Key {
    name: "keep_order",
    kind: Kind::Bool,
    default: Is("true"),
    example: "false",
    doc: "Whether a packet waits for those before it, as in a first-in first-out link, or may \
          overtake them.",
};

/// Distributions of jitter.
pub(crate) static JITTER_KINDS: Tagged = Tagged {
    tag: "distribution",
    doc: "Random addition to the delay of each packet.",
    default: Some(0),
    variants: &[
        Variant {
            choice: choice("uniform", "Anything from zero to `max` alike."),
            table: &Table {
                title: "jitter = { distribution = \"uniform\", ... }",
                doc: "",
                keys: &[required("max", DELAY, "\"5 ms\"", "The most that is added."), KEEP_ORDER],
                exclusive: &[],
            },
        },
        Variant {
            choice: choice("normal", "Bell-shaped; the delay as a whole never falls below zero."),
            table: &Table {
                title: "jitter = { distribution = \"normal\", ... }",
                doc: "",
                keys: &[
                    required("mean", DELAY, "\"5 ms\"", "Mean of what is added."),
                    required("deviation", DELAY, "\"2 ms\"", "Standard deviation."),
                    KEEP_ORDER,
                ],
                exclusive: &[],
            },
        },
        Variant {
            choice: choice("exponential", "Many small additions, few large ones."),
            table: &Table {
                title: "jitter = { distribution = \"exponential\", ... }",
                doc: "",
                keys: &[required("mean", DELAY, "\"5 ms\"", "Mean of what is added."), KEEP_ORDER],
                exclusive: &[],
            },
        },
    ],
};

static REORDER: Table = Table {
    title: "reorder = { ... }",
    doc: "Packets that fall behind and are overtaken.",
    keys: &[
        required("probability", PROBABILITY, "0.01", "Probability that a packet falls behind."),
        required("delay", DELAY, "\"10 ms\"", "How much later it arrives."),
    ],
    exclusive: &[],
};

const fn change(name: &'static str, kind: Kind, example: &'static str, doc: &'static str) -> Key {
    Key { name, kind, default: Derived("as it was"), example, doc }
}

static STEP: Table = Table {
    title: "steps = [{ ... }, ...]",
    doc: "Changes while it runs, in ascending order of `at`.",
    keys: &[
        required("at", INSTANT, "\"10 s\"", "When."),
        change(
            "rate",
            RATE,
            "\"500 kbit/s\"",
            "New rate; of both directions, unless the path or link has a `rate_down` or a trace \
             of its own for the other.",
        ),
        change("rate_down", RATE, "\"1 Mbit/s\"", "New rate of the return direction."),
        change("delay", DELAY, "\"80 ms\"", "New one-way delay, of both directions."),
        change("delay_up", DELAY, "\"80 ms\"", "New one-way delay of the data direction."),
        change("delay_down", DELAY, "\"80 ms\"", "New one-way delay of the return direction."),
        change("loss", PROBABILITY, "0.02", "New probability of independent loss of data."),
        change("loss_down", PROBABILITY, "0.02", "The same for the return direction."),
    ],
    exclusive: &[Exclusive { ways: &[&["delay"], &["delay_up", "delay_down"]], required: false }],
};

static OUTAGE: Table = Table {
    title: "outages = [{ ... }, ...]",
    doc: "Times in which nothing gets through in either direction.",
    keys: &[
        required("from", INSTANT, "\"10 s\"", "When it begins."),
        required("to", INSTANT, "\"12 s\"", "When it ends; later than `from`."),
    ],
    exclusive: &[],
};
