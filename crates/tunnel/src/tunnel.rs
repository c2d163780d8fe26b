//! One end of a tunnel.

use ropewalk_base::{Duration, Time};

use crate::config::Config;
use crate::copies::CopyBudget;
use crate::counters::Counters;
use crate::header::Header;
use crate::ingress::Ingress;
use crate::outlook::{Outlook, PathState};
use crate::receiver::Receiver;

/// How urgent an inner packet is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Class {
    /// A call, a game, DNS, ping, the start of a connection: sent first, on the path with the earliest arrival.
    Interactive,
    /// Everything else. A bulk flow that sends little is treated as interactive.
    #[default]
    Bulk,
    /// Backups and similar traffic: sent while nothing else waits, or 1500 bytes for each 24 kB of others.
    Background,
}

impl Class {
    /// All classes, the most urgent first.
    pub const ALL: [Self; 3] = [Self::Interactive, Self::Bulk, Self::Background];
}

/// Whether the far end restores the order of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// Packets wait for earlier ones of the flow, for a limited time. For TCP, which treats reordering as loss.
    #[default]
    Restored,
    /// Packets are delivered as they arrive, and sent so that they arrive nearly in order. For QUIC and other
    /// tunnels, whose senders treat a late packet as lost.
    AsArrived,
    /// Packets are delivered as they arrive, and sent on the first path that is open. For most other UDP.
    Irrelevant,
}

/// The ECN field of the inner IP header (RFC 3168, 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECT(1).
    Ect1,
    /// ECT(0).
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// Whether a mark can replace a drop.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// An inner packet that enters the tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inner<P> {
    /// Identifies the flow: a hash of addresses, protocol and ports under a secret key.
    pub flow: u64,
    /// Its urgency.
    pub class: Class,
    /// Whether its order is restored.
    pub order: Order,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Length of the IP packet, bytes.
    pub bytes: u32,
    /// The packet.
    pub payload: P,
}

/// An inner packet to send as a message: unordered, and abandoned after its lifetime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing<P> {
    /// Precedes the packet.
    pub header: Header,
    /// Urgency of the message.
    pub class: Class,
    /// Which order its flow needs.
    pub order: Order,
    /// Whether it is sent on two paths.
    pub twice: bool,
    /// How long it should be sent and retransmitted.
    pub lifetime: Duration,
    /// The ECN field that the inner packet must have; CE if the queue has marked it.
    pub ecn: Ecn,
    /// Length of the IP packet, bytes.
    pub bytes: u32,
    /// The packet.
    pub payload: P,
}

/// Data that an association has queued and not yet assigned to a path, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waiting {
    /// Of all packets.
    pub all: u64,
    /// Of interactive packets, which overtake the others.
    pub interactive: u64,
}

/// Number of bytes of interactive packets that the association may queue in addition to the others.
const INTERACTIVE_ROOM: u64 = 16_000;
/// A packet that is waited for longer than this part of the maximum wait was probably lost. Other packets arrive out
/// of order only by the error of the scheduler's delay estimates.
const REPAIR_WAIT_SHARE: u64 = 8;

/// One end of a tunnel: queues of the packets that enter it, and order of those that leave it. `P` is a packet.
#[derive(Clone, Debug)]
pub struct Tunnel<P> {
    config: Config,
    ingress: Ingress<P>,
    receiver: Receiver<P>,
    outlook: Outlook,
    pause: Duration,
    copies: CopyBudget,
    counters: Counters,
}

impl<P> Tunnel<P> {
    /// An end without flows.
    pub fn new(config: Config) -> Self {
        Self {
            ingress: Ingress::new(&config),
            receiver: Receiver::new(config.held_bytes),
            outlook: Outlook::unknown(&config),
            pause: Duration::ZERO,
            copies: CopyBudget::new(),
            counters: Counters::default(),
            config,
        }
    }

    /// The options.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Sets the state of all paths. Call it when estimates change; once per 10 ms is sufficient. Before the first
    /// call a packet waits for the entire latency budget.
    pub fn set_paths(&mut self, paths: &[PathState]) {
        self.outlook = Outlook::of(&self.config, paths, self.pause);
    }

    /// How long the driver may pause at a time although packets wait for it, given the state of the paths. Zero while
    /// received packets wait for one that was probably lost: a pause would delay its repair.
    pub fn tolerable_pause(&self, now: Time) -> Duration {
        let is_lost = self.longest_wait(now) > self.outlook.hold / REPAIR_WAIT_SHARE;
        if is_lost { Duration::ZERO } else { self.outlook.tolerable_pause }
    }

