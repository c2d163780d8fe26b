//! One direction of a link: shaper, queue, wire.
//!
//! A queue that decides on arrival (drop-tail, RED) lets the link compute transmission and arrival times
//! immediately; the arrival is then the only event per packet. A queue that decides just before transmission
//! (CoDel, DualPI2) costs a second event.

mod config;
mod in_flight;
mod jitter;
mod loss;
mod outage;
mod queue;
mod shaper;
mod stats;
mod wire;

use ropewalk_base::{Ecn, Seed, Time};

pub use config::{ConfigError, LinkConfig, LossPlace, Reordering};
pub use jitter::Jitter;
pub use loss::{Bernoulli, GilbertElliott, LossError, LossModel, LossTrace, Markov, Round};
pub use outage::{Outage, Outages, Span};
pub use queue::{CoDel, DualPi2, Limit, QueueModel, Red};
pub use shaper::RateModel;
pub use stats::{DropCause, Drops, LinkStats};

use crate::packet::Packet;
use in_flight::Fate;
use queue::backlog::Backlog;
use queue::managed::ManagedQueue;
use queue::red::{RedQueue, Verdict};
use shaper::Shaper;
use wire::Wire;

/// Result of offering a packet to a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// The packet is queued or in flight; it can still be lost.
    Admitted,
    /// The packet was dropped.
    Dropped(DropCause),
}

/// One direction of a link. The times of successive calls must not decrease.
///
/// `repr` keeps the order of the fields: first those that the arrival of a packet uses, then those of its
/// departure.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Link<P> {
    wire: Wire<P>,
    discipline: Discipline<P>,
    shaper: Shaper,
    /// Pending transmissions with known times, and totals.
    backlog: Backlog,
    counters: Counters,
}

/// The time at which the queue decides.
#[derive(Clone, Debug)]
enum Discipline<P> {
    DropTail(Limit),
    Red(Box<RedQueue>),
    Managed(Box<ManagedQueue<P>>),
}

/// `repr` keeps the order of the fields: the last few are rarely used.
#[derive(Clone, Debug, Default)]
#[repr(C)]
struct Counters {
    delivered: u64,
    delivered_bytes: u64,
    offered: u64,
    offered_bytes: u64,
    queue_max_packets: u64,
    queue_max_bytes: u64,
    duplicated: u64,
    marked: u64,
    dropped: Drops,
}

impl<P: Clone> Link<P> {
    /// A link that draws its randomness from the children of `seed`.
    ///
    /// # Errors
    /// If a value of `config` is invalid.
    pub fn new(config: &LinkConfig, seed: Seed) -> Result<Self, ConfigError> {
        config.check()?;
        let discipline = match config.queue {
            QueueModel::DropTail(limit) => Discipline::DropTail(limit),
            QueueModel::Red(red) => {
                Discipline::Red(Box::new(RedQueue::new(red, seed.child("red").rng())))
            }
            QueueModel::CoDel(codel) => Discipline::Managed(Box::new(ManagedQueue::codel(codel))),
            QueueModel::DualPi2(settings) => {
                Discipline::Managed(Box::new(ManagedQueue::dualpi2(settings)))
            }
        };
        Ok(Self {
            shaper: Shaper::new(&config.rate, config.outages.holds()),
            discipline,
            backlog: Backlog::default(),
            wire: Wire::new(config, seed),
            counters: Counters::default(),
        })
    }

    /// Offers a packet.
    #[inline]
    pub fn offer(&mut self, now: Time, packet: Packet<P>) -> Admission {
        self.counters.offered += 1;
        self.counters.offered_bytes += u64::from(packet.size);
        let admission = match self.wire.refuses(now, packet.flow, packet.round) {
            Some(cause) => Admission::Dropped(cause),
            None => self.enqueue(now, packet),
        };
        if let Admission::Dropped(cause) = admission {
            self.counters.dropped.count(cause);
        }
        self.assert_conservation();
        admission
    }

