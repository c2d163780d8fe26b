//! Exact parsing and formatting of numbers with units, without floating point.

use ropewalk_base::{Duration, Rate};

/// A family of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// Base unit: nanosecond.
    Time,
    /// Base unit: bit per second.
    Rate,
    /// Base unit: byte.
    Size,
}

impl Dimension {
    pub(crate) const ALL: [Self; 3] = [Self::Time, Self::Rate, Self::Size];

    /// "a time", "a rate", "a size".
    pub(crate) const fn with_article(self) -> &'static str {
        match self {
            Self::Time => "a time",
            Self::Rate => "a rate",
            Self::Size => "a size",
        }
    }

    /// Units with their values in base units; of equal units, the first is used for output.
    pub(crate) const fn units(self) -> &'static [(&'static str, u64)] {
        match self {
            Self::Time => &[
                ("ns", 1),
                ("us", 1_000),
                ("ms", 1_000_000),
                ("s", 1_000_000_000),
                ("min", 60_000_000_000),
            ],
            Self::Rate => &[
                ("bit/s", 1),
                ("kbit/s", 1_000),
                ("Mbit/s", 1_000_000),
                ("Gbit/s", 1_000_000_000),
                ("B/s", 8),
                ("kB/s", 8_000),
                ("MB/s", 8_000_000),
                ("GB/s", 8_000_000_000),
            ],
            Self::Size => &[
                ("B", 1),
                ("kB", 1_000),
                ("KiB", 1 << 10),
                ("MB", 1_000_000),
                ("MiB", 1 << 20),
                ("GB", 1_000_000_000),
                ("GiB", 1 << 30),
            ],
        }
    }

    /// Name of the base unit.
    pub(crate) const fn base_unit(self) -> &'static str {
        self.units()[0].0
    }

    /// The units in words: "ns, us, ms, s or min".
    pub(crate) fn unit_list(self) -> String {
        let names: Vec<_> = self.units().iter().map(|u| u.0).collect();
        crate::suggest::or_list(&names)
    }

    fn worth(self, unit: &str) -> Option<u64> {
        self.units().iter().find(|u| u.0 == unit).map(|u| u.1)
    }

    /// The family of a unit.
    pub(crate) fn of_unit(unit: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.worth(unit).is_some())
    }
}

/// A decimal number with an optional unit, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quantity<'a> {
    pub(crate) number: Decimal,
    pub(crate) unit: &'a str,
}

/// `mantissa` x 10^`exponent`, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub(crate) negative: bool,
    mantissa: u128,
    exponent: i32,
}

/// Microseconds with the micro sign and with the Greek letter mu.
pub(crate) const MICROSECONDS: [&str; 2] = ["\u{b5}s", "\u{3bc}s"];

/// Error in parsing a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuantityError {
    /// The text does not begin with a number.
    NoNumber,
    /// The number has too many digits.
    TooLong,
    /// The value is not a whole multiple of the base unit.
    NotWhole,
    /// The value exceeds 64 bits of the base unit.
    TooLarge,
}

impl<'a> Quantity<'a> {
    /// Splits `"1.5 Mbit/s"` into its number and its unit.
    pub(crate) fn parse(text: &'a str) -> Result<Self, QuantityError> {
        let text = text.trim();
        let end = number_end(text);
        let number = Decimal::parse(&text[..end])?;
        let unit = text[end..].trim_start();
        Ok(Self { number, unit: if MICROSECONDS.contains(&unit) { "us" } else { unit } })
    }
}

/// End of the number at the beginning of `text`. An `e` belongs to it only if digits follow.
fn number_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    while at < bytes.len() && matches!(bytes[at], b'0'..=b'9' | b'.' | b'_') {
        at += 1;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let digits = bytes[at + 1 + sign..].iter().take_while(|b| b.is_ascii_digit()).count();
        if digits > 0 {
            at += 1 + sign + digits;
        }
    }
    at
}

impl Decimal {
    /// Parses a number such as `-1_000.5e3`.
    pub(crate) fn parse(text: &str) -> Result<Self, QuantityError> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (digits, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], text[at + 1..].parse().map_err(|_| QuantityError::TooLong)?),
            None => (text, 0i32),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let mut mantissa: u128 = 0;
        let mut count = 0;
        for byte in whole.bytes().chain(fraction.bytes()).filter(|b| *b != b'_') {
            if !byte.is_ascii_digit() {
                return Err(QuantityError::NoNumber);
            }
            count += 1;
            mantissa = mantissa * 10 + u128::from(byte - b'0');
            // 28 digits times the largest unit still fit into 128 bits.
            if mantissa > 10u128.pow(27) {
                return Err(QuantityError::TooLong);
            }
        }
        if count == 0 {
            return Err(QuantityError::NoNumber);
        }
        let places = fraction.bytes().filter(u8::is_ascii_digit).count() as i32;
        let exponent = exponent.checked_sub(places).ok_or(QuantityError::TooLong)?;
        Ok(Self { negative, mantissa, exponent })
    }

    /// The absolute value times `worth`, if that is a whole number.
    pub(crate) fn times(self, worth: u64) -> Result<u64, QuantityError> {
        if self.mantissa == 0 {
            return Ok(0);
        }
        let mut value = self.mantissa * u128::from(worth);
        let mut exponent = self.exponent;
        while exponent < 0 {
            if !value.is_multiple_of(10) {
                return Err(QuantityError::NotWhole);
            }
            value /= 10;
            exponent += 1;
        }
        while exponent > 0 {
            value = value.checked_mul(10).ok_or(QuantityError::TooLarge)?;
            exponent -= 1;
        }
        u64::try_from(value).map_err(|_| QuantityError::TooLarge)
    }
}

