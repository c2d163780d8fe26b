//! Capacity of this machine for simultaneous transfers.

use parking_lot::{Condvar, Mutex};
use ropewalk_scenario::{Path, Scenario};

/// Total link rate per core, bit/s. A transfer at 100 Mbit/s was measured to take half of a core, and the emulator
/// takes two thirds of that.
const RATE_PER_CORE: u64 = 80_000_000;

/// Capacity for links with a limited sum of rates.
#[derive(Debug)]
pub struct Room {
    all_bps: u64,
    free_bps: Mutex<u64>,
    freed: Condvar,
}

impl Room {
    /// The capacity of a machine with this many cores.
    pub fn new(cores: usize) -> Self {
        let all_bps = RATE_PER_CORE * cores.max(1) as u64;
        Self { all_bps, free_bps: Mutex::new(all_bps), freed: Condvar::new() }
    }

    /// Does `work` once there is capacity for links of `rate_bps`. Links that exceed the capacity run alone.
    pub fn with<T>(&self, rate_bps: u64, work: impl FnOnce() -> T) -> T {
        let taken = rate_bps.min(self.all_bps);
        let mut free = self.free_bps.lock();
        while *free < taken {
            self.freed.wait(&mut free);
        }
        *free -= taken;
        drop(free);
        let result = work();
        *self.free_bps.lock() += taken;
        self.freed.notify_all();
        result
    }
}

/// The total rate of the paths with these indices, bit/s.
pub fn rate_bps(scenario: &Scenario, places: &[usize]) -> u64 {
    let of = |path: &Path| {
        let shared = path.via.iter().map(|at| scenario.links[*at].up.capacity.mean_rate());
        let slowest = shared.chain([path.up.capacity.mean_rate()]).min();
        slowest.map_or(0, |rate| rate.as_bps())
    };
    places.iter().map(|at| of(&scenario.paths[*at])).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn no_more_runs_at_the_same_time_than_there_is_room_for() {
        let room = Room::new(2);
        let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for rate in [50, 200, 70, 50, 120, 90, 10].map(|mbit| mbit * 1_000_000) {
                let (room, now, most) = (&room, &now, &most);
                scope.spawn(move || {
                    room.with(rate, || {
                        let taken = rate.min(160_000_000);
                        most.fetch_max(
                            now.fetch_add(taken, Ordering::SeqCst) + taken,
                            Ordering::SeqCst,
                        );
                        thread::yield_now();
                        now.fetch_sub(taken, Ordering::SeqCst);
                    });
                });
            }
        });
        assert!((1..=160_000_000).contains(&most.into_inner()));
        assert_eq!(room.free_bps.into_inner(), 160_000_000);
    }

    #[test]
    fn a_shared_link_limits_the_rate_of_its_path() {
        let text = "[[link]]\nname = 'l'\nrate = '20 Mbit/s'\n\
            [[path]]\nname = 'a'\nrate = '1 Gbit/s'\nrtt = '20 ms'\nvia = ['l']\n\
            [[path]]\nname = 'b'\nrate = '5 Mbit/s'\nrtt = '20 ms'\n";
        let scenario = Scenario::parse(text, "a.toml").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(rate_bps(&scenario, &[0, 1]), 25_000_000);
        assert_eq!(rate_bps(&scenario, &[1]), 5_000_000);
    }
}
