//! Rates in bits per second, and serialisation times without rounding errors.

use core::fmt;

use crate::time::Duration;

/// Units of rates, largest first, in bit/s.
pub const RATE_UNITS: [(f64, &str); 4] =
    [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
/// Units of sizes, largest first, in bytes.
pub const SIZE_UNITS: [(f64, &str); 4] = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];
/// Units of times, largest first, in seconds.
pub const TIME_UNITS: [(f64, &str); 3] = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];

/// `value` in the largest of `units` in which it is at least 1, otherwise in the last one.
///
/// # Panics
/// If there are no units.
pub fn in_largest_unit<'a>(value: f64, units: &[(f64, &'a str)]) -> (f64, &'a str) {
    let fits = |(worth, _): &&(f64, &str)| value.abs() >= *worth;
    let (worth, unit) = units.iter().find(fits).or(units.last()).expect("a unit");
    (value / worth, unit)
}

/// A rate in whole bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

impl Rate {
    /// Rate zero.
    pub const ZERO: Self = Self(0);

    /// `bits` bits per second.
    #[inline]
    pub const fn from_bps(bits: u64) -> Self {
        Self(bits)
    }

    /// Bits per second.
    #[inline]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Time for `bytes` bytes, rounded up to a nanosecond. For estimates; links use [`RateClock`].
    ///
    /// # Panics
    /// If the rate is zero.
    #[inline]
    pub const fn time_for(self, bytes: u64) -> Duration {
        assert!(self.0 > 0, "nothing is ever sent at a rate of zero");
        let nanos = (bytes as u128 * 8_000_000_000).div_ceil(self.0 as u128);
        Duration::from_nanos(nanos as u64)
    }

    /// Number of whole bytes in `d`.
    #[inline]
    pub const fn bytes_in(self, d: Duration) -> u64 {
        (self.0 as u128 * d.as_nanos() as u128 / 8_000_000_000) as u64
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        match n {
            0..1_000 => write!(f, "{n} bit/s"),
            1_000..1_000_000 => write!(f, "{} kbit/s", n as f64 / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{} Mbit/s", n as f64 / 1e6),
            _ => write!(f, "{} Gbit/s", n as f64 / 1e9),
        }
    }
}

/// Serialisation of packets at a rate, exact over any number of packets: the remainder of each division is
/// carried to the next packet, so that `n` packets take `n * bits / rate` to the nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateClock {
    /// Remainder in bit-nanoseconds that was not charged yet, less than the last rate.
    remainder: u64,
}

/// Time for a number of bytes at a rate: whole nanoseconds, and the remainder of the division. Computed once
/// for many packets of one size, because the division is slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Serialisation {
    nanos: u64,
    rest: u64,
}

impl Serialisation {
    /// The time for `bytes` bytes at `rate`.
    ///
    /// # Panics
    /// If the rate is zero.
    pub fn of(rate: Rate, bytes: u64) -> Self {
        let mut clock = RateClock::default();
        let nanos = clock.serialise(rate, bytes).as_nanos();
        Self { nanos, rest: clock.remainder }
    }
}

impl RateClock {
    /// The time for the next bytes, whose serialisation at `rate` is `piece`.
    #[inline]
    pub fn add(&mut self, rate: Rate, piece: Serialisation) -> Duration {
        // Both remainders are less than the rate.
        let rest = u128::from(self.remainder) + u128::from(piece.rest);
        let over = rest >= u128::from(rate.as_bps());
        self.remainder = (rest - if over { u128::from(rate.as_bps()) } else { 0 }) as u64;
        Duration::from_nanos(piece.nanos + u64::from(over))
    }

    /// The time for the next `bytes` bytes at `rate`.
    ///
    /// # Panics
    /// If the rate is zero.
    #[inline]
    pub fn serialise(&mut self, rate: Rate, bytes: u64) -> Duration {
        let rate = rate.as_bps();
        assert!(rate > 0, "nothing is ever sent at a rate of zero");
        // Up to 2 GB fit into 64 bits; larger sizes use 128 bits.
        match bytes.checked_mul(8_000_000_000).and_then(|n| n.checked_add(self.remainder)) {
            Some(work) => {
                self.remainder = work % rate;
                Duration::from_nanos(work / rate)
            }
            None => {
                let work = bytes as u128 * 8_000_000_000 + self.remainder as u128;
                self.remainder = (work % rate as u128) as u64;
                Duration::from_nanos((work / rate as u128) as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_packets_take_exactly_their_bits() {
        // 1500 B at 7 Mbit/s is 1 714 285.714... ns: the remainder must not be lost.
        let mut clock = RateClock::default();
        let rate = Rate::from_bps(7_000_000);
        let total: u64 = (0..1_000_000).map(|_| clock.serialise(rate, 1500).as_nanos()).sum();
        assert_eq!(total, 12_000_000_000u64 * 1_000_000_000 / 7_000_000);
    }

    #[test]
    fn pieces_known_beforehand_take_what_the_clock_says() {
        for bps in [7_000_000, 3, u64::MAX / 2, 123_456_789] {
            let (mut one, mut other) = (RateClock::default(), RateClock::default());
            let rate = Rate::from_bps(bps);
            let piece = Serialisation::of(rate, 1500);
            for _ in 0..100 {
                assert_eq!(one.serialise(rate, 1500), other.add(rate, piece));
                assert_eq!(one, other, "{bps} bit/s");
            }
        }
    }

    #[test]
    fn a_huge_packet_takes_the_wide_road_to_the_same_answer() {
        let rate = Rate::from_bps(1_000_000_000_000);
        let bytes = 3_000_000_000;
        assert_eq!(RateClock::default().serialise(rate, bytes), Duration::from_millis(24));
    }

    #[test]
    fn estimates_round_up_and_bytes_round_down() {
        assert_eq!(Rate::from_bps(3).time_for(1).as_nanos(), 2_666_666_667);
        assert_eq!(Rate::from_bps(8_000).bytes_in(Duration::from_micros(1_999)), 1);
    }
}