    /// Time of the link's next event, if any.
    #[inline]
    pub fn next_wake(&self) -> Option<Time> {
        let next = self.next_event();
        (next < Time::FAR_FUTURE).then_some(next)
    }

    /// As [`Self::next_wake`], with [`Time::FAR_FUTURE`] for never.
    #[inline]
    pub(crate) fn next_event(&self) -> Time {
        let next = self.wire.in_flight.next();
        match &self.discipline {
            Discipline::Managed(queue) => next.min(dequeue_time(queue, &self.shaper)),
            Discipline::DropTail(_) | Discipline::Red(_) => next,
        }
    }

    /// Handles everything that is due at `now`. Appends packets that have arrived to `out`, in
    /// order.
    pub fn wake(&mut self, now: Time, out: &mut Vec<Packet<P>>) {
        while let Some(packet) = self.take(now) {
            out.push(packet);
        }
    }

    /// Handles what is due at `now` until a packet arrives, and returns it. `None` if no further packet has
    /// arrived by `now`.
    #[inline]
    pub fn take(&mut self, now: Time) -> Option<Packet<P>> {
        if let Discipline::Managed(_) = &self.discipline {
            self.dequeue_due(now);
        }
        while let Some(in_flight_packet) = self.wire.in_flight.pop(now) {
            match in_flight_packet.fate {
                Fate::Delivered => {
                    self.counters.delivered += 1;
                    self.counters.delivered_bytes += u64::from(in_flight_packet.packet.size);
                    self.assert_conservation();
                    return Some(in_flight_packet.packet);
                }
                Fate::Dropped(cause) => self.counters.dropped.count(cause),
            }
        }
        self.assert_conservation();
        None
    }

    // Forced inlining: each call in between would copy the packet.
    #[inline(always)]
    fn enqueue(&mut self, now: Time, packet: Packet<P>) -> Admission {
        self.backlog.advance(now);
        let size = packet.size;
        let verdict = match &mut self.discipline {
            Discipline::DropTail(limit) => {
                let room = limit.admits(self.backlog.packets(), self.backlog.bytes(), size)
                    || self.shaper.next_start(now) <= now;
                if room { Verdict::Admit } else { Verdict::Full }
            }
            Discipline::Red(red) => {
                let idle_since = self.backlog.idle_since(now);
                red.judge(now, idle_since, &self.backlog, size, packet.ecn.may_be_marked())
            }
            Discipline::Managed(_) => return self.enqueue_managed(now, packet),
        };
        match verdict {
            Verdict::Admit => self.transmit(now, packet),
            Verdict::Mark => {
                self.counters.marked += 1;
                self.transmit(now, Packet { ecn: Ecn::Ce, ..packet });
            }
            Verdict::Full => return Admission::Dropped(DropCause::Full),
            Verdict::Early => return Admission::Dropped(DropCause::Early),
        }
        self.note_queue(self.backlog.packets(), self.backlog.bytes());
        Admission::Admitted
    }

    /// Computes the packet's transmission and puts it on the wire.
    #[inline(always)]
    fn transmit(&mut self, now: Time, packet: Packet<P>) {
        let service = self.shaper.serve(now, packet.size);
        self.backlog.push(now, service, packet.size);
        let copies = self.wire.send(service, packet);
        if copies > 0 {
            self.counters.duplicated += copies;
        }
    }

    #[inline(never)]
    fn enqueue_managed(&mut self, now: Time, packet: Packet<P>) -> Admission {
        self.dequeue_due(now);
        let Discipline::Managed(queue) = &mut self.discipline else {
            unreachable!("asked for a managed queue")
        };
        let idle = queue.packets() == 0 && self.shaper.next_start(now) <= now;
        if !idle && !queue.has_room(packet.size) {
            return Admission::Dropped(DropCause::Full);
        }
        queue.push(now, packet);
        self.dequeue_due(now);
        if let Discipline::Managed(queue) = &self.discipline {
            let (packets, bytes) = (queue.packets(), queue.bytes());
            self.note_queue(packets, bytes);
        }
        Admission::Admitted
    }

