//! Keys of `[sctp]`. Their defaults depend on the preset and are not listed here.

use super::Fallback::Derived;
use super::{Key, Kind, LARGEST_WINDOW, NS_PER_MS, NS_PER_S, Table, choice, size, time};
use crate::keys::Extra;
use crate::quantity::Dimension;
use crate::types::{
    Choice, CwndUpdate, Named, Recovery, Retransmission, SackCount, WindowCheck, WindowRounding,
    WindowUnit,
};

pub(super) static SCTP: Table = Table {
    title: "[sctp]",
    doc: "Details of SCTP and of concurrent multipath transfer. Whatever is left out has the \
          value of `transfer.preset`.",
    keys: KEYS,
    exclusive: &[],
};

const PRESET: super::Fallback = Derived("the preset's");
const AUTO: &[Choice] = &[choice("auto", "The rule of RFC 9260 Section 7.2.1.")];
const SSTHRESH: &[Choice] = &[
    choice("receive-buffer", "The peer's receive buffer."),
    choice("unlimited", "Slow start ends with the first loss."),
];
const WINDOW: Kind = Kind::Quantity {
    dimension: Dimension::Size,
    min: 1,
    max: LARGEST_WINDOW,
    also: &[Extra::Packets],
};
const TIMEOUT: Kind = time(NS_PER_MS, 3_600 * NS_PER_S);
const COUNT: Kind = Kind::Integer { min: 0, max: 1_000 };
pub(super) const MANY_PACKETS: u64 = 1_000_000;

const fn key(name: &'static str, kind: Kind, example: &'static str, doc: &'static str) -> Key {
    Key { name, kind, default: PRESET, example, doc }
}

const KEYS: &[Key] = &[
    key(
        "sack_every",
        Kind::Packets { min: 1, max: 1_000 },
        "1",
        "Packets per SACK; 1 acknowledges every packet. RFC 9260 Section 6.2 wants at least \
         every second.",
    ),
    key(
        "sack_delay",
        time(0, 500 * NS_PER_MS),
        "\"200 ms\"",
        "Longest time that a SACK is held back; RFC 9260 Section 6.2 allows 500 ms at most.",
    ),
    key("sack_count", Kind::Choice(SackCount::CHOICES), "\"path\"", "What `sack_every` counts."),
    key(
        "delayed_ack_for_cmt",
        Kind::Bool,
        "true",
        "A gap alone does not send a SACK at once (DAC), since gaps are normal on several paths.",
    ),
    key(
        "initial_window",
        Kind::OneOf(&[Kind::Choice(AUTO), WINDOW]),
        "\"4 packets\"",
        "Congestion window that each path begins with.",
    ),
    key(
        "initial_ssthresh",
        Kind::OneOf(&[Kind::Choice(SSTHRESH), size(1, LARGEST_WINDOW)]),
        "\"receive-buffer\"",
        "Slow-start threshold that each path begins with. Unlimited finds the rate of a path \
         sooner and overshoots more.",
    ),
    key(
        "min_ssthresh",
        Kind::Packets { min: 1, max: MANY_PACKETS },
        "\"4 packets\"",
        "Least slow-start threshold after a loss (RFC 9260 Section 7.2.3: 4).",
    ),
    key(
        "window_rounding",
        Kind::Choice(WindowRounding::CHOICES),
        "\"bytes\"",
        "What congestion windows are counted in. Whole packets send up to a packet less per round \
         trip; they are for comparing with throughput models.",
    ),
    key(
        "byte_counting_limit",
        Kind::Packets { min: 1, max: MANY_PACKETS },
        "\"1 packet\"",
        "Most that one SACK adds to the window in slow start (RFC 9260 Section 7.2.1: 1).",
    ),
    key(
        "cwnd_growth_when_full_only",
        Kind::Bool,
        "true",
        "The window grows only when it was fully used (RFC 9260 Section 7.2.1).",
    ),
    key(
        "ecn",
        Kind::Bool,
        "true",
        "Queues with `ecn = true` mark packets, and each mark reduces the window once per round trip \
         (RFC 4960 Appendix A).",
    ),
    key(
        "max_burst",
        Kind::Packets { min: 0, max: MANY_PACKETS },
        "4",
        "Packets sent at most at one event (RFC 9260 Section 6.1: 4); 0 for no limit.",
    ),
    key("rto_initial", TIMEOUT, "\"1 s\"", "Retransmission timeout before the first sample."),
    key("rto_min", TIMEOUT, "\"1 s\"", "Least retransmission timeout; at most `rto_max`."),
    key("rto_max", TIMEOUT, "\"60 s\"", "Longest retransmission timeout."),
    key(
        "recovery",
        Kind::Choice(Recovery::CHOICES),
        "\"missing-reports\"",
        "How losses are found. By time, small windows recover without waiting for a timer. With \
         `fast_retransmit_threshold` or `split_fast_retransmit` given, `missing-reports`.",
    ),
    key(
        "fast_retransmit_threshold",
        Kind::Integer { min: 1, max: 1_000 },
        "3",
        "Missing reports that make a chunk lost, where reports are counted. More forgives \
         reordering and finds losses later.",
    ),
    key(
        "split_fast_retransmit",
        Kind::Bool,
        "true",
        "Missing reports count only acknowledgements of data sent on the same path (SFR).",
    ),
    key(
        "cwnd_update",
        Kind::Choice(CwndUpdate::CHOICES),
        "\"cucv2\"",
        "When windows may grow although the cumulative TSN stands still.",
    ),
    key(
        "retransmission",
        Kind::Choice(Retransmission::CHOICES),
        "\"ssthresh\"",
        "Which path carries a retransmission.",
    ),
    key(
        "hold_data_until_confirmed",
        Kind::Bool,
        "false",
        "Send no data before a heartbeat has confirmed every path.",
    ),
    key(
        "heartbeat_interval",
        time(0, 86_400 * NS_PER_S),
        "\"30 s\"",
        "HB.interval of idle paths, on top of their timeout (RFC 9260 Section 8.3).",
    ),
    key(
        "probe_interval",
        TIMEOUT,
        "\"2 s\"",
        "A path that has failed is asked at least so often. RFC 9260 Section 8.3 asks at its doubled \
         timeout plus HB.interval, which notices the return of a path after up to 90 s.",
    ),
    key(
        "path_max_retrans",
        COUNT,
        "5",
        "Timeouts in a row after which a path is inactive (RFC 9260 Section 8.2).",
    ),
    key(
        "association_max_retrans",
        COUNT,
        "10",
        "Timeouts in a row after which the association fails (RFC 9260 Section 8.1).",
    ),
    key(
        "pf_threshold",
        COUNT,
        "0",
        "Timeouts in a row that a path may have before it counts as potentially failed \
         (RFC 7829); at most `path_max_retrans`.",
    ),
    key(
        "window_counted_in",
        Kind::Choice(WindowUnit::CHOICES),
        "\"packets\"",
        "What the receiver counts its buffer in.",
    ),
    key(
        "window_check",
        Kind::Choice(WindowCheck::CHOICES),
        "\"span\"",
        "What new data is checked against the receive window with. Only schedulers that send ahead of \
         the order, such as `daps`, tell the two apart.",
    ),
];
