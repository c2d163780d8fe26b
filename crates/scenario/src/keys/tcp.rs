//! Keys of `[tcp]`. Their defaults depend on the preset and are not listed here.

use super::Fallback::Derived;
use super::{Extra, Key, Kind, LARGEST_WINDOW, NS_PER_MS, NS_PER_S, Table, choice, size, time};
use crate::quantity::Dimension;
use crate::types::{Choice, Named, Reinjection, Reordering, RtoFormula, SubflowAck};

pub(super) static TCP: Table = Table {
    title: "[tcp]",
    doc: "Details of TCP and Multipath TCP. Whatever is left out has the value of \
          `transfer.preset`.",
    keys: KEYS,
    exclusive: &[],
};

const PRESET: super::Fallback = Derived("the preset's");
const AUTO: &[Choice] = &[choice("auto", "The rule of RFC 6928: ten segments.")];
const WINDOW: Kind = Kind::Quantity {
    dimension: Dimension::Size,
    min: 1,
    max: LARGEST_WINDOW,
    also: &[Extra::Packets],
};
const TIMEOUT: Kind = time(NS_PER_MS, 3_600 * NS_PER_S);

const fn key(name: &'static str, kind: Kind, example: &'static str, doc: &'static str) -> Key {
    Key { name, kind, default: PRESET, example, doc }
}

const KEYS: &[Key] = &[
    key(
        "ack_every",
        Kind::Packets { min: 1, max: 1_000 },
        "1",
        "Segments per acknowledgement; 1 acknowledges each. RFC 9293 Section 3.8.6.3 wants at \
         least every second.",
    ),
    key(
        "ack_delay",
        time(0, 500 * NS_PER_MS),
        "\"40 ms\"",
        "Longest time that an acknowledgement is held back; RFC 9293 allows 500 ms at most.",
    ),
    key(
        "subflow_ack",
        Kind::Choice(SubflowAck::CHOICES),
        "\"independent\"",
        "What a subflow's acknowledgement covers.",
    ),
    key(
        "timestamps",
        Kind::Bool,
        "true",
        "The timestamps option (RFC 7323): 12 B a segment; forward delays are measured by it.",
    ),
    key(
        "sack",
        Kind::Bool,
        "true",
        "Selective acknowledgements (RFC 2018). Without them each loss of a window takes a round \
         trip (RFC 6582).",
    ),
    key(
        "recovery",
        Kind::Choice(Reordering::CHOICES),
        "\"rack-tlp\"",
        "What is done so as not to take reordering for loss.",
    ),
    key(
        "duplicate_threshold",
        Kind::Integer { min: 1, max: 1_000 },
        "3",
        "Duplicate or selective acknowledgements that make a loss, where they are counted.",
    ),
    key(
        "reinjection",
        Kind::Choice(Reinjection::CHOICES),
        "\"on-timeout\"",
        "When data that a subflow has sent is given to another one as well.",
    ),
    key(
        "initial_window",
        Kind::OneOf(&[Kind::Choice(AUTO), WINDOW]),
        "\"10 packets\"",
        "Congestion window that each subflow begins with; a packet is a segment's payload.",
    ),
    key(
        "initial_ssthresh",
        size(1, LARGEST_WINDOW),
        "\"65535 B\"",
        "Slow-start threshold that each subflow begins with; none: slow start ends with the first \
         loss.",
    ),
    key("rto_initial", TIMEOUT, "\"1 s\"", "Retransmission timeout before the first sample."),
    key(
        "rto_formula",
        Kind::Choice(RtoFormula::CHOICES),
        "\"rfc6298\"",
        "How the retransmission timeout follows from the smoothed round trip and its deviation.",
    ),
    key("rto_min", TIMEOUT, "\"200 ms\"", "Least retransmission timeout; at most `rto_max`."),
    key("rto_max", TIMEOUT, "\"60 s\"", "Longest retransmission timeout."),
    key(
        "probe_interval",
        TIMEOUT,
        "\"2 s\"",
        "A subflow that has failed is tried again at least so often.",
    ),
    Key {
        name: "ack_burst_loss",
        kind: Kind::Number { min: 0.0, max: 1.0 },
        default: Derived("0"),
        example: "0.03",
        doc: "Preset `chihani2011` only: chance of an acknowledgement to begin a burst, of about a \
              window, that the sender throws away.",
    },
    Key {
        name: "ack_burst_loss_max",
        kind: Kind::Number { min: 0.0, max: 1.0 },
        default: Derived("0"),
        example: "0.061",
        doc: "Preset `chihani2011` only: each subflow draws its chance of such a burst when the session \
              begins, evenly from 0 to this. Not together with `ack_burst_loss`.",
    },
    Key {
        name: "data_waits",
        kind: Kind::Bool,
        default: Derived("`false`"),
        example: "true",
        doc: "Preset `chihani2011` only: data waits until all subflows are open. The model's programs \
              begin to write one second after the connection is established.",
    },
];
