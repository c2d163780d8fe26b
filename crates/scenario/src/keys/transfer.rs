//! Keys of `[transfer]`.

use super::Fallback::{Derived, Is};
use super::{
    Extra, Key, Kind, LARGEST_WINDOW, LONGEST_RUN, PACKET, RATE, Table, choice, size, time,
};
use crate::quantity::Dimension;
use crate::types::{Choice, Congestion, Named, Preset, Protocol, SchedulerName, WindowManager};

pub(super) static TRANSFER: Table = Table {
    title: "[transfer]",
    doc: "What is sent, how, and for how long.",
    keys: KEYS,
    exclusive: &[],
};

const BUFFER: Kind = Kind::Quantity {
    dimension: Dimension::Size,
    min: 1,
    max: LARGEST_WINDOW,
    also: &[Extra::Packets],
};

const BULK: &[Choice] = &[choice("bulk", "There is always more to send.")];

static STEADY: Table = Table {
    title: "application = { ... }",
    doc: "Messages at a constant rate instead of bulk data.",
    keys: &[
        Key {
            name: "rate",
            kind: RATE,
            default: Is("1 Mbit/s"),
            example: "\"2 Mbit/s\"",
            doc: "User data that the application hands over per second.",
        },
        Key {
            name: "message",
            kind: size(1, 1_000_000_000),
            default: Is("1000 B"),
            example: "\"1000 B\"",
            doc: "Size of each message; rate and size together give the distance of messages.",
        },
    ],
    exclusive: &[],
};

const KEYS: &[Key] = &[
    Key {
        name: "protocol",
        kind: Kind::Choice(Protocol::CHOICES),
        default: Is("cmt-sctp"),
        example: "\"cmt-sctp\"",
        doc: "The transport protocol.",
    },
    Key {
        name: "duration",
        kind: time(1, LONGEST_RUN),
        default: Derived("60 s; 3600 s if `bytes` is given"),
        example: "\"100 s\"",
        doc: "How long the run lasts. With `bytes` it is the limit after which an unfinished \
              transfer is given up.",
    },
    Key {
        name: "bytes",
        kind: size(1, 1_000_000_000_000_000),
        default: Derived("no end but `duration`"),
        example: "\"20 MB\"",
        doc: "Ends the run when so much user data has been delivered in order, to each \
              association.",
    },
    Key {
        name: "warmup",
        kind: time(0, LONGEST_RUN),
        default: Is("0 s"),
        example: "\"20 s\"",
        doc: "Left out of every figure; shorter than `duration`. Twenty of the longest round \
              trips are enough to see a steady state.",
    },
    Key {
        name: "seed",
        kind: Kind::Integer { min: 0, max: i64::MAX as u64 },
        default: Is("1"),
        example: "7",
        doc: "Root of all randomness. The same file with the same seed gives the same bytes.",
    },
    Key {
        name: "scheduler",
        kind: Kind::Choice(SchedulerName::CHOICES),
        default: Is("lay"),
        example: "\"daps\"",
        doc: "Which scheduler assigns data to paths. Short for `scheduler.name`; give one of \
              the two.",
    },
    Key {
        name: "receive_buffer",
        kind: BUFFER,
        default: Is("128 KiB"),
        example: "\"45 kB\"",
        doc: "Shared by all paths, at least one packet. Below the sum of the rates times the \
              longest round trip a blind scheduler is held up by the slow path.",
    },
    Key {
        name: "packet",
        kind: PACKET,
        default: Is("1500 B"),
        example: "\"1500 B\"",
        doc: "A full packet on the wire, IP and transport headers included.",
    },
    Key {
        name: "preset",
        kind: Kind::Choice(Preset::CHOICES),
        default: Derived("rfc9260 for SCTP, rfc8684 for TCP"),
        example: "\"paper-2013\"",
        doc: "Where everything that `[sctp]` or `[tcp]` leaves open comes from.",
    },
    Key {
        name: "guard",
        kind: Kind::Bool,
        default: Derived("true; false under the presets `paper-2013` and `chihani2011`"),
        example: "true",
        doc: "The receive-window guard, which keeps a bundle from falling below its best path: no \
              path holds more of the shared window than fills it, is given data that it would \
              deliver too late, or is used if its losses cost the others more than it carries.",
    },
    Key {
        name: "congestion",
        kind: Kind::Choice(Congestion::CHOICES),
        default: Derived("rfc9260 for SCTP, newreno for TCP"),
        example: "\"lia\"",
        doc: "How congestion windows grow and shrink. Where paths share a bottleneck, uncoupled \
              algorithms take a flow's share for each path; coupled ones take one for all. Under \
              SCTP any but `rfc9260` starts with TCP's initial window, floor and byte counting, unless \
              `[sctp]` says otherwise.",
    },
    Key {
        name: "fast_convergence",
        kind: Kind::Bool,
        default: Is("true"),
        example: "false",
        doc: "`cubic`: whether a flow that loses sooner than the last time leaves room to others (RFC 9438, \
              Section 4.7). It costs a flow alone some throughput where losses come at random.",
    },
    Key {
        name: "window_manager",
        kind: Kind::Choice(WindowManager::CHOICES),
        default: Is("none"),
        example: "\"static\"",
        doc: "How the receive buffer is shared between congestion windows. `ropewalk tune` finds \
              the limits for `static`.",
    },
    Key {
        name: "application",
        kind: Kind::OneOf(&[Kind::Choice(BULK), Kind::Table(&STEADY)]),
        default: Is("bulk"),
        example: "{ rate = \"2 Mbit/s\", message = \"1000 B\" }",
        doc: "Where the data comes from.",
    },
    Key {
        name: "streams",
        kind: Kind::Integer { min: 1, max: 65_535 },
        default: Is("1"),
        example: "4",
        doc: "Streams of the association; messages take them in turn.",
    },
    Key {
        name: "message",
        kind: size(1, 1_000_000_000),
        default: Derived("one full chunk"),
        example: "\"4 kB\"",
        doc: "Size of the messages of a bulk transfer. One larger than a chunk is fragmented.",
    },
    Key {
        name: "unordered",
        kind: Kind::Bool,
        default: Is("false"),
        example: "true",
        doc: "Deliver messages as they come instead of in order.",
    },
];
