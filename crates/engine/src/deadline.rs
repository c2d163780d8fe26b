//! A deadline that is computed only when a timer may have changed.

use ropewalk_base::Time;

/// The earliest of several timers. It is recomputed only after [`CachedDeadline::invalidate`], so an
/// input that changes no timer need not visit them.
///
/// [`Time::FAR_FUTURE`]: no timer runs. [`Time::ZERO`]: stale. A timer due at that instant is computed
/// every time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedDeadline(Time);

impl CachedDeadline {
    /// A deadline that has not been computed.
    pub const STALE: Self = Self(Time::ZERO);

    /// A timer may have changed.
    #[inline]
    pub const fn invalidate(&mut self) {
        *self = Self::STALE;
    }

    /// The deadline. `compute` returns the earliest timer, or [`Time::FAR_FUTURE`] if none runs.
    #[inline]
    pub fn get(&self, compute: impl Fn() -> Time) -> Time {
        debug_assert!(self.is_stale() || self.0 == compute(), "a timer moved unnoticed");
        if self.is_stale() { compute() } else { self.0 }
    }

    /// Whether [`CachedDeadline::store`] must be called.
    #[inline]
    pub fn is_stale(&self) -> bool {
        self.0 == Time::ZERO
    }

    /// Stores the deadline.
    #[inline]
    pub const fn store(&mut self, earliest: Time) {
        self.0 = earliest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_computed_until_it_is_stored_and_again_after_a_change() {
        let at = Time::from_nanos;
        let mut deadline = CachedDeadline::STALE;
        assert_eq!(deadline.get(|| at(5)), at(5));
        deadline.store(at(5));
        assert!(!deadline.is_stale());
        assert_eq!(deadline.get(|| at(5)), at(5));
        deadline.invalidate();
        assert_eq!(deadline.get(|| at(3)), at(3));
    }
}
