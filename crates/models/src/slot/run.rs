//! Execution of the slot model.

use std::collections::BTreeSet;

use super::plan::Planner;
use super::receiver::Receiver;
use super::trace::{SlotInstant, SlotTrace};
use super::{SlotError, SlotModel, SlotPath, SlotScheduler};
use crate::order::PacketRange;

/// Packets of a path in transit. A path sends at multiples of its delay, so packets arrive at the next
/// opportunity and are acknowledged at the one after: no event queue is needed.
#[derive(Debug, Clone, Default)]
struct PathQueue {
    in_flight: Vec<u64>,
    /// Packets in flight that hold a place in the receive buffer.
    reserved: u64,
    /// Packets that have arrived and whose acknowledgement is in transit.
    returning: u64,
    /// Packets that found the buffer full. The sender is informed one delay later.
    discarded: Vec<u64>,
}

enum Sender {
    RoundRobin { next_packet: u64, again: BTreeSet<u64> },
    DelayAware(Planner),
}

struct SlotSimulation<'a> {
    paths: &'a [SlotPath],
    /// Path indices, shorter delay first.
    fast_first: Vec<usize>,
    path_queues: Vec<PathQueue>,
    sender: Sender,
    receiver: Receiver,
}

pub(super) fn run(model: &SlotModel, last_tick: u64) -> Result<SlotTrace, SlotError> {
    let sender = match &model.scheduler {
        SlotScheduler::RoundRobin => Sender::RoundRobin { next_packet: 1, again: BTreeSet::new() },
        SlotScheduler::DelayAware(plan) => Sender::DelayAware(Planner::new(plan, &model.paths)?),
    };
    let mut fast_first: Vec<usize> = (0..model.paths.len()).collect();
    fast_first.sort_by_key(|&i| (model.paths[i].delay_ticks, i));
    let mut clockwork = SlotSimulation {
        paths: &model.paths,
        fast_first,
        path_queues: vec![PathQueue::default(); model.paths.len()],
        sender,
        receiver: Receiver::new(model.buffer_packets),
    };
    let mut instants = Vec::new();
    let mut tick = 0;
    while tick <= last_tick {
        instants.push(clockwork.instant(tick));
        tick = clockwork.next_tick(tick);
    }
    Ok(SlotTrace { instants, last_tick, step_ticks: clockwork.step_ticks() })
}

impl SlotSimulation<'_> {
    fn step_ticks(&self) -> u64 {
        self.paths[self.fast_first[0]].delay_ticks
    }

    /// The next multiple of any delay.
    fn next_tick(&self, tick: u64) -> u64 {
        let due = |p: &SlotPath| (tick / p.delay_ticks + 1).saturating_mul(p.delay_ticks);
        self.paths.iter().map(due).min().expect("there is a path")
    }

    fn instant(&mut self, tick: u64) -> SlotInstant {
        let due: Vec<usize> = self
            .fast_first
            .iter()
            .copied()
            .filter(|&i| tick.is_multiple_of(self.paths[i].delay_ticks))
            .collect();
        let delivered_before = self.receiver.delivered_to;
        let mut arrived = vec![Vec::new(); self.paths.len()];
        for &i in &due {
            self.acknowledge(i);
            arrived[i] = PacketRange::runs(self.path_queues[i].in_flight.iter().copied());
        }
        let discarded_packets = self.arrive(&due);
        let mut sent = vec![Vec::new(); self.paths.len()];
        for &i in &due {
            self.transmit(i);
            sent[i] = PacketRange::runs(self.path_queues[i].in_flight.iter().copied());
        }
        let in_flight_packets = self.path_queues.iter().map(|l| l.in_flight.len() as u64).sum();
        let returning: u64 = self.path_queues.iter().map(|l| l.returning).sum();
        SlotInstant {
            tick,
            arrived,
            delivered_before,
            delivered_to: self.receiver.delivered_to,
            discarded_packets,
            in_buffer_packets: self.receiver.stored(),
            sent,
            in_flight_packets,
            unacknowledged_packets: in_flight_packets + returning,
        }
    }

    /// Processes acknowledgements for the arrivals at the path's last opportunity, and detects the missing
    /// packets.
    fn acknowledge(&mut self, path: usize) {
        let lane = &mut self.path_queues[path];
        lane.returning = 0;
        if let Sender::RoundRobin { again, .. } = &mut self.sender {
            again.extend(lane.discarded.drain(..));
        }
    }

    /// Processes all arrivals of this instant, lowest packet first, so that they do not displace each other
    /// from the buffer. Returns the number of discarded packets.
    fn arrive(&mut self, due: &[usize]) -> u64 {
        let mut arrivals: Vec<(u64, usize)> = Vec::new();
        for &i in due {
            let lane = &mut self.path_queues[i];
            lane.returning = lane.in_flight.len() as u64;
            lane.reserved = 0;
            arrivals.extend(lane.in_flight.drain(..).map(|packet| (packet, i)));
        }
        arrivals.sort_unstable();
        let mut discarded = 0;
        for (packet, path) in arrivals {
            if !self.receiver.accept(packet) {
                self.path_queues[path].discarded.push(packet);
                discarded += 1;
            }
        }
        let keeps_room = matches!(self.sender, Sender::DelayAware(_));
        assert!(!keeps_room || discarded == 0, "a reserved place was not there");
        discarded
    }

    fn transmit(&mut self, path: usize) {
        let capacity = self.paths[path].capacity_packets;
        // Eq 1 with a window of one round trip, that is two forward delays.
        let window = (2 * capacity).saturating_sub(self.path_queues[path].returning).min(capacity);
        let room = self.receiver.free();
        let reserved: u64 = self.path_queues.iter().map(|l| l.reserved).sum();
        let lane = &mut self.path_queues[path];
        match &mut self.sender {
            Sender::RoundRobin { next_packet, again } => {
                let wanted = self.receiver.delivered_to + 1;
                send_in_sequence(lane, next_packet, again, window, room, wanted);
            }
            Sender::DelayAware(planner) => {
                let places = room - reserved;
                send_from_list(lane, planner, path, window, places, self.receiver.delivered_to);
            }
        }
    }
}

/// Round robin: sends discarded packets again, then new ones.
fn send_in_sequence(
    lane: &mut PathQueue,
    next_packet: &mut u64,
    again: &mut BTreeSet<u64>,
    window: u64,
    room: u64,
    wanted: u64,
) {
    for _ in 0..window {
        let packet = again.first().copied().unwrap_or(*next_packet);
        // The missing packet may be resent even if the buffer is full (Section II-A).
        let passes = again.contains(&wanted);
        if lane.in_flight.len() as u64 >= room && !passes {
            break;
        }
        if !again.remove(&packet) {
            *next_packet += 1;
        }
        lane.in_flight.push(packet);
    }
}

/// Delay-aware: sends the head of the list while it needs no place or has one.
fn send_from_list(
    lane: &mut PathQueue,
    planner: &mut Planner,
    path: usize,
    window: u64,
    places: u64,
    delivered_to: u64,
) {
    let mut passes = delivered_to + 1;
    for _ in 0..window {
        let packet = planner.peek(path);
        if packet == passes {
            // All earlier packets are delivered, or precede it on the same path.
            passes += 1;
        } else if lane.reserved < places {
            lane.reserved += 1;
        } else {
            break;
        }
        planner.take(path);
        lane.in_flight.push(packet);
    }
}
