//! The detector with queues that are simulated here. `crates/lab` tests it with complete networks.

use ropewalk_base::{Rng, Seed};

use super::*;

/// A queue whose delay wanders between 0 and 40 ms, as under flows that come and go.
struct Queue {
    rng: Rng,
    millis: f64,
    drift: f64,
}

impl Queue {
    fn new(number: u64) -> Self {
        let rng = Seed::root(1).child(&number.to_string()).rng();
        Self { rng, millis: 0.0, drift: 0.0 }
    }

    /// Its delay 10 ms later.
    fn step(&mut self) -> f64 {
        if self.rng.below(10) == 0 {
            self.drift = self.rng.unit() * 6.0 - 3.0;
        }
        self.millis = (self.millis + self.drift).clamp(0.0, 40.0);
        self.millis
    }
}

/// Two paths, each with a packet every 10 ms.
struct Paths {
    detector: SharedBottlenecks,
    shared: Queue,
    own: [Queue; 2],
    /// Delay without queues, ms.
    base: [u64; 2],
    /// Drift of the receiver's clock per second, microseconds.
    drift_us: u64,
    /// Milliseconds since the start.
    now: u64,
}

impl Paths {
    fn new(base: [u64; 2]) -> Self {
        let own = [Queue::new(1), Queue::new(2)];
        let detector = SharedBottlenecks::new(2);
        Self { detector, shared: Queue::new(0), own, base, drift_us: 0, now: 0 }
    }

    /// Runs for a number of seconds. `shared` and `own`: the parts of the shared and separate queues in
    /// the delay.
    fn run(&mut self, seconds: u64, shared: f64, own: [f64; 2], usable: bool) -> Sharing {
        for _ in 0..seconds * 100 {
            self.now += 10;
            let common = self.shared.step() * shared;
            for (path, part) in own.into_iter().enumerate() {
                let queued = common + self.own[path].step() * part;
                let arrived = self.now * 1_000_000;
                let delay = self.base[path] * 1_000_000 + (queued * 1e6) as u64;
                // The receiver's clock started long ago.
                let clock = 1 << 50 | 7;
                let stamp = clock + arrived + self.now * self.drift_us;
                let departed = arrived.saturating_sub(delay);
                self.detector.sample(PathId::from_index(path), departed, stamp, usable);
            }
        }
        self.detector.sharing(PathId(0), PathId(1))
    }
}

#[test]
fn a_queue_in_common_is_told_from_two_of_their_own() {
    for base in [[10, 10], [10, 100], [300, 20]] {
        for (shared, own, expected) in [
            (1.0, [0.0, 0.0], Sharing::Shared),
            (1.0, [0.3, 0.3], Sharing::Shared),
            (0.0, [1.0, 1.0], Sharing::Separate),
            (0.0, [1.0, 0.0], Sharing::Separate),
            (0.3, [1.0, 1.0], Sharing::Separate),
            (0.0, [0.0, 0.0], Sharing::Unknown),
        ] {
            let mut paths = Paths::new(base);
            let found = paths.run(30, shared, own, true);
            assert_eq!(found, expected, "{base:?} ms, shared {shared}, own {own:?}");
            let joined = paths.detector.groups()[1] == PathId(0);
            assert_eq!(joined, expected == Sharing::Shared);
        }
    }
}

#[test]
fn a_change_of_the_bottleneck_is_noticed_within_half_a_minute() {
    let mut paths = Paths::new([20, 60]);
    for _ in 0..2 {
        assert_eq!(paths.run(30, 1.0, [0.0, 0.0], true), Sharing::Shared);
        assert_eq!(paths.run(30, 0.0, [1.0, 1.0], true), Sharing::Separate);
    }
}

#[test]
fn what_was_known_holds_while_paths_act_in_step_and_ages_without_queues() {
    let mut paths = Paths::new([20, 60]);
    assert_eq!(paths.run(30, 1.0, [0.0, 0.0], true), Sharing::Shared);
    assert_eq!(paths.run(60, 0.0, [1.0, 1.0], false), Sharing::Shared);
    assert_eq!(paths.run(15, 0.0, [0.0, 0.0], true), Sharing::Shared);
    assert_eq!(paths.run(30, 0.0, [0.0, 0.0], true), Sharing::Unknown);
    assert_eq!(paths.run(30, 1.0, [0.0, 0.0], true), Sharing::Shared);
    assert!(paths.detector.forget(PathId(1)), "the groups have changed");
    assert_eq!(paths.detector.groups(), [PathId(0), PathId(1)]);
}

#[test]
fn drifting_clocks_and_delays_that_differ_for_good_are_no_shared_bottleneck() {
    let mut paths = Paths::new([20, 60]);
    paths.drift_us = 100;
    assert_eq!(paths.run(60, 0.0, [0.0, 0.0], true), Sharing::Unknown);
    assert_eq!(paths.run(60, 0.0, [0.3, 0.3], true), Sharing::Separate);
}

#[test]
fn groups_join_all_paths_of_one_bottleneck() {
    let mut detector = SharedBottlenecks::new(4);
    let mut queues = [Queue::new(0), Queue::new(1)];
    for now in 0..3_000_u64 {
        let delays = queues.each_mut().map(|queue| (queue.step() * 1e6) as u64);
        for (path, queue) in [0, 1, 1, 1].into_iter().enumerate() {
            let arrived = now * 10_000_000 + 1_000_000_000;
            let departed = arrived - 20_000_000 - delays[queue];
            detector.sample(PathId::from_index(path), departed, arrived, true);
        }
    }
    assert_eq!(detector.groups(), [0, 1, 1, 1].map(PathId));
    detector.grow(5);
    assert_eq!(detector.groups(), [0, 1, 1, 1, 4].map(PathId));
}

#[test]
fn clocks_of_a_hostile_peer_do_no_harm() {
    let mut detector = SharedBottlenecks::new(2);
    let mut rng = Seed::root(1).rng();
    for i in 0..10_000 {
        let clock = match i % 4 {
            0 => 0,
            1 => u64::MAX,
            _ => rng.next_u64(),
        };
        detector.sample(PathId(i as u8 % 3), rng.next_u64(), clock, true);
    }
    assert_eq!(detector.sharing(PathId(0), PathId(1)), Sharing::Unknown);
}
