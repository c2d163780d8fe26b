//! The same rate for ever.

use ropewalk_base::{Rate, RateClock, Serialisation, Time};

use super::Service;

#[derive(Clone, Debug)]
pub(in crate::link) struct Constant {
    rate: Rate,
    clock: RateClock,
    /// What the last size of packet takes: the next one is likely to have it too.
    last: (u32, Serialisation),
    /// When the last packet's last bit has been sent.
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
