//! The kinds of access links, and the ranges of their properties.

/// A range that values are drawn from, uniformly in the logarithm.
pub type Range = [f64; 2];

/// A kind of access link. Rates, round trips and return shares are typical of subscribers.
#[derive(Debug)]
pub struct Kind {
    /// Prefix of the path's name.
    pub name: &'static str,
    /// Share of all links, in percent.
    pub weight: u64,
    /// Forward rate, Mbit/s. The mean if the rate changes.
    pub rate_mbps: Range,
    /// Round trip without queueing, ms.
    pub rtt_ms: Range,
    /// Return rate divided by the forward rate.
    pub return_share: Range,
    /// Mean jitter, ms; exponential, and packets keep their order.
    pub jitter_ms: Option<Range>,
    /// Random loss, in addition to queue overflows.
    pub loss: Loss,
    /// Changes during a run.
    pub changes: Changes,
}

/// Random loss on the forward path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Independent loss of single packets.
    Single,
    /// Bursts, which comprise a share of all packets in this range.
    Bursts(Range),
}

/// Changes during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Nothing.
    None,
    /// The rate, at a regular interval, and a short outage on some links.
    Radio,
    /// Rate and delay, at each handover, with a gap.
    Orbit,
}

/// Probability of a single loss, for all kinds that have no bursts.
pub const SINGLE_LOSS: Range = [1e-6, 1e-4];
/// Mean length of a burst, packets.
pub const BURST_PACKETS: Range = [2.0, 8.0];
/// Time in which a full queue drains at the link's rate, s, in either direction.
pub const QUEUE_S: Range = [0.04, 1.0];
/// Interval of the changes of a mobile link, s.
pub const RADIO_INTERVAL_S: Range = [0.5, 2.0];
/// Rate of a mobile link after a change, divided by its mean.
pub const RADIO_RATE: Range = [0.5, 1.5];
/// Interval of the handovers in low orbit, s.
pub const HANDOVER_S: f64 = 15.0;
/// Gap at a handover, s.
pub const HANDOVER_GAP_S: Range = [0.02, 0.2];
/// Rate after a handover, divided by the initial one.
pub const HANDOVER_RATE: Range = [0.7, 1.3];
/// Round trip after a handover, divided by the initial one; it stays in the range of the kind.
pub const HANDOVER_DELAY: Range = [0.8, 1.25];
/// Share of the mobile and low-orbit links that have an outage.
pub const OUTAGE_SHARE: f64 = 0.15;
/// Length of an outage, s.
pub const OUTAGE_S: Range = [0.3, 2.0];

/// All kinds.
pub const KINDS: [Kind; 7] = [
    Kind {
        name: "dsl",
        weight: 20,
        rate_mbps: [10.0, 100.0],
        rtt_ms: [15.0, 40.0],
        return_share: [1.0 / 20.0, 1.0 / 5.0],
        jitter_ms: None,
        loss: Loss::Single,
        changes: Changes::None,
    },
    Kind {
        name: "cable",
        weight: 15,
        rate_mbps: [50.0, 500.0],
        rtt_ms: [10.0, 30.0],
        return_share: [1.0 / 40.0, 1.0 / 10.0],
        jitter_ms: Some([0.2, 1.0]),
        loss: Loss::Single,
        changes: Changes::None,
    },
    Kind {
        name: "lte",
        weight: 20,
        rate_mbps: [10.0, 80.0],
        rtt_ms: [30.0, 70.0],
        return_share: [1.0 / 20.0, 1.0 / 5.0],
        jitter_ms: Some([0.5, 3.0]),
        loss: Loss::Bursts([1e-5, 5e-4]),
        changes: Changes::Radio,
    },
    Kind {
        name: "5g",
        weight: 15,
        rate_mbps: [50.0, 400.0],
        rtt_ms: [15.0, 40.0],
        return_share: [1.0 / 20.0, 1.0 / 5.0],
        jitter_ms: Some([0.2, 1.0]),
        loss: Loss::Single,
        changes: Changes::Radio,
    },
    Kind {
        name: "leo",
        weight: 10,
        rate_mbps: [50.0, 250.0],
        rtt_ms: [25.0, 60.0],
        return_share: [1.0 / 20.0, 1.0 / 5.0],
        jitter_ms: Some([0.5, 2.0]),
        loss: Loss::Single,
        changes: Changes::Orbit,
    },
    Kind {
        name: "geo",
        weight: 8,
        rate_mbps: [10.0, 100.0],
        rtt_ms: [580.0, 650.0],
        return_share: [1.0 / 30.0, 1.0 / 5.0],
        jitter_ms: None,
        loss: Loss::Single,
        changes: Changes::None,
    },
    Kind {
        name: "wifi",
        weight: 12,
        rate_mbps: [5.0, 200.0],
        rtt_ms: [10.0, 40.0],
        return_share: [1.0 / 10.0, 1.0 / 5.0],
        jitter_ms: Some([0.5, 2.0]),
        loss: Loss::Bursts([1e-4, 3e-3]),
        changes: Changes::None,
    },
];
