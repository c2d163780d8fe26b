//! Effects of the measured paths on queues, copies and waits.

use ropewalk_base::{Duration, Rate};

use crate::config::{CodelConfig, Config};

/// Measurements of one path by an association.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathState {
    /// Whether the path carries data now.
    pub usable: bool,
    /// One-way delay to the peer, including queues. Only differences between paths matter.
    pub forward: Duration,
    /// Mean deviation of the delay.
    pub deviation: Duration,
    /// Smoothed round-trip time.
    pub round_trip: Duration,
    /// The achievable rate of the path; zero if unknown.
    pub rate: Rate,
    /// Packet loss rate.
    pub loss: f64,
    /// Time by which an acknowledgement is overdue; zero if none is.
    pub overdue: Duration,
}

impl PathState {
    /// A lossless path of unknown rate, whose one-way delay is `forward` in both directions.
    pub const fn new(forward: Duration) -> Self {
        Self {
            usable: true,
            forward,
            deviation: Duration::ZERO,
            round_trip: Duration::from_nanos(2 * forward.as_nanos()),
            rate: Rate::ZERO,
            loss: 0.0,
            overdue: Duration::ZERO,
        }
    }
}

/// Loss rate above which interactive packets are copied: a lost packet of a call is audible.
const COPY_LOSS: f64 = 2e-3;
/// Number of deviations by which a delay may exceed its mean.
const DEVIATIONS: u64 = 4;
/// Allowance for delayed acknowledgements and timer granularity.
const GRAIN: Duration = Duration::from_millis(10);
/// Share of the round-trip time that the queue of a bulk flow may take: the round-trip time of the slowest path, plus
/// the repairs that a packet waits for ([`repair_share`]). CUBIC reduces its window to 0.7, and leaves a path idle
/// after each reduction unless the queue held 0.43 of a round trip (RFC 9438, 4.6).
const BULK_TARGET: f64 = 0.5;
/// Size of a full packet, bytes.
const PACKET: f64 = 1500.0;
/// Number of round trips for which the queue of a bulk flow may exceed that, as it does whenever its
/// window grows.
const BULK_INTERVAL: u64 = 4;
/// Maximum number of retransmissions of a packet. Its lifetime usually ends sooner.
pub const REPAIRS: u8 = 3;

/// Bytes that the association may always queue, so that no path waits for the next input: two full packets.
const SLACK: u64 = 3000;
/// The same as a time at the rate of all paths. It is added to the delay of packets that are not interactive. With a
/// smaller value, the driver is woken every few packets: at 1 Gbit/s, half a millisecond is 43 packets.
const SLACK_TIME: Duration = Duration::from_micros(500);
/// Margin for the difference between this estimate of the delays and the scheduler's.
const LOOKAHEAD_GAIN: f64 = 1.25;

/// Inverse of the maximum share of a path's round-trip time that a pause of the driver may take.
const PAUSE_SHARE: u64 = 10;

/// Maximum wait for a repair. Linux's TCP considers a packet lost 200 ms after its round-trip time, and then sends
/// the next one behind the same gap: a longer wait costs it several timeouts and nearly all of its window. Over a
/// long round trip, a repair takes longer, and so does TCP's timeout, which follows the waits that TCP observes.
const REPAIR_WAIT: Duration = Duration::from_millis(190);
const REPAIR_WAIT_TRIPS: u64 = 2;

/// Decisions that follow from the state of all paths.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Outlook {
    /// How long a received packet waits for an earlier one of its flow.
    pub hold: Duration,
    /// How long a message should be sent and retransmitted.
    pub lifetime: Duration,
    /// Whether an interactive packet is worth a copy.
    pub doubtful: bool,
    /// CoDel for flows that are not interactive.
    pub bulk_codel: CodelConfig,
    /// Bytes that the association's queue needs.
    pub lookahead: u64,
    /// The part of `lookahead` that only saves work.
    pub slack: u64,
    /// How long the driver may pause although packets wait for it.
    pub tolerable_pause: Duration,
}

impl Outlook {
    /// Decisions without measurements.
    pub const fn unknown(config: &Config) -> Self {
        let hold = config.latency_budget;
        let bulk_codel = config.codel;
        Self {
            hold,
            lifetime: hold,
            doubtful: false,
            bulk_codel,
            lookahead: SLACK,
            slack: SLACK,
            tolerable_pause: Duration::ZERO,
        }
    }

