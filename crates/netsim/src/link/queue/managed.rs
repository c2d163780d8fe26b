//! Queues that decide just before a transmission: CoDel and DualPI2.

use ropewalk_base::Time;

use super::codel::{CoDel, CoDelQueue};
use super::dualpi2::{DualPi2, DualPi2Queue};
use super::fifo::Dequeued;
use crate::packet::Packet;

#[derive(Clone, Debug)]
pub(in crate::link) enum ManagedQueue<P> {
    CoDel(CoDelQueue<P>),
    DualPi2(DualPi2Queue<P>),
}

/// Calls the method of the same name of the discipline.
macro_rules! each {
    ($own:expr, $queue:ident => $result:expr) => {
        match $own {
            Self::CoDel($queue) => $result,
            Self::DualPi2($queue) => $result,
        }
    };
}

impl<P> ManagedQueue<P> {
    pub(in crate::link) fn codel(codel: CoDel) -> Self {
        Self::CoDel(CoDelQueue::new(codel))
    }

    pub(in crate::link) fn dualpi2(settings: DualPi2) -> Self {
        Self::DualPi2(DualPi2Queue::new(settings))
    }

    pub(in crate::link) fn has_room(&self, size: u32) -> bool {
        each!(self, queue => queue.has_room(size))
    }

    pub(in crate::link) fn push(&mut self, now: Time, packet: Packet<P>) {
        each!(self, queue => queue.push(now, packet));
    }

    /// The next packet to send at `now`.
    pub(in crate::link) fn pop(&mut self, now: Time) -> Dequeued<P> {
        each!(self, queue => queue.pop(now))
    }

    /// The waiting packets, in no particular order.
    pub(in crate::link) fn iter(&self) -> impl Iterator<Item = &Packet<P>> {
        let (first, second) = match self {
            Self::CoDel(queue) => (queue.fifo(), None),
            Self::DualPi2(queue) => {
                let [low_latency, classic] = queue.fifos();
                (low_latency, Some(classic))
            }
        };
        first.iter().chain(second.into_iter().flat_map(|fifo| fifo.iter()))
    }

    pub(in crate::link) fn packets(&self) -> usize {
        each!(self, queue => queue.packets())
    }

    pub(in crate::link) fn bytes(&self) -> u64 {
        each!(self, queue => queue.bytes())
    }

    /// Time since which a packet waits for the transmitter, if any does.
    pub(in crate::link) fn head_since(&self) -> Option<Time> {
        each!(self, queue => queue.head_since())
    }

    /// Packet- and byte-nanoseconds of waiting until `now`.
    pub(in crate::link) fn waited(&self, now: Time) -> (u128, u128) {
        each!(self, queue => queue.waited(now))
    }
}
