//! The same rate for ever.

use ropewalk_base::{Rate, RateClock, Time};

use super::Service;

#[derive(Clone, Debug)]
pub(in crate::link) struct Constant {
    rate: Rate,
    clock: RateClock,
    /// When the last packet's last bit has been sent.
    free: Time,
}

impl Constant {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, clock: RateClock::default(), free: Time::ZERO }
    }

    #[inline]
    pub(super) fn next_start(&self, ready: Time) -> Time {
        ready.max(self.free)
    }

    #[inline]
    pub(super) fn serve(&mut self, ready: Time, bytes: u32) -> Service {
        let start = self.next_start(ready);
        self.free = start.saturating_add(self.clock.serialise(self.rate, u64::from(bytes)));
        Service { start, depart: self.free }
    }

    pub(super) fn capacity_bytes(&self, until: Time) -> u64 {
        self.rate.bytes_in(until.since(Time::ZERO))
    }
}
