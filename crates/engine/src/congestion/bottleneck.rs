//! A simulated bottleneck for tests of algorithms that pace.

use std::collections::VecDeque;

use ropewalk_base::{Duration, Rate, Rng, Seed, Time};

use super::{AckSample, CongestionOptions, Delivery, LostPacket, PathCongestion, SentPacket};
use crate::path::{DeliveryRate, Pacer, RateSnapshot};

/// Payload of a packet, bytes.
pub const PACKET: u64 = 1250;

/// A packet in flight.
pub struct Packet {
    number: u64,
    sent_at: Time,
    snapshot: RateSnapshot,
    /// When its acknowledgement arrives, `None` if it is lost.
    acked_at: Option<Time>,
}

/// A sender over one bottleneck: a rate, a round trip, a queue of bytes and random loss.
pub struct Path<C, S> {
    pub control: C,
    /// The state of the control's state machine.
    pub state: fn(&C) -> S,
    pub rate: Rate,
    pub rtt: Duration,
    pub queue: u64,
    pub loss: f64,
    /// Bytes that the application offers per second. `None`: unlimited.
    pub offered: Option<u64>,
    pub now: Time,
    pub rng: Rng,
    pub delivery: DeliveryRate,
    pub pacer: Pacer,
    pub flights: VecDeque<Packet>,
    pub link_free: Time,
    pub next: u64,
    pub in_flight: u64,
    pub delivered: u64,
    pub sent: u64,
    pub lost: u64,
    pub recovery_exit: Option<u64>,
    /// When each state was entered.
    pub states: Vec<(Time, S)>,
    /// Maximum queueing delay since it was reset.
    pub queueing: Duration,
    /// Whether packets give no round-trip samples, as if all were retransmissions (Karn's algorithm).
    pub karn: bool,
}

impl<C: PathCongestion, S: Copy + PartialEq> Path<C, S> {
    /// A path whose queue holds `queue_bdp` bandwidth-delay products.
    pub fn new(
        make: fn(CongestionOptions) -> C,
        state: fn(&C) -> S,
        (mbps, rtt_ms, queue_bdp): (u64, u64, f64),
    ) -> Self {
        let rate = Rate::from_bps(mbps * 1_000_000);
        let rtt = Duration::from_millis(rtt_ms);
        let queue = (rate.bytes_in(rtt) as f64 * queue_bdp) as u64;
        let options = CongestionOptions { seed: Seed::root(7), ..CongestionOptions::tcp(PACKET) };
        let control = make(options);
        let states = vec![(Time::ZERO, state(&control))];
        Self {
            control,
            state,
            rate,
            rtt,
            queue,
            loss: 0.0,
            offered: None,
            now: Time::ZERO,
            rng: Seed::root(1).rng(),
            delivery: DeliveryRate::default(),
            pacer: Pacer::default(),
            flights: VecDeque::new(),
            link_free: Time::ZERO,
            next: 0,
            in_flight: 0,
            delivered: 0,
            sent: 0,
            lost: 0,
            recovery_exit: None,
            states,
            queueing: Duration::ZERO,
            karn: false,
        }
    }

    /// Bytes that the application has offered so far and that have not been sent.
    fn backlog(&self) -> u64 {
        let offered = self.offered.map(|rate| (rate as f64 * self.now.as_secs_f64()) as u64);
        offered.map_or(u64::MAX, |bytes| bytes.saturating_sub(self.sent))
    }

    /// Runs until `until` and returns the delivery rate since the last call, Mbit/s.
    pub fn run_until(&mut self, until: Time) -> f64 {
        let (from, before) = (self.now, self.delivered);
        self.queueing = Duration::ZERO;
        while self.now < until {
            self.fill();
            let acked = self.flights.iter().filter_map(|packet| packet.acked_at).next();
            let paced = self.pacer.ready_at(PACKET).filter(|_| self.has_window());
            let offered = self
                .offered
                .filter(|_| self.has_window())
                .map(|rate| self.now + Duration::from_nanos(PACKET * 1_000_000_000 / rate.max(1)));
            let next = acked.into_iter().chain(paced.or(offered)).min();
            // Without either, everything in flight was lost.
            let Some(next) = next else {
                self.time_out();
                continue;
            };
            self.now = self.now.max(next);
            if acked.is_some_and(|at| at <= self.now) {
                self.take_ack();
            }
        }
        let bits = (self.delivered - before) as f64 * 8.0;
        bits / self.now.since(from).as_secs_f64() / 1e6
    }

