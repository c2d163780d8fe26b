//! Counts of carried, dropped and refused packets of a tunnel.

use std::sync::atomic::{AtomicU64, Ordering};

use ropewalk_tunnel::ClassCounters;

use super::packet::Malformed;
use crate::observe::{Refused, TunnelFigures};

/// Why an inner packet was not carried or not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The packet is malformed.
    Malformed(Malformed),
    /// The source is not an address of the client that sent the packet.
    ForeignSource,
    /// No client in the tunnel has the destination address.
    NoSuchDestination,
    /// The destination is another client, which the hub does not permit.
    ClientToClient,
    /// The destination is not in the public Internet, which the hub does not permit.
    Private,
    /// The packet does not fit into the tunnel; its sender was notified.
    TooBig,
    /// The queue was full.
    QueueFull,
    /// The packets of all clients together have reached the memory limit.
    Memory,
    /// The device did not accept the packet.
    Device,
    /// The queue of its flow had delayed packets for too long (CoDel).
    QueueDelay,
    /// The queues of all flows together were full.
    QueueLength,
    /// The client has sent or received more than its rate permits.
    Rate,
    /// The client's volume of this month is used up.
    Quota,
    /// The packet belongs to the tunnel's own association, which the tunnel must not carry.
    Loop,
    /// Not a packet, but a message that is invalid at this time.
    Message,
}

impl Refusal {
    /// Names of all reasons, in the order of their numbers.
    pub const NAMES: [&'static str; 20] = [
        "version",
        "header",
        "length",
        "source",
        "destination",
        "ttl",
        "foreign source",
        "no such destination",
        "client to client",
        "too big",
        "queue full",
        "device",
        "queue delay",
        "queue length",
        "client rate",
        "client quota",
        "loop",
        "message",
        "memory",
        "private",
    ];

    fn index(self) -> usize {
        match self {
            Self::Malformed(malformed) => {
                Self::NAMES.iter().position(|name| *name == malformed.name()).unwrap_or(0)
            }
            Self::ForeignSource => 6,
            Self::NoSuchDestination => 7,
            Self::ClientToClient => 8,
            Self::TooBig => 9,
            Self::QueueFull => 10,
            Self::Device => 11,
            Self::QueueDelay => 12,
            Self::QueueLength => 13,
            Self::Rate => 14,
            Self::Quota => 15,
            Self::Loop => 16,
            Self::Message => 17,
            Self::Memory => 18,
            Self::Private => 19,
        }
    }
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// Counters that several tasks share.
#[derive(Debug, Default)]
pub struct Counters {
    sent: [AtomicU64; 2],
    received: [AtomicU64; 2],
    refused: [AtomicU64; Refusal::NAMES.len()],
    marked: AtomicU64,
    copied: AtomicU64,
    duplicates: AtomicU64,
    late: AtomicU64,
    clients: AtomicU64,
}

impl Counters {
    /// Counts a packet of `bytes` that was passed to the paths.
    pub fn on_sent(&self, bytes: usize) {
        add(&self.sent, bytes);
    }

    /// Counts a packet of `bytes` from the peer that was delivered.
    pub fn on_received(&self, bytes: usize) {
        add(&self.received, bytes);
    }

    /// Counts a packet that was not carried or not delivered.
    pub fn on_refused(&self, why: Refusal) {
        self.refused[why.index()].fetch_add(1, Ordering::Relaxed);
    }

    /// Adds what a lane has counted between two times.
    pub(super) fn add_lane(&self, before: &LaneTotals, now: &LaneTotals) {
        let add = |counter: &AtomicU64, before: u64, now: u64| {
            counter.fetch_add(now.saturating_sub(before), Ordering::Relaxed);
        };
        let delay = &self.refused[Refusal::QueueDelay.index()];
        add(delay, before.dropped_by_delay, now.dropped_by_delay);
        let length = &self.refused[Refusal::QueueLength.index()];
        add(length, before.dropped_by_limit, now.dropped_by_limit);
        add(&self.marked, before.marked, now.marked);
        add(&self.copied, before.copied, now.copied);
        add(&self.duplicates, before.duplicates, now.duplicates);
        add(&self.late, before.late, now.late);
    }

    /// Sets the number of connected clients of a hub; for a client, 1 while it is connected.
    pub fn set_clients(&self, count: usize) {
        self.clients.store(count as u64, Ordering::Relaxed);
    }

    /// The figures now.
    pub fn figures(&self) -> TunnelFigures {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counted = |(name, counter): (&&str, &AtomicU64)| (read(counter), (*name).to_owned());
        let refused = Refusal::NAMES.iter().zip(&self.refused).map(counted);
        TunnelFigures {
            interface: String::new(),
            addresses: Vec::new(),
            clients: read(&self.clients),
            sent_packets: read(&self.sent[0]),
            sent_bytes: read(&self.sent[1]),
            received_packets: read(&self.received[0]),
            received_bytes: read(&self.received[1]),
            marked_packets: read(&self.marked),
            copied_packets: read(&self.copied),
            duplicate_packets: read(&self.duplicates),
            late_packets: read(&self.late),
            refused: refused.map(|(packets, reason)| Refused { reason, packets }).collect(),
            volumes: Vec::new(),
            caps: Vec::new(),
        }
    }
}

/// The counters of a lane's queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LaneTotals {
    dropped_by_delay: u64,
    dropped_by_limit: u64,
    marked: u64,
    copied: u64,
    duplicates: u64,
    late: u64,
}

impl LaneTotals {
    pub(super) fn of(counters: &ropewalk_tunnel::Counters) -> Self {
        let sum = |of: fn(&ClassCounters) -> u64| counters.classes.iter().map(of).sum();
        Self {
            dropped_by_delay: sum(|class| class.dropped_by_delay),
            dropped_by_limit: sum(|class| class.dropped_by_limit),
            marked: sum(|class| class.marked),
            copied: sum(|class| class.copied),
            duplicates: counters.receive.duplicates,
            late: counters.receive.late,
        }
    }
}

fn add(counters: &[AtomicU64; 2], bytes: usize) {
    counters[0].fetch_add(1, Ordering::Relaxed);
    counters[1].fetch_add(bytes as u64, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_under_its_own_name() {
        let counters = Counters::default();
        let malformed = [
            Malformed::Version,
            Malformed::Header,
            Malformed::Length,
            Malformed::Source,
            Malformed::Destination,
            Malformed::TimeToLive,
        ];
        malformed.into_iter().for_each(|why| counters.on_refused(why.into()));
        for why in [
            Refusal::ForeignSource,
            Refusal::NoSuchDestination,
            Refusal::ClientToClient,
            Refusal::TooBig,
            Refusal::QueueFull,
            Refusal::Device,
            Refusal::QueueDelay,
            Refusal::QueueLength,
            Refusal::Rate,
            Refusal::Quota,
            Refusal::Loop,
            Refusal::Message,
            Refusal::Memory,
            Refusal::Private,
        ] {
            counters.on_refused(why);
        }
        assert!(counters.figures().refused.iter().all(|refused| refused.packets == 1));
    }
}