    /// Decisions from the measurements of the paths. `pause` is how long the driver may pause although packets could
    /// be sent.
    pub fn of(config: &Config, paths: &[PathState], pause: Duration) -> Self {
        let usable = || paths.iter().filter(|path| path.usable);
        let Some(quickest) = usable().min_by_key(|path| path.forward) else {
            return Self { doubtful: true, ..Self::unknown(config) };
        };
        let latest = usable().map(|path| path.forward + path.deviation * DEVIATIONS).max();
        let spread = latest.unwrap_or_default().saturating_sub(quickest.forward);
        let round_trip = usable().map(|path| path.round_trip).max().unwrap_or_default();
        // A loss is detected one and a quarter round trips after the packet was sent (RFC 8985, 6.2). A packet that
        // is lost twice arrives at most three round trips late. TCP reduces its window for each packet that is given
        // up.
        let repair = round_trip * 3 + GRAIN;
        let repair_wait = REPAIR_WAIT.max(round_trip * REPAIR_WAIT_TRIPS);
        let hold = (spread + repair).min(spread.max(repair_wait)).min(config.latency_budget);
        let doubtful = !quickest.overdue.is_zero()
            || quickest.loss > COPY_LOSS && second_beats_repair(usable(), quickest);
        let CodelConfig { target, interval } = config.codel;
        let seen = round_trip + usable().map(repair_share).max().unwrap_or_default();
        let bulk_codel = CodelConfig {
            target: target.max(seen.mul_f64(BULK_TARGET)),
            interval: interval.max(seen * BULK_INTERVAL),
        };
        // The message waits for its path, for at most the difference of the paths' delays, and is then repaired.
        let lifetime = hold + spread;
        let slack = SLACK.max(usable().map(|path| path.rate.bytes_in(SLACK_TIME + pause)).sum());
        let lookahead = lookahead(usable, quickest.forward + config.latency_budget) + slack;
        let tolerable_pause = tolerable_pause(usable()).min(config.longest_pause);
        Self { hold, lifetime, doubtful, bulk_codel, lookahead, slack, tolerable_pause }
    }
}

/// How long the driver of these paths may pause although packets wait for it. With pauses at both ends, in both
/// directions, the round-trip time grows by two pauses on average. If packets are lost, pauses also delay each repair
/// and the packets that wait for it. While an acknowledgement is overdue, nothing may be delayed.
fn tolerable_pause<'a>(usable: impl Iterator<Item = &'a PathState>) -> Duration {
    let pause_of = |path: &PathState| {
        let is_undisturbed = path.overdue.is_zero() && path.loss <= COPY_LOSS;
        if is_undisturbed { path.round_trip / PAUSE_SHARE } else { Duration::ZERO }
    };
    usable.map(pause_of).min().unwrap_or_default()
}

/// Mean time by which the repairs of a path's losses lengthen the round trip of a flow that is delivered in order. A
/// repair takes one and a quarter round trips (RFC 8985, 6.2). It affects all packets if a repair is always in
/// progress, and fewer of them if losses are rarer.
fn repair_share(path: &PathState) -> Duration {
    let repair = path.round_trip * 5 / 4;
    let packets = path.rate.bytes_in(repair) as f64 / PACKET;
    repair.mul_f64((path.loss * packets).min(1.0))
}

/// Whether a copy on the second fastest path arrives before a retransmission on the fastest one. The loss is detected
/// one and a quarter round trips after the transmission (RFC 8985, 6.2).
fn second_beats_repair<'a>(
    usable: impl Iterator<Item = &'a PathState>,
    quickest: &PathState,
) -> bool {
    let others = usable.filter(|path| !std::ptr::eq(*path, quickest));
    let second = others.map(|path| path.forward).min();
    second.is_some_and(|second| second < quickest.forward + quickest.round_trip * 5 / 4)
}