    /// Takes packets out of the managed queue while the transmitter is free at `now`.
    #[inline(never)]
    fn dequeue_due(&mut self, now: Time) {
        while let Discipline::Managed(queue) = &mut self.discipline {
            let at = dequeue_time(queue, &self.shaper);
            if at > now {
                return;
            }
            let out = queue.pop(at);
            for _ in 0..out.dropped {
                self.counters.dropped.count(DropCause::Early);
            }
            self.counters.marked += u64::from(out.marked);
            if let Some(packet) = out.packet {
                self.transmit(at, packet);
            }
        }
    }

    /// The packets on this link that have not been dropped, in no particular order.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet<P>> {
        let queue = match &self.discipline {
            Discipline::Managed(queue) => Some(queue.iter()),
            Discipline::DropTail(_) | Discipline::Red(_) => None,
        };
        let arriving = self.wire.in_flight.iter().filter(|on_wire| on_wire.fate == Fate::Delivered);
        queue.into_iter().flatten().chain(arriving.map(|on_wire| &on_wire.packet))
    }

    #[inline]
    fn note_queue(&mut self, packets: usize, bytes: u64) {
        let counters = &mut self.counters;
        counters.queue_max_packets = counters.queue_max_packets.max(packets as u64);
        counters.queue_max_bytes = counters.queue_max_bytes.max(bytes);
    }

    /// The counters at `now`, which must not be before the time of an earlier call.
    pub fn stats(&self, now: Time) -> LinkStats {
        let c = &self.counters;
        let snapshot = self.backlog.snapshot(now);
        let (held, held_bytes, waited) = match &self.discipline {
            Discipline::Managed(queue) => {
                (queue.packets() as u64, queue.bytes(), queue.waited(now))
            }
            Discipline::DropTail(_) | Discipline::Red(_) => (0, 0, (0, 0)),
        };
        let elapsed = (now.as_nanos() as f64).max(1.0);
        LinkStats {
            offered: c.offered,
            offered_bytes: c.offered_bytes,
            delivered: c.delivered,
            delivered_bytes: c.delivered_bytes,
            duplicated: c.duplicated,
            dropped: c.dropped,
            marked: c.marked,
            queued: held + snapshot.waiting,
            queued_bytes: held_bytes + snapshot.waiting_bytes,
            in_flight: self.wire.in_flight.len() as u64 - snapshot.waiting,
            queue_max_packets: c.queue_max_packets,
            queue_max_bytes: c.queue_max_bytes,
            queue_mean_packets: (waited.0 + snapshot.wait_nanos) as f64 / elapsed,
            queue_mean_bytes: (waited.1 + snapshot.wait_byte_nanos) as f64 / elapsed,
            sent_bytes: snapshot.sent_bytes,
            busy: snapshot.busy,
            capacity_bytes: self.shaper.capacity_bytes(now),
        }
    }

    /// Every packet that was offered or copied is queued, in flight, delivered or dropped.
    #[inline]
    fn assert_conservation(&self) {
        debug_assert_eq!(
            self.counters.offered + self.counters.duplicated,
            self.held() as u64 + self.counters.delivered + self.counters.dropped.total(),
            "packets appeared or vanished: {:?}",
            self.counters
        );
    }

    fn held(&self) -> usize {
        let queued = match &self.discipline {
            Discipline::Managed(queue) => queue.packets(),
            Discipline::DropTail(_) | Discipline::Red(_) => 0,
        };
        queued + self.wire.in_flight.len()
    }
}

/// Earliest transmission time of the head of a managed queue; [`Time::FAR_FUTURE`] without one.
fn dequeue_time<P>(queue: &ManagedQueue<P>, shaper: &Shaper) -> Time {
    queue.head_since().map_or(Time::FAR_FUTURE, |since| shaper.next_start(since))
}
