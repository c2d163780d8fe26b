//! Tests of the search against paths with a fixed MTU.

use super::*;

const RANGE: MtuRange = MtuRange { least: 576, base: 1280, most: 9000 };
const PATIENCE: Duration = Duration::from_secs(1);
const TRIP: Duration = Duration::from_millis(20);

/// A path that carries packets of up to `mtu` bytes, answers after [`TRIP`], and immediately refuses
/// packets that exceed the MTU of its interface.
struct Wire {
    mtu: u32,
    interface: u32,
    search: MtuSearch,
    now: Time,
    nonce: u64,
    answers: Vec<(Time, u64)>,
    probes: Vec<u32>,
}

impl Wire {
    fn new(mtu: u32) -> Self {
        let mut search = MtuSearch::new(RANGE);
        search.resume(Time::ZERO);
        let (answers, probes) = (Vec::new(), Vec::new());
        Self { mtu, interface: u32::MAX, search, now: Time::ZERO, nonce: 0, answers, probes }
    }

    /// Sends the probes that are due.
    fn probe(&mut self) {
        while self.search.deadline().is_some_and(|at| at <= self.now) {
            for size in self.search.sizes_due(self.now, PATIENCE) {
                self.nonce += 1;
                self.probes.push(size);
                self.search.on_probe_sent(self.nonce, size);
                if size > self.interface {
                    self.search.on_too_long(self.now, size);
                } else if size <= self.mtu {
                    self.answers.push((self.now + TRIP, self.nonce));
                }
            }
        }
    }

    /// Runs until `end`.
    fn run_until(&mut self, end: Time) {
        loop {
            self.probe();
            let answer = self.answers.iter().map(|(at, _)| *at).min();
            let next = answer.into_iter().chain(self.search.deadline()).min();
            let Some(at) = next.filter(|at| *at <= end) else { break };
            self.now = at;
            let due: Vec<_> = self.answers.extract_if(.., |(when, _)| *when <= at).collect();
            for (_, nonce) in due {
                assert!(self.search.on_answer(self.now, nonce).is_some());
            }
        }
        self.now = end;
    }
}

#[test]
fn a_search_finds_what_the_path_carries_and_never_takes_more() {
    for (mtu, least_found, seconds) in [
        (1280, 1280, 15),
        (1296, 1280, 15),
        (1400, 1385, 15),
        (1420, 1405, 15),
        (1492, 1477, 15),
        (1500, 1500, 30),
        (2304, 2269, 30),
        (8999, 8858, 30),
        (9000, 9000, 1),
        (65_535, 9000, 1),
    ] {
        let mut wire = Wire::new(mtu);
        wire.run_until(Time::from_secs(seconds));
        let found = wire.search.current();
        assert!(wire.search.is_complete(), "{mtu}: {:?}", wire.search);
        assert!(found <= mtu && found >= least_found, "{mtu}: found {found}");
        assert!(wire.probes.len() <= 40, "{mtu}: {:?}", wire.probes);
    }
}

#[test]
fn what_most_paths_carry_is_known_after_one_round_trip() {
    let mut wire = Wire::new(1500);
    wire.run_until(Time::ZERO + TRIP);
    assert_eq!(wire.search.current(), 1500);
    assert_eq!(wire.probes, [9000, 1500, 1280]);
}

#[test]
fn what_the_interface_refuses_is_no_wait() {
    let mut wire = Wire::new(1500);
    wire.interface = 1500;
    wire.run_until(Time::ZERO + TRIP * 2);
    assert!(wire.search.is_complete(), "{:?}", wire.search);
    assert_eq!(wire.search.current(), 1500);
    // The MTU of the interface decreases.
    assert!(wire.search.on_too_long(wire.now, 1500));
    (wire.interface, wire.mtu) = (1400, 1400);
    wire.run_until(Time::from_secs(2));
    assert!((1385..=1400).contains(&wire.search.current()), "{:?}", wire.search);
}

