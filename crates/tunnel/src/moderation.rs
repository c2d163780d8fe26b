//! How long a driver may pause at a time, so that it handles packets together.
//!
//! At several thousand packets per second, a driver that waits for sockets and timers is woken for nearly every
//! packet, which takes most of its CPU time. It can pause before it waits, as a network card delays its interrupts:
//! packets that arrive and timers that expire during the pause are handled together.
//!
//! Each end declares how long a pause it tolerates ([`Tunnel::tolerable_pause`](crate::Tunnel::tolerable_pause)).
//! There is no pause while few packets pass, because it would save nothing, nor while many do, because they are
//! handled in large groups without it.

use ropewalk_base::{Duration, Time};

/// Minimum pause that is worth two system calls.
const SHORTEST: Duration = Duration::from_micros(250);
/// Minimum number of packets per pause. With fewer, a pause saves too little.
const FEWEST_PACKETS: f64 = 2.0;
/// Maximum number of packets per pause. With more, wake-ups are rare without it, and the queue of a device (256
/// packets) might overflow.
const MOST_PACKETS: f64 = 32.0;
/// Time over which packets are counted.
const PERIOD: Duration = Duration::from_millis(20);
/// How long a pause is used without a new observation.
const EXPIRY: Duration = Duration::from_millis(100);

/// The packet rate, and the pause that follows from it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moderation {
    period: Option<Period>,
    pause: Duration,
    expires: Time,
}

/// The observations since `begin`.
#[derive(Clone, Copy, Debug)]
struct Period {
    begin: Time,
    packets: u64,
    /// The shortest pause that an association tolerates.
    tolerable: Duration,
}

impl Moderation {
    /// Records that an association has carried `packets` packets since the last call for it. `tolerable` is the
    /// longest pause that does not harm it.
    pub fn observe(&mut self, now: Time, packets: u64, tolerable: Duration) {
        if packets == 0 {
            return;
        }
        let period = self.period.get_or_insert(Period { begin: now, packets: 0, tolerable });
        period.packets += packets;
        period.tolerable = period.tolerable.min(tolerable);
        let lasted = now.since(period.begin);
        if lasted >= PERIOD {
            self.pause = pause_for(period.packets as f64 / lasted.as_secs_f64(), period.tolerable);
            self.expires = now + EXPIRY;
            self.period = None;
        }
    }

    /// How long the driver pauses now before it waits; zero if it waits immediately.
    pub fn pause(&self, now: Time) -> Duration {
        if now < self.expires { self.pause } else { Duration::ZERO }
    }
}

/// The pause at `rate` packets per second.
fn pause_for(rate: f64, tolerable: Duration) -> Duration {
    let packets = rate * tolerable.as_secs_f64();
    let saves = tolerable >= SHORTEST && (FEWEST_PACKETS..=MOST_PACKETS).contains(&packets);
    if saves { tolerable } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The state after half a second with this number of packets per millisecond.
    fn load_of(per_ms: u64, tolerable: Duration) -> Moderation {
        let mut load = Moderation::default();
        (0..500).for_each(|now| load.observe(at(now), per_ms, tolerable));
        load
    }

    #[test]
    fn there_is_a_pause_while_it_groups_packets() {
        let pause = |per_ms, tolerable| load_of(per_ms, tolerable).pause(at(500));
        assert_eq!(pause(7, ms(2)), ms(2));
        assert_eq!(pause(7, Duration::from_micros(100)), Duration::ZERO, "too short");
        assert_eq!(pause(100, ms(2)), Duration::ZERO, "groups are large without it");
    }

    #[test]
    fn few_packets_are_not_delayed() {
        let mut load = Moderation::default();
        // Two calls, 100 packets per second in each direction.
        (0..100).for_each(|sent| load.observe(at(5 * sent), 1, ms(2)));
        assert_eq!(load.pause(at(500)), Duration::ZERO);
    }

    #[test]
    fn all_associations_tolerate_the_pause() {
        let mut load = Moderation::default();
        for now in 0..500 {
            load.observe(at(now), 4, ms(2));
            load.observe(at(now), 4, Duration::from_micros(800));
        }
        assert_eq!(load.pause(at(500)), Duration::from_micros(800));
    }

    #[test]
    fn a_pause_ends_with_the_traffic() {
        let mut load = load_of(7, ms(2));
        assert_eq!(load.pause(at(520)), ms(2));
        assert_eq!(load.pause(at(700)), Duration::ZERO);
        // The first packets after an idle time count as infrequent.
        load.observe(at(5000), 7, ms(2));
        assert_eq!(load.pause(at(5001)), Duration::ZERO);
    }
}
