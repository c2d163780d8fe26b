//! Queues in front of the association: FQ-CoDel (RFC 8290) with three classes.
//!
//! Within a class, flows take turns by bytes, and new flows come first. A class has priority over those below it,
//! but cannot starve them: while a lower class waits, one round of it passes for each [`BOUND`] bytes of higher
//! ones.

use std::collections::VecDeque;

use ropewalk_base::Time;

use crate::codel::Waiting;
use crate::config::{CodelConfig, Config, packet_cost};
use crate::counters::Counters;
use crate::flow::{Flows, Listed};
use crate::header::Header;
use crate::tunnel::{Class, Ecn, Inner, Order};

/// Bytes of each turn of a flow (RFC 8290, 5.2: one full packet).
const QUANTUM: i64 = 1514;
/// Bytes of higher classes after which a lower class may send a quantum.
const BOUND: [u64; 3] = [0, 12_000, 24_000];
/// Maximum number of packets that are dropped from the longest queue at one time (RFC 8290, 4.1).
const DROP_BATCH: usize = 64;

/// A packet that leaves its queue.
#[derive(Debug)]
pub(crate) struct Taken<P> {
    pub header: Header,
    pub class: Class,
    pub order: Order,
    pub ecn: Ecn,
    pub bytes: u32,
    pub payload: P,
}

/// The lists of one class.
#[derive(Clone, Debug, Default)]
struct Lists {
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    /// Bytes of higher classes that were sent while this one waited.
    passed_over: u64,
}

impl Lists {
    fn is_empty(&self) -> bool {
        self.new.is_empty() && self.old.is_empty()
    }

    /// The next flow, and whether it is a new one.
    fn front(&self) -> Option<(u16, bool)> {
        let new = self.new.front().map(|slot| (*slot, true));
        new.or_else(|| self.old.front().map(|slot| (*slot, false)))
    }

    fn pop_front(&mut self, is_new: bool) {
        let list = if is_new { &mut self.new } else { &mut self.old };
        list.pop_front();
    }
}

/// All queues.
#[derive(Clone, Debug)]
pub(crate) struct Ingress<P> {
    flows: Flows<P>,
    lists: [Lists; 3],
    bytes: u64,
    bytes_max: u64,
    /// Memory cost of all packets.
    cost: u64,
    cost_max: u64,
    codel: CodelConfig,
}

impl<P> Ingress<P> {
    pub fn new(config: &Config) -> Self {
        Self {
            flows: Flows::new(config.flows.clamp(1, Config::FLOWS_MAX)),
            lists: Default::default(),
            bytes: 0,
            bytes_max: config.queue_bytes,
            cost: 0,
            cost_max: u64::MAX,
            codel: config.codel,
        }
    }

    /// Inner bytes in all queues.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Memory cost of the packets in all queues, bytes.
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// Limits the memory cost from the next packet on. If the queues exceed it now, they do not grow further.
    pub fn limit_cost(&mut self, most: u64) {
        self.cost_max = most.max(self.cost);
    }

