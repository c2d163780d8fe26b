//! Quantities in human-readable units: Mbit/s, kB, ms. A kB is 1000 bytes.

use ropewalk_base::units::{RATE_UNITS, SIZE_UNITS, TIME_UNITS, in_largest_unit};
use ropewalk_lab::compare::Estimate;
use ropewalk_lab::result::Unit;

/// Four significant digits: `2.590`, `25.90`, `259.0`, `2590`.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v < 9.9995 => 3,
        v if v < 99.995 => 2,
        v if v < 999.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let (value, unit) = in_largest_unit(value, units);
    format!("{} {unit}", digits(value))
}

/// A rate in bit/s.
pub fn rate(bps: f64) -> String {
    if bps == 0.0 {
        return "0 bit/s".to_owned();
    }
    scaled(bps, &RATE_UNITS)
}

/// A size in bytes.
pub fn size(bytes: f64) -> String {
    if bytes.abs() < 1e3 && bytes.fract() == 0.0 {
        return format!("{bytes} B");
    }
    scaled(bytes, &SIZE_UNITS)
}

/// A time in seconds.
pub fn time(seconds: f64) -> String {
    if seconds == 0.0 {
        return "0 s".to_owned();
    }
    scaled(seconds, &TIME_UNITS)
}

/// A time in seconds, or a dash if it is not known.
pub fn time_or_dash(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), time)
}

/// Formats a fraction as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A value in its unit.
pub fn quantity(value: f64, unit: Unit) -> String {
    match unit {
        Unit::BitsPerSecond => rate(value),
        Unit::Bytes => size(value),
        Unit::Seconds => time(value),
        Unit::Ratio => percent(value),
        Unit::Score => format!("{value:.2}"),
        // The mean of several runs may be a fraction.
        Unit::Count if value.fract() != 0.0 && value < 1e3 => format!("{value:.1}"),
        Unit::Count | Unit::Text | Unit::WholeNumber => count(value.round() as u64),
    }
}

/// A mean with half of its confidence interval, if there is one; a dash if the mean is not known.
pub fn estimate(estimate: Option<Estimate>, unit: Unit) -> String {
    let show = |value| quantity(value, unit);
    match estimate {
        None => "-".to_owned(),
        Some(Estimate { mean, half_width: None }) => show(mean),
        Some(Estimate { mean, half_width: Some(0.0) }) => format!("{} ± 0", show(mean)),
        Some(Estimate { mean, half_width: Some(half) }) => {
            format!("{} ± {}", show(mean), show(half))
        }
    }
}

/// A count, with digits in groups of three.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_shown_in_the_unit_that_people_read() {
        for (shown, expected) in [
            (rate(2.59e6), "2.590 Mbit/s"),
            (rate(999.0), "999.0 bit/s"),
            (rate(0.0), "0 bit/s"),
            (rate(12.3456e9), "12.35 Gbit/s"),
            (size(45_000.0), "45.00 kB"),
            (size(0.0), "0 B"),
            (size(960.0), "960 B"),
            (size(12.5), "12.50 B"),
            (time(0.0123), "12.30 ms"),
            (time(100.0), "100.0 s"),
            (time(4.2e-7), "0.420 µs"),
            (time(0.0), "0 s"),
            (percent(0.9312), "93.1 %"),
            (time_or_dash(None), "-"),
        ] {
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn rounding_never_adds_a_digit() {
        assert_eq!(rate(9.9996e6), "10.00 Mbit/s");
        assert_eq!(rate(99.996e6), "100.0 Mbit/s");
    }

    #[test]
    fn counts_are_grouped_by_three() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1 000"), (1_234_567, "1 234 567")] {
            assert_eq!(count(number), text);
        }
    }
}
