//! A constant rate.

use ropewalk_base::{Rate, RateClock, Serialisation, Time};

use super::Service;

#[derive(Clone, Debug)]
pub(in crate::link) struct Constant {
    rate: Rate,
    clock: RateClock,
    /// Size and serialisation time of the last packet: the next one probably has the same size.
    last: (u32, Serialisation),
    /// End of the last transmission.
    free: Time,
}

impl Constant {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            rate,
            clock: RateClock::default(),
            last: (0, Serialisation::default()),
            free: Time::ZERO,
        }
    }

    #[inline]
    pub(super) fn next_start(&self, ready: Time) -> Time {
        ready.max(self.free)
    }

    #[inline]
    pub(super) fn serve(&mut self, ready: Time, bytes: u32) -> Service {
        let start = self.next_start(ready);
        if self.last.0 != bytes {
            self.last = (bytes, Serialisation::of(self.rate, u64::from(bytes)));
        }
        self.free = start.saturating_add(self.clock.add(self.rate, self.last.1));
        Service { start, depart: self.free }
    }

    pub(super) fn capacity_bytes(&self, until: Time) -> u64 {
        self.rate.bytes_in(until.since(Time::ZERO))
    }
}
