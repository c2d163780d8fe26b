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
    /// A call, a game, DNS, ping, the beginning of a connection: sent first, on the path on which it arrives first.
    Interactive,
    /// Everything else. A bulk flow that sends little is treated as interactive.
    #[default]
    Bulk,
    /// Backups and the like: sent while nothing else waits, or 1500 bytes for each 24 kB of others.
    Background,
}

impl Class {
    /// All classes, the most urgent first.
    pub const ALL: [Self; 3] = [Self::Interactive, Self::Bulk, Self::Background];
}

/// Whether the far end restores the order of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// Packets wait for earlier ones of the flow, for a limited time. For TCP, which takes reordering for loss.
    #[default]
    Restored,
    /// Packets are delivered as they arrive, and sent so that they arrive nearly in order. For QUIC and other tunnels, whose
    /// senders take a late packet for a lost one.
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

/// An inner packet that is to be sent as a message: unordered, and given up after its lifetime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing<P> {
    /// Goes before the packet.
    pub header: Header,
    /// Urgency of the message.
    pub class: Class,
    /// What matters of the order of its flow.
    pub order: Order,
    /// Whether it is sent on two paths.
    pub twice: bool,
    /// How long it is worth sending.
    pub lifetime: Duration,
    /// The ECN field that the inner packet must have; CE if the queue has marked it.
    pub ecn: Ecn,
    /// Length of the IP packet, bytes.
    pub bytes: u32,
    /// The packet.
    pub payload: P,
}

/// What an association has queued and not yet assigned to a path, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waiting {
    /// Of all packets.
    pub all: u64,
    /// Of interactive packets, which overtake the others.
    pub interactive: u64,
}

/// Bytes of interactive packets that the association may queue beside the others.
const INTERACTIVE_ROOM: u64 = 16_000;
/// A packet that is waited for longer than this part of the longest wait was probably lost. Others come later than those after
/// them by what the scheduler's estimate of the delays is wrong.
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

    /// Passes on the state of all paths. To be called when estimates change; once in 10 ms is often enough. Before the
    /// first call a packet waits for the whole latency budget.
    pub fn set_paths(&mut self, paths: &[PathState]) {
        self.outlook = Outlook::of(&self.config, paths, self.pause);
    }

    /// How long the driver may do nothing at a time although packets wait for it, by the state of the paths. Nothing while
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

    /// Sets for how long the driver does nothing at a time although packets wait for it; zero by default. The association's
    /// queue is made longer by this time when the state of the paths is next passed on.
    pub const fn set_pause(&mut self, pause: Duration) {
        self.pause = pause;
    }

    /// Queues an inner packet.
    pub fn enqueue(&mut self, now: Time, inner: Inner<P>) {
        self.ingress.push(now, inner, &mut self.counters);
    }

    /// The next packet to send. Bulk packets follow while the queue of the association is shorter than
    /// [`Self::lookahead`]. Interactive packets overtake that queue, however long it is, so they follow while less than 16 kB
    /// of them wait.
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

    /// Takes a message that has arrived: its header and the inner packet of `bytes` bytes.
    pub fn on_message(&mut self, now: Time, header: Header, bytes: u32, payload: P) {
        let hold = self.outlook.hold;
        self.receiver.on_packet(now, (header, bytes, payload), hold, &mut self.counters.receive);
    }

    /// The next inner packet that leaves the tunnel.
    pub fn deliver(&mut self, now: Time) -> Option<P> {
        self.receiver.expire(now, self.outlook.hold, &mut self.counters.receive);
        self.receiver.pop()
    }

    /// When [`Self::deliver`] is to be called although no message has arrived.
    pub fn deadline(&self) -> Option<Time> {
        self.receiver.deadline()
    }

    /// Bytes that the association's queue needs, so that the scheduler can put each packet on the path on which it arrives
    /// in order: what quicker paths deliver before a packet that is sent now on the slowest one arrives.
    pub const fn lookahead(&self) -> u64 {
        self.outlook.lookahead
    }

    /// The association's queue is to be refilled when it is shorter than this. Less than [`Self::lookahead`], so that several
    /// packets are given to the association at once.
    pub const fn refill_below(&self) -> u64 {
        self.outlook.lookahead - self.outlook.slack / 2
    }

    /// How long a received packet waits for an earlier one of its flow, at most.
    pub const fn hold(&self) -> Duration {
        self.outlook.hold
    }

    /// Inner bytes that wait to be sent.
    pub const fn queued_bytes(&self) -> u64 {
        self.ingress.bytes()
    }

    /// What all waiting packets cost: those that are to be sent, and those that wait for earlier ones
    /// ([`crate::packet_cost`]), bytes.
    pub const fn cost(&self) -> u64 {
        self.ingress.cost() + self.receiver.cost()
    }

    /// From the next packet on, the packets to be sent cost at most so many bytes, or what they cost now, and so do those that
    /// wait for earlier ones. Beyond it, the longest queue is shortened, and the longest wait ends.
    pub fn limit_cost(&mut self, most: u64) {
        self.ingress.limit_cost(most);
        self.receiver.limit_cost(most);
    }

    /// Number of known flows: sent, received.
    pub fn flow_counts(&self) -> (usize, usize) {
        (self.ingress.flow_count(), self.receiver.flow_count())
    }

    /// Forgets the flows that were idle for `idle`, to save memory. An association that carries nothing needs no timer
    /// for this: one call when it has become idle is enough.
    pub fn release_idle(&mut self, now: Time, idle: Duration) {
        let since = now.saturating_sub(idle);
        self.ingress.release(since);
        self.receiver.release(since);
    }

    /// What was counted so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}
