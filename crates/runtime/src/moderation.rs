//! Fewer wake-ups for a process that passes on packets.
//!
//! At some thousand packets per second, a thread that waits for sockets and timers is woken for nearly every packet. System
//! calls and wake-ups then take most of its CPU time. [`Moderation`] lets the thread pause before it waits, as a network
//! card delays its interrupts: packets that arrive and timers that expire during the pause are handled together.
//!
//! Each association says how long a pause it tolerates. There is no pause while few packets pass, because it would save
//! nothing, nor while many do, because they are handled in large groups without it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;

use ropewalk_base::{Duration, Time};

use crate::clock::Clock;

/// Shortest pause that is worth two system calls.
const SHORTEST: Duration = Duration::from_micros(250);
/// With fewer packets in a pause, it saves too little.
const FEWEST_PACKETS: f64 = 2.0;
/// With more packets in a pause, wake-ups are rare without it, and the queue of a device (256 packets) might overflow.
const MOST_PACKETS: f64 = 32.0;
/// Time over which packets are counted.
const PERIOD: Duration = Duration::from_millis(20);
/// How long a pause is used without a new observation.
const EXPIRY: Duration = Duration::from_millis(100);
/// Further threads of a runtime pause for so many times as long as the first one. What is due meanwhile, the first one does.
const FURTHER_THREADS: u64 = 5;

/// Decides how long the threads of a runtime pause before they wait.
#[derive(Debug)]
pub struct Moderation {
    clock: Clock,
    load: Mutex<Load>,
    first_thread: OnceLock<ThreadId>,
}

impl Default for Moderation {
    fn default() -> Self {
        Self { clock: Clock::start(), load: Mutex::default(), first_thread: OnceLock::new() }
    }
}

impl Moderation {
    /// Lets the threads of a runtime pause before they wait.
    pub fn moderate(self: Arc<Self>, runtime: &mut tokio::runtime::Builder) {
        runtime.on_thread_park(move || {
            let own = std::thread::current().id();
            let is_first = *self.first_thread.get_or_init(|| own) == own;
            let pause = self.pause() * if is_first { 1 } else { FURTHER_THREADS };
            if !pause.is_zero() {
                sleep(pause);
            }
        });
    }

    /// Records that an association has passed on `packets` packets since this was last called for it. `tolerable`: the
    /// longest pause that does not harm it.
    pub fn observe(&self, packets: u64, tolerable: Duration) {
        self.load().observe(self.clock.now(), packets, tolerable);
    }

    /// How long a thread pauses now before it waits.
    pub fn pause(&self) -> Duration {
        self.load().pause(self.clock.now())
    }

    fn load(&self) -> MutexGuard<'_, Load> {
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[allow(clippy::disallowed_methods, reason = "the thread has nothing to do, and must not be woken")]
fn sleep(pause: Duration) {
    std::thread::sleep(std::time::Duration::from_nanos(pause.as_nanos()));
}

/// What passes, and the pause that follows from it.
#[derive(Debug, Default)]
struct Load {
    period: Option<Period>,
    pause: Duration,
    expires: Time,
}

/// What was observed since `begin`.
#[derive(Debug)]
struct Period {
    begin: Time,
    packets: u64,
    /// The shortest pause that an association tolerates.
    tolerable: Duration,
}

impl Load {
    fn observe(&mut self, now: Time, packets: u64, tolerable: Duration) {
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

    fn pause(&self, now: Time) -> Duration {
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

    /// After half a second in which so many packets pass each millisecond.
    fn load_of(per_ms: u64, tolerable: Duration) -> Load {
        let mut load = Load::default();
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
        let mut load = Load::default();
        // Two calls, 100 packets per second in each direction.
        (0..100).for_each(|sent| load.observe(at(5 * sent), 1, ms(2)));
        assert_eq!(load.pause(at(500)), Duration::ZERO);
    }

    #[test]
    fn all_associations_tolerate_the_pause() {
        let mut load = Load::default();
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
        // The first packets after silence are rare ones.
        load.observe(at(5000), 7, ms(2));
        assert_eq!(load.pause(at(5001)), Duration::ZERO);
    }

    #[test]
    fn a_thread_that_has_nothing_to_do_is_woken_less_often() {
        let moderation = Arc::new(Moderation::default());
        let mut builder = tokio::runtime::Builder::new_current_thread();
        moderation.clone().moderate(&mut builder);
        let runtime = builder.enable_time().build().unwrap();
        runtime.block_on(async {
            while moderation.pause().is_zero() {
                moderation.observe(7, ms(2));
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            let begin = moderation.clock.now();
            let mut woken = 0;
            while !moderation.pause().is_zero() {
                tokio::time::sleep(std::time::Duration::from_micros(100)).await;
                woken += 1;
            }
            let lasted = moderation.clock.now().since(begin);
            assert!(woken >= 1 && ms(2) * (woken - 1) <= lasted, "{woken} in {lasted}");
        });
    }
}