/// Formats `value` base units in the largest unit that divides it.
fn in_largest_unit(value: u64, units: &[(&str, u64)]) -> String {
    let fits = |u: &&(&str, u64)| value.is_multiple_of(u.1) && value >= u.1;
    let (unit, worth) = units.iter().filter(fits).max_by_key(|u| u.1).unwrap_or(&units[0]);
    format!("{} {unit}", value / worth)
}

/// Formats a time such as `"20 ms"`: exact, in the largest unit that keeps it whole.
///
/// ```
/// use ropewalk_base::Duration;
/// assert_eq!(ropewalk_scenario::duration_text(Duration::from_micros(1500)), "1500 us");
/// ```
pub fn duration_text(duration: Duration) -> String {
    if duration.is_zero() {
        return "0 s".into();
    }
    // Minutes are accepted but not written: "3600 s" is clearer to most people than "60 min".
    in_largest_unit(duration.as_nanos(), &Dimension::Time.units()[..4])
}

/// Formats a rate such as `"2 Mbit/s"`: exact, in the largest unit of bits that keeps it whole.
pub fn rate_text(rate: Rate) -> String {
    in_largest_unit(rate.as_bps(), &Dimension::Rate.units()[..4])
}

/// Formats a size such as `"45 kB"` or `"128 KiB"`: exact, in the largest unit that keeps it whole.
pub fn size_text(bytes: u64) -> String {
    in_largest_unit(bytes, Dimension::Size.units())
}

/// Formats `value` base units of `dimension`.
pub(crate) fn base_text(dimension: Dimension, value: u64) -> String {
    match dimension {
        Dimension::Time => duration_text(Duration::from_nanos(value)),
        Dimension::Rate => rate_text(Rate::from_bps(value)),
        Dimension::Size => size_text(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(dimension: Dimension, text: &str) -> Result<u64, QuantityError> {
        let quantity = Quantity::parse(text)?;
        quantity.number.times(dimension.worth(quantity.unit).expect("a unit of the dimension"))
    }

    #[test]
    fn quantities_are_read_exactly() {
        for (dimension, text, value) in [
            (Dimension::Time, "20 ms", 20_000_000),
            (Dimension::Time, "0.1s", 100_000_000),
            (Dimension::Time, "1e3 us", 1_000_000),
            (Dimension::Time, "1.5 min", 90_000_000_000),
            (Dimension::Time, "7 \u{b5}s", 7_000),
            (Dimension::Time, "7\u{3bc}s", 7_000),
            (Dimension::Time, "0 s", 0),
            (Dimension::Rate, "1.6 Mbit/s", 1_600_000),
            (Dimension::Rate, "2 MB/s", 16_000_000),
            (Dimension::Rate, "1_000 bit/s", 1_000),
            (Dimension::Size, "45 kB", 45_000),
            (Dimension::Size, "128KiB", 131_072),
            (Dimension::Size, "0.3 GB", 300_000_000),
        ] {
            assert_eq!(read(dimension, text), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_is_not_exact_is_refused() {
        for (dimension, text, error) in [
            (Dimension::Time, "0.5 ns", QuantityError::NotWhole),
            (Dimension::Size, "1.0001 kB", QuantityError::NotWhole),
            (Dimension::Size, "1e30 B", QuantityError::TooLarge),
            (Dimension::Rate, "1234567890123456789012345678901 bit/s", QuantityError::TooLong),
            (Dimension::Time, "1e99999999999 s", QuantityError::TooLong),
            (Dimension::Time, "1.2.3 s", QuantityError::NoNumber),
        ] {
            assert_eq!(read(dimension, text), Err(error), "{text}");
        }
        assert_eq!(Quantity::parse("fast"), Err(QuantityError::NoNumber));
        assert_eq!(Quantity::parse(""), Err(QuantityError::NoNumber));
    }

    #[test]
    fn what_is_written_reads_back_to_the_same_value() {
        for value in [0, 1, 7, 999, 1_000, 1_024, 1_500, 131_072, 45_000, 20_000_000_000, u64::MAX]
        {
            for dimension in Dimension::ALL {
                let text = base_text(dimension, value);
                assert_eq!(read(dimension, &text), Ok(value), "{text}");
            }
        }
    }

    #[test]
    fn values_are_written_as_a_person_would() {
        assert_eq!(duration_text(Duration::from_secs(100)), "100 s");
        assert_eq!(duration_text(Duration::ZERO), "0 s");
        assert_eq!(rate_text(Rate::from_bps(1_600_000)), "1600 kbit/s");
        assert_eq!(size_text(131_072), "128 KiB");
        assert_eq!(size_text(45_000), "45 kB");
        assert_eq!(size_text(1_500), "1500 B");
    }
}