/// Number of bytes that faster paths deliver before data sent now on the slowest one arrives. The slowest path takes
/// the data behind these bytes, so that data arrives in order; a shorter queue leaves the path idle. Paths that
/// deliver after `limit` do not count.
fn lookahead<'a, I: Iterator<Item = &'a PathState>>(
    usable: impl Fn() -> I,
    limit: Duration,
) -> u64 {
    let before = |due: Duration| -> u64 {
        usable().map(|other| other.rate.bytes_in(due.saturating_sub(other.forward))).sum()
    };
    let due =
        usable().filter(|path| path.forward <= limit).map(|path| path.forward + path.deviation);
    let most = due.map(before).max().unwrap_or(0);
    (most as f64 * LOOKAHEAD_GAIN) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_gap_is_waited_for_as_long_as_the_slow_path_and_two_repairs_take_and_no_longer_than_the_budget()
     {
        let config = Config::default();
        for (delays, hold) in [
            (&[10][..], 60 + 10),
            (&[10, 10], 60 + 10),
            (&[10, 20], 10 + 120 + 10),
            (&[10, 50], 200),
            (&[10, 200], 500),
            (&[10, 400], 500),
        ] {
            let paths: Vec<_> = delays.iter().map(|delay| PathState::new(ms(*delay))).collect();
            assert_eq!(Outlook::of(&config, &paths, Duration::ZERO).hold, ms(hold), "{delays:?}");
        }
    }

    #[test]
    fn the_queue_reaches_as_far_as_quicker_paths_deliver_sooner() {
        let config = Config::default();
        let path = |ms_forward, mbps: u64| PathState {
            rate: Rate::from_bps(mbps * 1_000_000),
            ..PathState::new(ms(ms_forward))
        };
        for (paths, bytes) in [
            (vec![path(10, 10)], 0),
            (vec![path(10, 10), path(10, 50)], 0),
            // 10 Mbit/s for 90 ms, and a quarter more.
            (vec![path(10, 10), path(100, 10)], 140_625),
            (vec![path(10, 10), path(10, 10), path(100, 5)], 281_250),
            (vec![path(10, 10), path(511, 10)], 0),
        ] {
            let outlook = Outlook::of(&config, &paths, Duration::ZERO);
            assert_eq!(outlook.lookahead, bytes + outlook.slack, "{paths:?}");
        }
    }

    #[test]
    fn fast_paths_get_more_packets_at_once_and_the_queue_is_refilled_before_it_is_empty() {
        let config = Config::default();
        for (mbps, slack) in [(0, SLACK), (10, SLACK), (100, 6_250), (1_000, 62_500)] {
            let rate = Rate::from_bps(mbps * 1_000_000);
            let outlook = Outlook::of(
                &config,
                &[PathState { rate, ..PathState::new(ms(10)) }],
                Duration::ZERO,
            );
            assert_eq!((outlook.lookahead, outlook.slack), (slack, slack), "{mbps} Mbit/s");
        }
        // 40 Mbit/s for 2.5 ms: the queue also lasts for the pause.
        let path = PathState { rate: Rate::from_bps(40_000_000), ..PathState::new(ms(10)) };
        assert_eq!(Outlook::of(&config, &[path], ms(2)).slack, 12_500);
    }

    #[test]
    fn the_driver_may_pause_for_a_small_part_of_the_shortest_round_trip() {
        let config = Config::default();
        let path = |millis| PathState::new(ms(millis) / 2);
        for (paths, pause_us) in [
            (vec![path(15)], 1500),
            (vec![path(30), path(8)], 800),
            (vec![path(300)], 2000),
            (vec![PathState { loss: 0.01, ..path(15) }, path(30)], 0),
            (vec![PathState { usable: false, ..path(1) }, path(15)], 1500),
            (vec![PathState { overdue: ms(5), ..path(15) }, path(30)], 0),
            (vec![], 0),
        ] {
            let pause = Outlook::of(&config, &paths, Duration::ZERO).tolerable_pause;
            assert_eq!(pause, Duration::from_micros(pause_us), "{paths:?}");
        }
    }

    #[test]
    fn the_queue_of_a_bulk_flow_grows_with_the_round_trip_and_with_the_repairs_that_it_waits_for() {
        let config = Config::default();
        let path = |mbps: u64, loss| PathState {
            rate: Rate::from_bps(mbps * 1_000_000),
            loss,
            ..PathState::new(ms(20))
        };
        for (paths, target_us, interval_us) in [
            (vec![path(20, 0.0)], 20_000, 160_000),
            // At least one repair of 50 ms at a time.
            (vec![path(20, 0.02), path(20, 0.0)], 45_000, 360_000),
            // 83 packets within the time of a repair; one is lost in every ten such times.
            (vec![path(20, 0.0012)], 22_500, 180_000),
            (vec![path(0, 0.5)], 20_000, 160_000),
        ] {
            let CodelConfig { target, interval } =
                Outlook::of(&config, &paths, Duration::ZERO).bulk_codel;
            assert_eq!(target.as_nanos() / 1000, target_us, "{paths:?}");
            assert_eq!(interval.as_nanos() / 1000, interval_us, "{paths:?}");
        }
        let short = Outlook::of(&config, &[PathState::new(ms(1))], Duration::ZERO).bulk_codel;
        assert_eq!(short, config.codel);
    }

    #[test]
    fn the_quickest_path_is_doubtful_if_it_owes_or_if_it_loses_and_another_is_quicker_than_a_repair()
     {
        let good = PathState::new(ms(30));
        let lossy = PathState { loss: 0.02, ..PathState::new(ms(10)) };
        let late = PathState { overdue: ms(1), ..PathState::new(ms(10)) };
        let slow = PathState { loss: 0.02, ..PathState::new(ms(40)) };
        let far = PathState::new(ms(40));
        let gone = PathState { usable: false, ..lossy };
        let config = Config::default();
        for (paths, doubtful) in [
            (&[good][..], false),
            (&[good, lossy], true),
            (&[lossy], false),
            (&[far, lossy], false),
            (&[good, late], true),
            (&[far, late], true),
            (&[good, slow], false),
            (&[good, gone], false),
            (&[gone], true),
        ] {
            assert_eq!(Outlook::of(&config, paths, Duration::ZERO).doubtful, doubtful, "{paths:?}");
        }
    }
}
