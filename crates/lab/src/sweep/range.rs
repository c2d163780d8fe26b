//! Ranges of values: `20ms..400ms/20`, `30kB..3MB/5 log`.

use ropewalk_base::{Duration, Rate};

use super::value::Value;

/// Maximum number of values of a range.
pub const RANGE_MAX: usize = 10_000;

/// Spacing of the values of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spacing {
    Linear,
    Logarithmic,
}

/// The values of `text`, including both ends, if it is a range. `None` otherwise.
///
/// # Errors
/// A message in one sentence if the range is invalid.
pub(super) fn parse(text: &str) -> Option<Result<Vec<Value>, String>> {
    let (from, rest) = text.split_once("..")?;
    // A file name such as `../drive.mahi` also contains two dots.
    let starts = |c: char| c.is_ascii_digit() || "+-.".contains(c);
    from.trim().starts_with(starts).then(|| range(from.trim(), rest.trim()))
}

fn range(from: &str, rest: &str) -> Result<Vec<Value>, String> {
    let (to, steps) =
        rest.rsplit_once('/').ok_or("the range does not say how many values it has")?;
    let (steps, spacing) = match steps.trim().strip_suffix("log") {
        Some(number) => (number.trim(), Spacing::Logarithmic),
        None => (steps.trim(), Spacing::Linear),
    };
    let count = steps.parse().ok().filter(|count| (2..=RANGE_MAX).contains(count));
    let count =
        count.ok_or_else(|| format!("`{steps}` is no number of values from 2 to {RANGE_MAX}"))?;
    let (first, last) = (Value::parse(from), Value::parse(to.trim()));
    if !first.is_like(&last) {
        return Err(format!("`{from}` and `{}` are not of one kind", to.trim()));
    }
    match spacing {
        Spacing::Linear => linear(&first, &last, count),
        Spacing::Logarithmic => logarithmic(&first, &last, count),
    }
}

/// Evenly spaced values, in whole base units if the kind has them, so that every value is exact.
fn linear(first: &Value, last: &Value, count: usize) -> Result<Vec<Value>, String> {
    let steps = count as i128 - 1;
    if let (Some(a), Some(b)) = (whole(first), whole(last)) {
        let (a, b) = (i128::from(a), i128::from(b));
        let at = |i: i128| (2 * (a * (steps - i) + b * i) + steps).div_euclid(2 * steps);
        return Ok((0..=steps).map(|i| with_whole(first, at(i) as u64)).collect());
    }
    let (Some(a), Some(b)) = (first.as_number(), last.as_number()) else {
        return Err(not_a_number(first));
    };
    // Twelve digits remove errors of binary fractions: 0.3, not 0.30000000000000004.
    let at = |i: i128| rounded((a * (steps - i) as f64 + b * i as f64) / steps as f64, 12);
    Ok((0..=steps).map(|i| with_number(first, at(i))).collect())
}

/// Logarithmically spaced values, rounded to six digits: readable, and independent of the mathematical library.
fn logarithmic(first: &Value, last: &Value, count: usize) -> Result<Vec<Value>, String> {
    let number = |value: &Value| match whole(value) {
        Some(units) => Some(units as f64),
        None => value.as_number(),
    };
    let (Some(a), Some(b)) = (number(first), number(last)) else {
        return Err(not_a_number(first));
    };
    if a <= 0.0 || b <= 0.0 {
        return Err("both ends of a logarithmic range are above zero".to_owned());
    }
    let steps = count - 1;
    let between = |i: usize| {
        let exponent = (b / a).ln() * i as f64 / steps as f64;
        let value = rounded(a * exponent.exp(), 6);
        match whole(first) {
            Some(_) => with_whole(first, value.round() as u64),
            None => with_number(first, value),
        }
    };
    let middle = (1..steps).map(between);
    Ok(core::iter::once(first.clone()).chain(middle).chain([last.clone()]).collect())
}

fn not_a_number(value: &Value) -> String {
    format!("`{}` is neither a number nor a quantity", value.text())
}

/// The value in base units, for kinds with whole units only.
const fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Time(time) => Some(time.as_nanos()),
        Value::Rate(rate) => Some(rate.as_bps()),
        Value::Size(bytes) => Some(*bytes),
        _ => None,
    }
}

fn with_whole(kind: &Value, units: u64) -> Value {
    match kind {
        Value::Time(_) => Value::Time(Duration::from_nanos(units)),
        Value::Rate(_) => Value::Rate(Rate::from_bps(units)),
        _ => Value::Size(units),
    }
}

const fn with_number(kind: &Value, number: f64) -> Value {
    match kind {
        Value::Counted(_, unit) => Value::Counted(number, *unit),
        _ => Value::Number(number),
    }
}

/// `value` rounded to this many significant digits.
fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits - 1).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Result<Vec<String>, String> {
        let values = parse(text).expect("a range")?;
        Ok(values.iter().map(Value::text).collect())
    }

    #[test]
    fn ranges_have_both_ends_and_exact_values_in_between() {
        for (range, values) in [
            ("20ms..400ms/20", &["20 ms", "40 ms"][..]),
            ("1 Mbit/s..2 Mbit/s/3", &["1 Mbit/s", "1500 kbit/s", "2 Mbit/s"]),
            ("10kB..9kB/3", &["10 kB", "9500 B", "9 kB"]),
            ("0..1/4", &["0", "0.333333333333", "0.666666666667", "1"]),
            ("0..0.4/5", &["0", "0.1", "0.2", "0.3", "0.4"]),
            ("1..8/8", &["1", "2", "3", "4", "5", "6", "7", "8"]),
            ("10 packets..30packets/2", &["10 packets", "30 packets"]),
            ("-1..1/3", &["-1", "0", "1"]),
            ("1e-4..1e-1/4 log", &["0.0001", "0.001", "0.01", "0.1"]),
            ("1kB..1MB/4log", &["1 kB", "10 kB", "100 kB", "1 MB"]),
            ("20ms..400ms/3 log", &["20 ms", "89442700 ns", "400 ms"]),
        ] {
            let made = texts(range).unwrap_or_else(|error| panic!("{range}: {error}"));
            assert_eq!(made[..values.len()], *values, "{range}");
        }
        let twenty = texts("20ms..400ms/20").expect("a range");
        assert_eq!((twenty.len(), twenty[19].as_str()), (20, "400 ms"));
    }

    #[test]
    fn what_is_wrong_with_a_range_is_said() {
        for (range, reason) in [
            ("1ms..2ms", "how many"),
            ("1ms..2ms/1", "`1` is no number of values"),
            ("1ms..2ms/x", "`x` is no number of values"),
            ("1ms..2ms/99999", "from 2 to 10000"),
            ("1ms..2kB/3", "`1ms` and `2kB` are not of one kind"),
            ("20..400ms/3", "`20` and `400ms` are not of one kind"),
            ("1x..2y/3", "neither a number"),
            ("0..1/3 log", "above zero"),
            ("1 Mbit/s..2 Mbit/s", "`s` is no number of values"),
        ] {
            let error = texts(range).expect_err(range);
            assert!(error.contains(reason), "{range}: {error}");
        }
        for other in ["daps", "../drive.mahi", "traces/..", "1ms"] {
            assert!(parse(other).is_none(), "{other}");
        }
    }
}
