//! Counters of a link.

use core::fmt;

use ropewalk_base::Duration;

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DropCause {
    /// The queue was full.
    Full,
    /// Queue management (RED, CoDel, DualPI2) dropped the packet.
    Early,
    /// The loss model dropped the packet.
    Loss,
    /// The packet arrived damaged.
    Corruption,
    /// The link was down.
    Outage,
    /// The last transmission attempt on a radio link was not acknowledged.
    Retries,
}

impl DropCause {
    /// All causes.
    pub const ALL: [Self; 6] =
        [Self::Full, Self::Early, Self::Loss, Self::Corruption, Self::Outage, Self::Retries];

    /// Name of the cause in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Early => "early",
            Self::Loss => "loss",
            Self::Corruption => "corruption",
            Self::Outage => "outage",
            Self::Retries => "retries",
        }
    }
}

impl fmt::Display for DropCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Packets dropped, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops([u64; 6]);

impl Drops {
    /// Number of packets dropped for `cause`.
    pub const fn by(&self, cause: DropCause) -> u64 {
        self.0[cause as usize]
    }

    /// Number of packets dropped for any cause.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    #[inline]
    pub(crate) fn count(&mut self, cause: DropCause) {
        self.0[cause as usize] += 1;
    }
}

/// Counters of one link, from the start of the run until one instant.
///
/// Invariant: `offered + duplicated = queued + in_flight + delivered + dropped.total()`, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkStats {
    /// Packets offered.
    pub offered: u64,
    /// Bytes offered.
    pub offered_bytes: u64,
    /// Packets delivered, copies included.
    pub delivered: u64,
    /// Bytes delivered, copies included.
    pub delivered_bytes: u64,
    /// Copies that the link made.
    pub duplicated: u64,
    /// Packets dropped, by cause.
    pub dropped: Drops,
    /// Packets that the queue marked instead of dropping them.
    pub marked: u64,
    /// Packets waiting, without the one in transmission.
    pub queued: u64,
    /// Bytes waiting, without the packet in transmission.
    pub queued_bytes: u64,
    /// Packets in transmission or propagation.
    pub in_flight: u64,
    /// Maximum number of waiting packets.
    pub queue_max_packets: u64,
    /// Maximum number of waiting bytes.
    pub queue_max_bytes: u64,
    /// Time average of waiting packets.
    pub queue_mean_packets: f64,
    /// Time average of waiting bytes.
    pub queue_mean_bytes: f64,
    /// Bytes of complete transmissions, including packets that were lost later.
    pub sent_bytes: u64,
    /// Time spent in transmission. On a trace-driven link, whose opportunities take no time, only the waiting
    /// time of packets that need several opportunities.
    pub busy: Duration,
    /// Bytes that could have been sent; `None` if unlimited.
    pub capacity_bytes: Option<u64>,
}

impl LinkStats {
    /// Share of the capacity that transmissions used; 0 if the capacity is zero or unlimited.
    pub fn utilisation(&self) -> f64 {
        match self.capacity_bytes {
            Some(capacity) if capacity > 0 => self.sent_bytes as f64 / capacity as f64,
            _ => 0.0,
        }
    }
}
