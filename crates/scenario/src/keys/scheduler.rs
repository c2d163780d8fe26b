//! Keys of `[scheduler]`.

use super::Fallback::{Derived, Is};
use super::{Key, Kind, LARGEST_WINDOW, NS_PER_MS, NS_PER_S, NS_PER_US, Table, size, time};
use crate::types::{
    ForwardDelay, Named, OtiasForm, Quota, ScheduleCapacity, ScheduleWindows, SchedulerName,
    Weights, WhenBlocked,
};

pub(super) static SCHEDULER: Table = Table {
    title: "[scheduler]",
    doc: "Options of the schedulers. Each scheduler reads those that concern it, so that one \
          file can serve to compare several.",
    keys: KEYS,
    exclusive: &[],
};

/// Relative errors of delays, from -90 % to +1000 %.
pub(super) const DELAY_ERROR: Kind = Kind::Number { min: -0.9, max: 10.0 };

/// Factors of `blest`.
const LAMBDA: Kind = Kind::Number { min: 0.0, max: 100.0 };

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
        name: "capacity",
        kind: Kind::Choice(ScheduleCapacity::CHOICES),
        default: Is("window-per-round-trip"),
        example: "\"window\"",
        doc: "`daps`, `daps-lcm`: how much of its congestion window a path emits in one forward \
              delay (C_i of Sarwar et al., 2013).",
    },
    Key {
        name: "when_blocked",
        kind: Kind::Choice(WhenBlocked::CHOICES),
        default: Is("nothing"),
        example: "\"resend-oldest\"",
        doc: "`daps`, `daps-lcm`: what to do when the receive window is full.",
    },
    Key {
        name: "opportunistic",
        kind: Kind::Bool,
        default: Is("false"),
        example: "true",
        doc: "Any scheduler: while the receive window is full, the oldest unacknowledged data goes \
              again on the fast path, if that has less than a quarter of the round-trip time of the \
              path that holds it, or that path's window is at most 4 packets (Raiciu et al., \
              2012). Costs duplicates.",
    },
    Key {
        name: "penalise",
        kind: Kind::Bool,
        default: Is("false"),
        example: "true",
        doc: "Any scheduler: a slow path that keeps the receive window full loses half of its \
              congestion window, at most once per round trip of the fast path (Raiciu et al., \
              2012). The slow path then carries less for a while.",
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
    Key {
        name: "bas_with_delay",
        kind: Kind::Bool,
        default: Is("false"),
        example: "true",
        doc: "`bas`: whether the forward delay is added to the time that a path takes to send. The \
              published rule leaves it out, and so reorders on unequal paths.",
    },
    Key {
        name: "otias_form",
        kind: Kind::Choice(OtiasForm::CHOICES),
        default: Is("ceil"),
        example: "\"floor\"",
        doc: "`otias`: how the wait behind n packets is counted in round trips, with a window of w \
              packets.",
    },
    Key {
        name: "blest_lambda",
        kind: LAMBDA,
        default: Is("1.2"),
        example: "1.2",
        doc: "`blest`: factor on what the fast path is expected to send, at the beginning. Larger \
              keeps the slow path idle more often (Ferlin et al., 2016).",
    },
    Key {
        name: "blest_lambda_min",
        kind: LAMBDA,
        default: Is("1.0"),
        example: "1.0",
        doc: "`blest`: the least that the factor becomes; it falls by 0.01 per round trip without \
              blocking. Equal to the largest, it is fixed.",
    },
    Key {
        name: "blest_lambda_max",
        kind: LAMBDA,
        default: Is("1.3"),
        example: "1.3",
        doc: "`blest`: the most that the factor becomes; it rises by 0.04 per round trip with \
              blocking.",
    },
    Key {
        name: "ecf_beta",
        kind: Kind::Number { min: 0.0, max: 10.0 },
        default: Is("0.25"),
        example: "0.25",
        doc: "`ecf`: by what part the slow path must be the better one again before waiting for \
              the fast one ends. Larger changes its mind less often (Lim et al., 2017).",
    },
    Key {
        name: "stms_gain",
        kind: Kind::Number { min: 0.0, max: 1.0 },
        default: Is("0.125"),
        example: "0.125",
        doc: "`stms`: part of an observed misalignment by which the gap moves. 0 keeps the gap that \
              follows from the delays; larger follows faster and jitters more.",
    },
    Key {
        name: "linux_burst",
        kind: size(1, LARGEST_WINDOW),
        default: Is("65428 B"),
        example: "\"65428 B\"",
        doc: "`linux`: what a path gets before the next choice; at least a packet. The default is \
              the kernel's.",
    },
    Key {
        name: "lay_cushion",
        kind: Kind::Number { min: 0.0, max: 1.0 },
        default: Is("0.6"),
        example: "0",
        doc: "`lay`: by what share of the way a chunk goes nearer to the head than where it would be due, behind \
              quicker paths that often lose. 0 has the shortest median delay, 1 the shortest 99th percentile.",
    },
    Key {
        name: "latency_budget",
        kind: time(NS_PER_MS, 3_600 * NS_PER_S),
        default: Derived("none: goodput first"),
        example: "\"50 ms\"",
        doc: "`lay`: what a chunk may take from its departure to its arrival. Paths that take longer \
              are left out while another does not, and where a loss would overrun it a second copy \
              goes elsewhere.",
    },
];