#[test]
fn a_path_that_does_not_carry_the_base_gets_the_least_until_it_does() {
    let mut wire = Wire::new(1000);
    assert!(!wire.search.is_confirmed());
    wire.run_until(Time::from_secs(10));
    assert_eq!((wire.search.current(), wire.search.is_confirmed()), (576, false));
    let probes = wire.probes.len();
    wire.run_until(Time::from_secs(60));
    assert!(wire.probes.len() - probes <= 10, "rarely asked: {:?}", wire.probes);
    wire.mtu = 1400;
    wire.run_until(Time::from_secs(90));
    assert!((1385..=1400).contains(&wire.search.current()), "{:?}", wire.search);
}

#[test]
fn larger_sizes_are_tried_again_after_ten_minutes() {
    let mut wire = Wire::new(1400);
    wire.run_until(Time::from_secs(60));
    wire.mtu = 1500;
    wire.run_until(Time::from_secs(500));
    assert!(wire.search.current() <= 1400);
    wire.run_until(Time::from_secs(660));
    assert_eq!(wire.search.current(), 1500);
}

#[test]
fn large_packets_that_vanish_again_and_again_beside_small_ones_are_a_black_hole() {
    let mut wire = Wire::new(1500);
    wire.run_until(Time::from_secs(60));
    for round in 1..=3 {
        wire.search.on_lost(wire.now);
        wire.search.on_lost(wire.now);
        assert_eq!(wire.search.current(), 1500, "round {round}");
        let hole = wire.search.on_through(wire.now, 80);
        assert_eq!(hole, round == 3);
        assert!(!wire.search.on_through(wire.now, 80), "told once for each loss");
    }
    assert_eq!(wire.search.current(), 1280);
    wire.mtu = 1400;
    wire.probes.clear();
    wire.run_until(Time::from_secs(80));
    assert!((1385..=1400).contains(&wire.search.current()), "{:?}", wire.search);
    assert!(wire.probes.iter().all(|size| *size < 1500), "{:?}", wire.probes);
}

#[test]
fn an_outage_or_a_loss_now_and_then_is_no_black_hole() {
    let mut wire = Wire::new(1500);
    wire.run_until(Time::from_secs(60));
    // All packets are lost for a while, then all are delivered.
    (0..20).for_each(|_| wire.search.on_lost(wire.now));
    assert!(!wire.search.on_through(wire.now, 80));
    for _ in 0..20 {
        wire.search.on_lost(wire.now);
        assert!(!wire.search.on_through(wire.now, 80));
        assert!(!wire.search.on_through(wire.now, 1500));
    }
    for _ in 0..20 {
        wire.now += MEMORY * 2;
        wire.search.on_lost(wire.now);
        assert!(!wire.search.on_through(wire.now, 80), "too long ago");
    }
    assert_eq!(wire.search.current(), 1500);
}

#[test]
fn a_path_that_leads_elsewhere_starts_over_and_a_failed_one_waits() {
    let mut wire = Wire::new(1500);
    wire.run_until(Time::from_secs(60));
    wire.search.pause();
    assert_eq!((wire.search.deadline(), wire.search.current()), (None, 1500));
    wire.search.resume(wire.now);
    assert_eq!(wire.search.current(), 1500, "the same path as before");
    wire.search.restart(wire.now);
    assert_eq!((wire.search.current(), wire.search.is_confirmed()), (1280, false));
}

#[test]
fn answers_that_nobody_awaits_change_nothing() {
    let mut search = MtuSearch::new(RANGE);
    search.resume(Time::ZERO);
    for size in search.sizes_due(Time::ZERO, PATIENCE) {
        search.on_probe_sent(u64::from(size), size);
    }
    for wrong in [0, 1, 1281, u64::MAX] {
        assert_eq!(search.on_answer(Time::ZERO, wrong), None);
    }
    assert_eq!(search.on_answer(Time::ZERO, 1500), Some(1500));
    assert_eq!(search.on_answer(Time::ZERO, 1500), None, "each once");
    assert_eq!(search.on_answer(Time::ZERO, 1280), Some(1280), "late, and no news");
    assert_eq!(search.current(), 1500);
}