    fn has_window(&self) -> bool {
        self.in_flight + PACKET <= self.control.window()
    }

    fn fill(&mut self) {
        self.pacer.obey(self.now, self.control.pace().unwrap(), Duration::ZERO);
        while self.has_window() && self.pacer.room(self.now) > 0 && self.backlog() >= PACKET {
            self.send();
        }
    }

    fn send(&mut self) {
        let app_limited = self.offered.is_some();
        let snapshot = self.delivery.on_sent(self.now, self.in_flight == 0, app_limited);
        let begins = self.link_free.max(self.now);
        let waits = begins.since(self.now);
        let full = self.rate.bytes_in(waits) + PACKET > self.queue;
        let dropped = full || self.rng.chance(self.loss);
        if !full {
            self.link_free = begins + self.rate.time_for(PACKET);
            self.queueing = self.queueing.max(waits);
        }
        let acked_at = (!dropped).then(|| self.link_free + self.rtt);
        let number = self.next;
        let in_flight_before = self.in_flight;
        let packet = SentPacket {
            number,
            bytes: PACKET,
            in_flight_before,
            app_limited,
            out_of_data: app_limited,
        };
        self.control.on_sent(self.now, &packet);
        self.flights.push_back(Packet { number, sent_at: self.now, snapshot, acked_at });
        self.pacer.on_sent(PACKET);
        self.next += 1;
        self.in_flight += PACKET;
        self.sent += PACKET;
    }

    /// The acknowledgement of the oldest packet that was not lost. Packets before it are lost.
    fn take_ack(&mut self) {
        let in_flight_before = self.in_flight;
        let at = self.flights.iter().position(|packet| packet.acked_at.is_some()).unwrap();
        let lost: Vec<u64> = self.flights.drain(..at).map(|packet| packet.number).collect();
        let packet = self.flights.pop_front().unwrap();
        self.in_flight -= PACKET;
        self.delivered += PACKET;
        self.delivery.on_delivered(self.now, PACKET);
        let rate = self.delivery.sample(self.now, packet.sent_at, &packet.snapshot);
        let in_recovery = self.recovery_exit.is_some_and(|exit| packet.number < exit);
        self.recovery_exit = self.recovery_exit.filter(|_| in_recovery);
        let rtt = Some(self.now.since(packet.sent_at));
        let sample = AckSample {
            acked_bytes: PACKET,
            in_flight_before,
            advanced: true,
            in_recovery,
            flight_empty: self.flights.is_empty(),
            rtt: rtt.filter(|_| !self.karn),
            srtt: rtt,
            least_rtt: rtt,
            forward_queueing: None,
            app_limited: packet.snapshot.is_limited(),
            delivery: Delivery {
                newest: Some(packet.number),
                oldest: self.flights.front().map_or(self.next, |oldest| oldest.number),
                delivered: self.delivery.delivered(),
                prior_delivered: packet.snapshot.delivered(),
                rate,
                in_flight: self.in_flight,
            },
            marked_bytes: 0,
        };
        self.control.on_ack(self.now, &sample);
        self.lose(&lost);
        if !lost.is_empty() && self.recovery_exit.is_none() {
            self.recovery_exit = Some(self.next);
            self.control.on_loss(self.now);
        }
        self.note_state();
    }

    fn lose(&mut self, lost: &[u64]) {
        for number in lost {
            self.in_flight -= PACKET;
            self.lost += PACKET;
            self.sent -= PACKET;
            self.control.on_lost(self.now, &LostPacket { number: *number, bytes: PACKET });
        }
    }

    fn time_out(&mut self) {
        self.now += Duration::from_secs(1);
        let lost: Vec<u64> = self.flights.drain(..).map(|packet| packet.number).collect();
        self.lose(&lost);
        self.control.on_timeout(self.now);
        self.note_state();
    }

    fn note_state(&mut self) {
        let state = (self.state)(&self.control);
        if self.states.last().is_none_or(|(_, last)| *last != state) {
            self.states.push((self.now, state));
        }
    }

    pub fn first(&self, state: S) -> Option<Time> {
        self.states.iter().find(|(_, entered)| *entered == state).map(|(at, _)| *at)
    }

    pub fn count(&self, state: S) -> usize {
        self.states.iter().filter(|(_, entered)| *entered == state).count()
    }
}

/// Seconds since the start.
pub const fn seconds(seconds: u64) -> Time {
    Time::from_secs(seconds)
}
