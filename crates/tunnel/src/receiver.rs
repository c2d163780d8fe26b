//! The receiving side: flows, and the waits of their packets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ropewalk_base::{Duration, Time};

use crate::counters::ReceiveCounters;
use crate::header::Header;
use crate::order::{Fate, FlowOrder};

/// Flows with received packets, and the packets that can be delivered.
#[derive(Clone, Debug)]
pub(crate) struct Receiver<P> {
    flows: BTreeMap<u16, Box<FlowOrder<P>>>,
    /// When the wait of a flow ends.
    deadlines: BTreeSet<(Time, u16)>,
    ready: VecDeque<P>,
    /// Memory cost of the waiting packets.
    held_bytes: u64,
    held_bytes_max: u64,
    /// A lower limit set by the caller.
    cost_max: u64,
}

impl<P> Receiver<P> {
    pub const fn new(held_bytes_max: u64) -> Self {
        Self {
            flows: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            ready: VecDeque::new(),
            held_bytes: 0,
            held_bytes_max,
            cost_max: u64::MAX,
        }
    }

    /// Memory cost of the waiting packets, bytes.
    pub const fn cost(&self) -> u64 {
        self.held_bytes
    }

    /// Limits the memory cost from the next packet on. If the waiting packets exceed it now, no more
    /// packets wait.
    pub fn limit_cost(&mut self, most: u64) {
        self.cost_max = most.max(self.held_bytes);
    }

    /// Handles a packet. `hold` is how long it may wait for earlier ones of its flow.
    pub fn on_packet(
        &mut self,
        now: Time,
        (header, bytes, payload): (Header, u32, P),
        hold: Duration,
        counters: &mut ReceiveCounters,
    ) {
        counters.arrived += 1;
        self.follow_generation(now, header, counters);
        let Some(flow) = self.flows.get_mut(&header.slot) else { return };
        if flow.generation != header.generation {
            // A packet of the previous flow in this slot. Its order is lost.
            counters.late += 1;
            self.ready.push_back(payload);
            return;
        }
        let (before, held) = (flow.deadline, flow.held_bytes());
        let sequence = header.unwrapped(flow.near());
        let wait = (header.ordered, hold);
        let mut out = sink(now, &mut self.ready, counters);
        let fate = flow.on_packet(now, (sequence, bytes, payload), wait, &mut out);
        drop(out);
        match fate {
            Fate::Delivered => {}
            Fate::Late => counters.late += 1,
            Fate::Held => counters.held += 1,
            Fate::Duplicate => counters.duplicates += 1,
        }
        self.follow(header.slot, before, held);
        counters.held_bytes_max = counters.held_bytes_max.max(self.held_bytes);
        while self.held_bytes > self.held_bytes_max.min(self.cost_max) {
            let Some((_, slot)) = self.deadlines.first().copied() else { return };
            self.give_up(now, slot, hold, counters);
        }
    }

    /// Creates the flow of a slot, or replaces it by a newer one.
    fn follow_generation(&mut self, now: Time, header: Header, counters: &mut ReceiveCounters) {
        let fresh = || Box::new(FlowOrder::new(header.generation, u64::from(header.sequence)));
        let flow = self.flows.entry(header.slot).or_insert_with(fresh);
        if flow.generation == header.generation || header.is_older(flow.generation) {
            return;
        }
        let (before, held) = (flow.deadline, flow.held_bytes());
        flow.flush(&mut sink(now, &mut self.ready, counters));
        *flow = fresh();
        self.follow(header.slot, before, held);
    }

    /// Updates the sums after a change of the flow in `slot`.
    fn follow(&mut self, slot: u16, before: Option<Time>, held: u64) {
        let flow = &self.flows[&slot];
        self.held_bytes = self.held_bytes + flow.held_bytes() - held;
        if before != flow.deadline {
            before.map(|at| self.deadlines.remove(&(at, slot)));
            flow.deadline.map(|at| self.deadlines.insert((at, slot)));
        }
    }

    fn give_up(&mut self, now: Time, slot: u16, hold: Duration, counters: &mut ReceiveCounters) {
        let Some(flow) = self.flows.get_mut(&slot) else { return };
        let (before, held) = (flow.deadline, flow.held_bytes());
        let gave_up = flow.give_up(hold, &mut sink(now, &mut self.ready, counters));
        counters.gaps_given_up += u64::from(gave_up);
        self.follow(slot, before, held);
    }

    /// Ends the waits that are over.
    pub fn expire(&mut self, now: Time, hold: Duration, counters: &mut ReceiveCounters) {
        while let Some((at, slot)) = self.deadlines.first().copied()
            && at <= now
        {
            self.give_up(now, slot, hold, counters);
        }
    }

    /// The next packet to deliver.
    pub fn pop(&mut self) -> Option<P> {
        self.ready.pop_front()
    }

    /// When the next wait ends.
    pub fn deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Forgets the flows without an arrival since `since`.
    pub fn release(&mut self, since: Time) {
        self.flows.retain(|_, flow| flow.deadline.is_some() || flow.used >= since);
    }

    /// Number of known flows.
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }
}

/// Receives what a flow delivers.
fn sink<P>(
    now: Time,
    ready: &mut VecDeque<P>,
    counters: &mut ReceiveCounters,
) -> impl FnMut(Time, P) {
    move |since, payload| {
        counters.delivered += 1;
        counters.longest_hold = counters.longest_hold.max(now.since(since));
        ready.push_back(payload);
    }
}
