//! Keys of `[scheduler]`.

use super::Fallback::{Derived, Is};
use super::{Key, Kind, NS_PER_S, NS_PER_US, Table, time};
use crate::types::{
    ForwardDelay, Named, Quota, ScheduleWindows, SchedulerName, Weights, WhenBlocked,
};

pub(super) static SCHEDULER: Table = Table {
    title: "[scheduler]",
    doc: "Options of the schedulers. Each scheduler reads those that concern it, so that one \
          file can serve to compare several.",
    keys: KEYS,
    exclusive: &[],
};

/// Relative errors of delays: nine tenths too short to ten times too long.
pub(super) const DELAY_ERROR: Kind = Kind::Number { min: -0.9, max: 10.0 };

const KEYS: &[Key] = &[
    Key {
        name: "name",
        kind: Kind::Choice(SchedulerName::CHOICES),
        default: Derived("`transfer.scheduler`"),
        example: "\"daps\"",
        doc: "Which scheduler; the same as `transfer.scheduler`, of which this is the long form.",
    },
    Key {
        name: "forward_delay",
        kind: Kind::Choice(ForwardDelay::CHOICES),
        default: Is("timestamp"),
        example: "\"half-rtt\"",
        doc: "Where delay-aware schedulers take forward delays from.",
    },
    Key {
        name: "delay_error",
        kind: DELAY_ERROR,
        default: Is("0.0"),
        example: "0.1",
        doc: "Relative error put on every forward delay, for sensitivity studies: 0.1 is 10 % \
              too long. A path can have its own.",
    },
    Key {
        name: "quantum",
        kind: time(NS_PER_US, NS_PER_S),
        default: Is("1 ms"),
        example: "\"1 ms\"",
        doc: "Delays are rounded to multiples of it before their common period is taken. \
              Finer follows the delays better and makes longer schedules.",
    },
    Key {
        name: "period_cap",
        kind: Kind::Integer { min: 1, max: 1_000_000 },
        default: Is("64"),
        example: "64",
        doc: "A schedule spans at most so many times the largest delay, however large the \
              least common multiple is.",
    },
    Key {
        name: "windows",
        kind: Kind::Choice(ScheduleWindows::CHOICES),
        default: Is("frozen"),
        example: "\"smoothed\"",
        doc: "Which congestion windows a schedule is made from.",
    },
    Key {
        name: "when_blocked",
        kind: Kind::Choice(WhenBlocked::CHOICES),
        default: Is("nothing"),
        example: "\"resend-oldest\"",
        doc: "What to do when the receive window is full.",
    },
    Key {
        name: "in_slow_start",
        kind: Kind::Bool,
        default: Is("true"),
        example: "false",
        doc: "Whether delay-aware schedules are made while a path is in slow start. Windows \
              double within one schedule then, so it is soon out of date.",
    },
    Key {
        name: "quota",
        kind: Kind::Choice(Quota::CHOICES),
        default: Is("window"),
        example: "\"packet\"",
        doc: "`round-robin`: what a path gets when its turn comes.",
    },
    Key {
        name: "weights",
        kind: Kind::Choice(Weights::CHOICES),
        default: Is("configured"),
        example: "\"measured\"",
        doc: "`weighted`: where the weights come from.",
    },
    Key {
        name: "copies",
        kind: Kind::Integer { min: 1, max: 64 },
        default: Is("2"),
        example: "2",
        doc: "`redundant`: how many paths carry each packet; not more than there are paths.",
    },
];