    /// Number of known flows.
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }

    /// Forgets the flows that have not been used since `since`.
    pub fn release(&mut self, since: Time) {
        self.flows.release(since);
    }

    /// Queues a packet, and shortens the longest queue if the total is too long.
    pub fn push(&mut self, now: Time, inner: Inner<P>, counters: &mut Counters) {
        let slot = self.flows.slot(inner.flow);
        let flow = self.flows.get(slot);
        flow.classify(now, inner.class, inner.bytes);
        flow.order = inner.order;
        flow.used = now;
        let (bytes, ecn, payload) = (inner.bytes, inner.ecn, inner.payload);
        flow.queue.push(Waiting { since: now, bytes, ecn, payload });
        counters.class_mut(flow.class).queued += 1;
        if flow.listed == Listed::No {
            flow.listed = Listed::Yes;
            flow.deficit = QUANTUM;
            self.lists[flow.class as usize].new.push_back(slot);
        }
        self.bytes += u64::from(bytes);
        self.cost += packet_cost(bytes);
        if self.bytes > self.bytes_max {
            self.shorten(counters);
        }
        while self.cost > self.cost_max && self.shorten(counters) {}
    }

    /// RFC 8290, 4.1: drops half of the longest queue from its head, at most one batch. Returns whether it had
    /// packets.
    fn shorten(&mut self, counters: &mut Counters) -> bool {
        let Some(slot) = self.flows.longest() else { return false };
        let flow = self.flows.get(slot);
        let batch = flow.queue.len().div_ceil(2).min(DROP_BATCH);
        for _ in 0..batch {
            let Some(bytes) = flow.queue.drop_head() else { break };
            self.bytes -= u64::from(bytes);
            self.cost -= packet_cost(bytes);
            counters.class_mut(flow.class).dropped_by_limit += 1;
        }
        batch > 0
    }

    /// The next packet. `None` if all queues are empty.
    pub fn pop(
        &mut self,
        now: Time,
        bulk: &CodelConfig,
        counters: &mut Counters,
    ) -> Option<Taken<P>> {
        loop {
            let class = self.next_class()?;
            if let Some(taken) = self.pop_class(now, class, bulk, counters) {
                self.charge(class, taken.bytes);
                return Some(taken);
            }
        }
    }

    /// The next interactive packet.
    pub fn pop_interactive(&mut self, now: Time, counters: &mut Counters) -> Option<Taken<P>> {
        let codel = self.codel;
        let taken = self.pop_class(now, Class::Interactive, &codel, counters)?;
        self.charge(Class::Interactive, taken.bytes);
        Some(taken)
    }

    /// The class to serve: the lowest that has been passed over for long enough, otherwise the highest.
    fn next_class(&self) -> Option<Class> {
        let waiting = |class: &Class| !self.lists[*class as usize].is_empty();
        let overdue = |class: &Class| {
            let bound = BOUND[*class as usize];
            bound > 0 && self.lists[*class as usize].passed_over >= bound
        };
        let lowest = Class::ALL.into_iter().rev().filter(waiting).find(overdue);
        lowest.or_else(|| Class::ALL.into_iter().find(waiting))
    }

    fn charge(&mut self, class: Class, bytes: u32) {
        self.lists[class as usize].passed_over = 0;
        for lower in Class::ALL.into_iter().filter(|other| *other > class) {
            let lists = &mut self.lists[lower as usize];
            let waits = !lists.is_empty();
            lists.passed_over = if waits { lists.passed_over + u64::from(bytes) } else { 0 };
        }
    }

    /// RFC 8290, 4.2: the next packet of a class.
    fn pop_class(
        &mut self,
        now: Time,
        class: Class,
        bulk: &CodelConfig,
        counters: &mut Counters,
    ) -> Option<Taken<P>> {
        while let Some((slot, is_new)) = self.lists[class as usize].front() {
            let flow = self.flows.get(slot);
            if flow.class != class {
                // The class of the flow has changed since it was listed.
                let class_now = flow.class;
                self.lists[class as usize].pop_front(is_new);
                self.lists[class_now as usize].new.push_back(slot);
                continue;
            }
            let lists = &mut self.lists[class as usize];
            if flow.deficit <= 0 {
                flow.deficit += QUANTUM;
                lists.pop_front(is_new);
                lists.old.push_back(slot);
                continue;
            }
            let codel = if class == Class::Interactive { &self.codel } else { bulk };
            let (bytes, cost) = (flow.queue.bytes(), flow.queue.cost());
            let out = flow.queue.pop(now, codel);
            self.bytes -= bytes - flow.queue.bytes();
            self.cost -= cost - flow.queue.cost();
            let counted = counters.class_mut(class);
            counted.dropped_by_delay += out.dropped.0;
            let Some(packet) = out.packet else {
                lists.pop_front(is_new);
                if is_new {
                    lists.old.push_back(slot);
                } else {
                    flow.listed = Listed::No;
                }
                continue;
            };
            flow.deficit -= i64::from(packet.bytes);
            counted.marked += u64::from(out.marked);
            counted.longest_wait = counted.longest_wait.max(now.since(packet.since));
            let ecn = if out.marked { Ecn::Ce } else { packet.ecn };
            let header = flow.next_header(slot);
            return Some(Taken {
                header,
                class,
                order: flow.order,
                ecn,
                bytes: packet.bytes,
                payload: packet.payload,
            });
        }
        None
    }
}
