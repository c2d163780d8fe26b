//! Formats numbers with units for people; kB is 1000 bytes.

use ropewalk_base::units::{RATE_UNITS, SIZE_UNITS, TIME_UNITS, in_largest_unit};

use super::row::{Row, Value};

/// `value` of `unit` (`bit/s`, `B`, `s`, `ratio` or any other word) for people: `2.59 Mbit/s`.
pub fn quantity(value: f64, unit: &str) -> String {
    let scales: &[(f64, &str)] = match unit {
        "bit/s" => &RATE_UNITS,
        "B" => &SIZE_UNITS,
        "s" => &TIME_UNITS,
        "ratio" => return format!("{} %", plain(value * 100.0)),
        "" | "1" => return plain(value),
        other => return format!("{} {other}", plain(value)),
    };
    if value == 0.0 {
        return format!("0 {unit}");
    }
    let (value, name) = in_largest_unit(value, scales);
    format!("{} {name}", plain(value))
}

/// A value of a row for people; `–` for none.
pub fn value(value: Option<&Value>, unit: &str) -> String {
    match value {
        None => "–".to_owned(),
        Some(Value::Number(number)) => quantity(*number, unit),
        Some(Value::Text(text)) => text.clone(),
    }
}

/// The difference of a row: `+5.0 %`, or `+5.0 points` between percentages; `–` for none.
pub fn difference(row: &Row) -> String {
    let (found, unit) = match row.difference_points {
        Some(points) => (Some(points), "points"),
        None => (row.difference, "%"),
    };
    found.map_or_else(|| "–".to_owned(), |found| signed(found, unit))
}

/// A fraction in signed hundredths: `+5.0 %`.
pub fn signed(fraction: f64, unit: &str) -> String {
    format!("{:+.1} {unit}", fraction * 100.0 + 0.0)
}

/// Formats up to four significant digits without trailing zeros after the decimal point.
fn plain(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.fract() == 0.0 && value.abs() < 1e9 {
        return format!("{value:.0}");
    }
    let decimals = (3 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_as_people_say_them() {
        let cases = [
            (2.5912e6, "bit/s", "2.591 Mbit/s"),
            (50_000.0, "B", "50 kB"),
            (0.0394, "s", "39.4 ms"),
            (0.0, "s", "0 s"),
            (0.425, "ratio", "42.5 %"),
            (3.3333, "", "3.333"),
            (12.0, "packets", "12 packets"),
            (-1.5e6, "bit/s", "-1.5 Mbit/s"),
        ];
        for (number, unit, expected) in cases {
            assert_eq!(quantity(number, unit), expected);
        }
    }

    #[test]
    fn differences_have_a_sign_and_a_missing_one_a_dash() {
        let shown = |found| difference(&Row { difference: found, ..Row::default() });
        assert_eq!(shown(Some(0.0512)), "+5.1 %");
        assert_eq!(shown(Some(-0.2)), "-20.0 %");
        assert_eq!(shown(Some(0.0)), "+0.0 %");
        assert_eq!(shown(None), "–");
        let points = Row { difference_points: Some(-0.136), ..Row::default() };
        assert_eq!(difference(&points), "-13.6 points");
    }
}