    /// How long a received packet has waited for an earlier one of its flow.
    fn longest_wait(&self, now: Time) -> Duration {
        let left = self.receiver.deadline().map_or(self.outlook.hold, |end| end.since(now));
        self.outlook.hold.saturating_sub(left)
    }

    /// Sets how long the driver pauses at a time although packets wait for it; zero by default. The next call of
    /// [`Self::set_paths`] extends the association's queue by this time.
    pub const fn set_pause(&mut self, pause: Duration) {
        self.pause = pause;
    }

    /// Queues an inner packet.
    pub fn enqueue(&mut self, now: Time, inner: Inner<P>) {
        self.ingress.push(now, inner, &mut self.counters);
    }

    /// The next packet to send. Bulk packets follow while the queue of the association is shorter than
    /// [`Self::lookahead`]. Interactive packets overtake that queue regardless of its length, so they follow while
    /// less than 16 kB of them wait.
    pub fn next(&mut self, now: Time, waiting: Waiting) -> Option<Outgoing<P>> {
        let all = waiting.all < self.outlook.lookahead;
        if !all && waiting.interactive >= INTERACTIVE_ROOM {
            return None;
        }
        let bulk = self.outlook.bulk_codel;
        let taken = if all {
            self.ingress.pop(now, &bulk, &mut self.counters)
        } else {
            self.ingress.pop_interactive(now, &mut self.counters)
        }?;
        let size = (taken.class, taken.bytes);
        let redundancy = self.config.redundancy;
        let twice = self.copies.decide(now, redundancy, size, self.outlook.doubtful);
        let counted = self.counters.class_mut(taken.class);
        counted.sent += 1;
        counted.sent_bytes += u64::from(taken.bytes);
        counted.copied += u64::from(twice);
        Some(Outgoing {
            header: taken.header,
            class: taken.class,
            order: taken.order,
            twice,
            lifetime: self.outlook.lifetime,
            ecn: taken.ecn,
            bytes: taken.bytes,
            payload: taken.payload,
        })
    }

    /// Handles a received message: its header and the inner packet of `bytes` bytes.
    pub fn on_message(&mut self, now: Time, header: Header, bytes: u32, payload: P) {
        let hold = self.outlook.hold;
        self.receiver.on_packet(now, (header, bytes, payload), hold, &mut self.counters.receive);
    }

    /// The next inner packet that leaves the tunnel.
    pub fn deliver(&mut self, now: Time) -> Option<P> {
        self.receiver.expire(now, self.outlook.hold, &mut self.counters.receive);
        self.receiver.pop()
    }

    /// When [`Self::deliver`] must be called even if no message has arrived.
    pub fn deadline(&self) -> Option<Time> {
        self.receiver.deadline()
    }

    /// Number of bytes that the association's queue needs so that the scheduler can send each packet on the path on
    /// which it arrives in order: the data that faster paths deliver before a packet sent now on the slowest one
    /// arrives.
    pub const fn lookahead(&self) -> u64 {
        self.outlook.lookahead
    }

    /// Refill the association's queue when it is shorter than this. Less than [`Self::lookahead`], so that several
    /// packets are passed to the association at a time.
    pub const fn refill_below(&self) -> u64 {
        self.outlook.lookahead - self.outlook.slack / 2
    }

    /// Maximum time that a received packet waits for an earlier one of its flow.
    pub const fn hold(&self) -> Duration {
        self.outlook.hold
    }

    /// Inner bytes that wait to be sent.
    pub const fn queued_bytes(&self) -> u64 {
        self.ingress.bytes()
    }

    /// Memory cost of all waiting packets: those to be sent, and those that wait for earlier ones
    /// ([`crate::packet_cost`]), bytes.
    pub const fn cost(&self) -> u64 {
        self.ingress.cost() + self.receiver.cost()
    }

    /// From the next packet on, limits the memory cost of the packets to be sent, and of those that wait for earlier
    /// ones, to this number of bytes each, or to the current cost if that is higher. Beyond it, the longest queue is
    /// shortened, and the longest wait ends.
    pub fn limit_cost(&mut self, most: u64) {
        self.ingress.limit_cost(most);
        self.receiver.limit_cost(most);
    }

    /// Number of known flows: sent, received.
    pub fn flow_counts(&self) -> (usize, usize) {
        (self.ingress.flow_count(), self.receiver.flow_count())
    }

    /// Forgets the flows that were idle for `idle`, to save memory. An idle association needs no timer for this: one
    /// call when it becomes idle is enough.
    pub fn release_idle(&mut self, now: Time, idle: Duration) {
        let since = now.saturating_sub(idle);
        self.ingress.release(since);
        self.receiver.release(since);
    }

    /// The counters so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}
