//! BBR over a simulated bottleneck: the example test cases of the draft (appendix A).

use std::collections::VecDeque;

use ropewalk_base::{Duration, Rate, Rng, Seed, Time};

use super::{Bbr, BbrState};
use crate::congestion::{
    AckSample, CongestionOptions, Delivery, LostPacket, PathCongestion, SentPacket,
};
use crate::path::{DeliveryRate, Pacer, RateSnapshot};

const PACKET: u64 = 1250;

/// A packet in flight.
struct Packet {
    number: u64,
    sent_at: Time,
    snapshot: RateSnapshot,
    /// When its acknowledgement arrives; none if it is lost.
    acked_at: Option<Time>,
}

/// A sender over one bottleneck: a rate, a round trip, a queue of bytes and random loss.
struct Path {
    bbr: Bbr,
    rate: Rate,
    rtt: Duration,
    queue: u64,
    loss: f64,
    /// Bytes that the application offers per second; none: as much as possible.
    offered: Option<u64>,
    now: Time,
    rng: Rng,
    delivery: DeliveryRate,
    pacer: Pacer,
    flights: VecDeque<Packet>,
    link_free: Time,
    next: u64,
    in_flight: u64,
    delivered: u64,
    sent: u64,
    lost: u64,
    recovery_exit: Option<u64>,
    /// When each state was entered.
    states: Vec<(Time, BbrState)>,
    /// Largest queueing delay since it was reset.
    queueing: Duration,
    /// Whether no packet gives a sample of the round trip, as if all were retransmissions (Karn's algorithm).
    karn: bool,
}

impl Path {
    fn new(mbps: u64, rtt_ms: u64, queue_bdp: f64) -> Self {
        let rate = Rate::from_bps(mbps * 1_000_000);
        let rtt = Duration::from_millis(rtt_ms);
        let queue = (rate.bytes_in(rtt) as f64 * queue_bdp) as u64;
        let options = CongestionOptions { seed: Seed::root(7), ..CongestionOptions::tcp(PACKET) };
        Self {
            bbr: Bbr::new(options),
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
            states: vec![(Time::ZERO, BbrState::Startup)],
            queueing: Duration::ZERO,
            karn: false,
        }
    }

    /// Bytes that the application has offered so far and that were not sent.
    fn backlog(&self) -> u64 {
        let offered = self.offered.map(|rate| (rate as f64 * self.now.as_secs_f64()) as u64);
        offered.map_or(u64::MAX, |bytes| bytes.saturating_sub(self.sent))
    }

    /// Runs until `until` and returns the rate of delivery since the last call, Mbit/s.
    fn run_until(&mut self, until: Time) -> f64 {
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
            // With neither, everything in flight was lost.
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
        self.in_flight + PACKET <= self.bbr.window()
    }

    fn fill(&mut self) {
        self.pacer.obey(self.now, self.bbr.pace().unwrap(), Duration::ZERO);
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
        let packet = SentPacket { number, bytes: PACKET, in_flight_before, app_limited };
        self.bbr.on_sent(self.now, &packet);
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
            app_limited: packet.snapshot.is_limited(),
            delivery: Delivery {
                newest: Some(packet.number),
                oldest: self.flights.front().map_or(self.next, |oldest| oldest.number),
                delivered: self.delivery.delivered(),
                prior_delivered: packet.snapshot.delivered(),
                rate,
                in_flight: self.in_flight,
            },
        };
        self.bbr.on_ack(self.now, &sample);
        self.lose(&lost);
        if !lost.is_empty() && self.recovery_exit.is_none() {
            self.recovery_exit = Some(self.next);
            self.bbr.on_loss(self.now);
        }
        self.note_state();
    }

    fn lose(&mut self, lost: &[u64]) {
        for number in lost {
            self.in_flight -= PACKET;
            self.lost += PACKET;
            self.sent -= PACKET;
            self.bbr.on_lost(self.now, &LostPacket { number: *number, bytes: PACKET });
        }
    }

    fn time_out(&mut self) {
        self.now += Duration::from_secs(1);
        let lost: Vec<u64> = self.flights.drain(..).map(|packet| packet.number).collect();
        self.lose(&lost);
        self.bbr.on_timeout(self.now);
        self.note_state();
    }

    fn note_state(&mut self) {
        let state = self.bbr.state();
        if self.states.last().is_none_or(|(_, last)| *last != state) {
            self.states.push((self.now, state));
        }
    }

    fn first(&self, state: BbrState) -> Option<Time> {
        self.states.iter().find(|(_, entered)| *entered == state).map(|(at, _)| *at)
    }

    fn count(&self, state: BbrState) -> usize {
        self.states.iter().filter(|(_, entered)| *entered == state).count()
    }
}

const fn seconds(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

#[test]
fn startup_ends_by_a_plateau_and_drain_ends_when_the_queue_is_gone() {
    let mut path = Path::new(50, 40, 4.0);
    path.run_until(seconds(3));
    let drain = path.first(BbrState::Drain).expect("it fills the path");
    let down = path.first(BbrState::ProbeBwCruise).expect("the queue drains");
    // 200 packets of BDP from 10: five doublings, and three rounds without growth.
    assert!(drain.since(Time::ZERO) < Duration::from_millis(40 * 14), "{drain:?}");
    assert!(down.since(drain) < Duration::from_millis(40 * 4), "{:?}", down.since(drain));
    assert_eq!(path.lost, 0);
    let max_bw = path.bbr.max_bw().as_bps() as f64;
    assert!((max_bw / 50e6 - 1.0).abs() < 0.03, "{max_bw}");
    assert!(path.bbr.min_rtt().unwrap() < Duration::from_millis(41));
}

#[test]
fn a_bulk_flow_uses_the_path_with_a_short_queue() {
    // Over 600 ms, each probe of the round trip costs more than a round with half of the data in flight.
    for (mbps, rtt, least) in
        [(1, 20, 0.93), (10, 20, 0.93), (50, 40, 0.93), (100, 100, 0.93), (8, 600, 0.88)]
    {
        let mut path = Path::new(mbps, rtt, 4.0);
        path.run_until(seconds(12));
        let goodput = path.run_until(seconds(60));
        assert!(goodput > least * mbps as f64, "{mbps} Mbit/s, {rtt} ms: {goodput}");
        assert!(path.queueing < path.rtt * 2 + Duration::from_millis(60), "{:?}", path.queueing);
        // The first cell has a queue of eight packets: one lost packet is an eighth of the data in flight.
        let share = path.lost as f64 / path.delivered as f64;
        let most = if mbps == 1 { 0.05 } else { 0.0 };
        assert!(share <= most, "{mbps} Mbit/s, {rtt} ms: {share}");
    }
}

/// Each round of cruising with a loss lowers the short-term bandwidth to the rate of the last round, which is the
/// pacing margin lower. The next probe, within 63 rounds, ends this.
#[test]
fn random_losses_below_the_threshold_cost_a_part_of_the_rate_until_the_next_probe() {
    let mut path = Path::new(50, 40, 1.0);
    path.loss = 0.01;
    path.run_until(seconds(10));
    let goodput = path.run_until(seconds(60));
    assert!(goodput > 0.78 * 50.0 && goodput < 0.9 * 50.0, "{goodput}");
}

#[test]
fn a_shallow_queue_loses_little() {
    let mut path = Path::new(50, 40, 0.25);
    path.run_until(seconds(10));
    let (lost, delivered) = (path.lost, path.delivered);
    let goodput = path.run_until(seconds(60));
    let share = (path.lost - lost) as f64 / (path.delivered - delivered) as f64;
    assert!(goodput > 0.85 * 50.0 && share < 0.02, "{goodput} Mbit/s, {share} lost");
}

#[test]
fn probe_rtt_comes_each_five_seconds_and_lasts_200_ms_and_a_round() {
    let mut path = Path::new(20, 50, 2.0);
    path.run_until(seconds(60));
    let probes = path.count(BbrState::ProbeRtt);
    assert!((9..=12).contains(&probes), "{probes}");
    let pairs = path.states.windows(2).filter(|pair| pair[0].1 == BbrState::ProbeRtt);
    for pair in pairs {
        let lasted = pair[1].0.since(pair[0].0);
        let most = Duration::from_millis(200 + 4 * 50);
        assert!(lasted >= Duration::from_millis(200) && lasted <= most, "{lasted:?}");
    }
}

#[test]
fn an_application_that_sends_slowly_needs_no_probe_rtt_and_keeps_the_estimate() {
    let mut path = Path::new(20, 50, 2.0);
    path.run_until(seconds(4));
    let before = path.count(BbrState::ProbeRtt);
    // A packet each 125 ms: nothing is in flight between them.
    path.offered = Some(10_000);
    path.sent = 4 * 10_000;
    path.run_until(seconds(60));
    assert_eq!(path.count(BbrState::ProbeRtt), before, "{:?}", path.states);
    assert!(path.bbr.max_bw().as_bps() > 18_000_000, "{:?}", path.bbr.max_bw());
}

#[test]
fn a_rate_that_grows_tenfold_is_found_and_one_that_falls_is_followed() {
    let mut path = Path::new(10, 40, 2.0);
    path.run_until(seconds(10));
    path.rate = Rate::from_bps(100_000_000);
    path.queue *= 10;
    path.run_until(seconds(40));
    let goodput = path.run_until(seconds(50));
    assert!(goodput > 85.0, "{goodput}");
    path.rate = Rate::from_bps(10_000_000);
    path.queue /= 10;
    path.run_until(seconds(65));
    let goodput = path.run_until(seconds(80));
    assert!(goodput > 8.5, "{goodput}");
    assert!(path.queueing < Duration::from_millis(100), "{:?}", path.queueing);
}

#[test]
fn a_spurious_recovery_returns_to_startup() {
    let mut path = Path::new(100, 40, 4.0);
    path.run_until(Time::from_millis(200));
    assert_eq!(path.bbr.state(), BbrState::Startup);
    let window = path.bbr.window();
    let now = path.now;
    path.bbr.on_loss(now);
    path.bbr.undo.state = Some(BbrState::Startup);
    path.bbr.full_bw.reached = true;
    path.bbr.state = BbrState::Drain;
    path.bbr.on_spurious(now);
    assert_eq!((path.bbr.state(), path.bbr.full_bw.reached), (BbrState::Startup, false));
    assert!(path.bbr.window() >= window);
    path.run_until(seconds(5));
    assert!(path.bbr.max_bw().as_bps() > 95_000_000);
}

#[test]
fn a_timeout_restarts_with_one_packet_and_recovers_the_window() {
    let mut path = Path::new(20, 50, 2.0);
    path.run_until(seconds(4));
    path.loss = 1.0;
    path.run_until(seconds(8));
    assert!(path.bbr.window() <= 4 * PACKET, "{}", path.bbr.window());
    path.loss = 0.0;
    path.run_until(seconds(12));
    let goodput = path.run_until(seconds(30));
    assert!(goodput > 17.0, "{goodput}");
}

#[test]
fn a_path_that_returns_within_seconds_keeps_its_estimates() {
    let mut path = Path::new(20, 50, 2.0);
    path.run_until(seconds(4));
    let now = path.now;
    path.bbr.on_return(now);
    assert_eq!(path.bbr.window(), PACKET);
    let goodput = path.run_until(seconds(6));
    assert!(goodput > 16.0, "{goodput}");
    let now = path.now + Duration::from_secs(11);
    path.bbr.on_return(now);
    assert_eq!((path.bbr.state(), path.bbr.min_rtt()), (BbrState::Startup, None));
}

#[test]
fn a_path_that_returns_longer_has_its_new_round_trip_at_once() {
    let mut path = Path::new(20, 50, 2.0);
    path.run_until(seconds(4));
    path.rtt = Duration::from_millis(70);
    path.flights.clear();
    path.in_flight = 0;
    let now = path.now;
    path.bbr.on_return(now);
    path.run_until(Time::from_millis(4_500));
    let least = path.bbr.min_rtt().unwrap();
    assert!(least >= Duration::from_millis(70), "{least:?}");
}

#[test]
fn startup_waits_for_a_round_trip_while_only_retransmissions_are_acknowledged() {
    let mut path = Path::new(20, 50, 2.0);
    path.karn = true;
    path.run_until(seconds(2));
    assert_eq!(path.bbr.state(), BbrState::Startup);
    assert!(path.bbr.window() > 100 * PACKET, "{}", path.bbr.window());
    path.karn = false;
    path.run_until(seconds(6));
    let goodput = path.run_until(seconds(20));
    assert!(goodput > 18.0, "{goodput}");
}

#[test]
fn waits_before_a_probe_differ_from_path_to_path() {
    let options = CongestionOptions { seed: Seed::root(3), ..CongestionOptions::tcp(PACKET) };
    let mut draws: Vec<u64> =
        Bbr::for_paths(options, 8).iter_mut().map(|bbr| bbr.rng.next_u64()).collect();
    draws.sort_unstable();
    draws.dedup();
    assert_eq!(draws.len(), 8);
}
