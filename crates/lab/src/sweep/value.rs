//! One value of a varied key, with conversions for scenario and table.

use ropewalk_base::{Duration, Rate};
use ropewalk_scenario::{
    duration_text, parse_duration, parse_rate, parse_size, rate_text, size_text,
};

/// Units that are relative to a scenario, with their suffixes for column names.
const COUNTED: [(&str, &str); 2] = [("packets", "_packets"), ("BDP", "_bdp")];

/// A value, with its type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `20 ms`.
    Time(Duration),
    /// `2 Mbit/s`.
    Rate(Rate),
    /// `45 kB`, in bytes.
    Size(u64),
    /// `50 packets` or `1.5 BDP`: the number, and the index of the unit.
    Counted(f64, usize),
    /// A number without a unit.
    Number(f64),
    /// `true` or `false`.
    Flag(bool),
    /// A name, a list or a table, as written.
    Text(String),
}

impl Value {
    /// Parses a value; quotes around a quantity are ignored.
    pub(super) fn parse(text: &str) -> Self {
        let inner = unquoted(text);
        if inner == text {
            if let Some(number) = number(text) {
                return Self::Number(number);
            }
            if let Ok(flag) = text.parse() {
                return Self::Flag(flag);
            }
        }
        let counted = || {
            let mut units = COUNTED.iter().enumerate();
            units.find_map(|(unit, (name, _))| {
                Some(Self::Counted(number(inner.strip_suffix(name)?.trim_end())?, unit))
            })
        };
        let time = parse_duration(inner).map(Self::Time).ok();
        let quantity = time
            .or_else(|| parse_rate(inner).map(Self::Rate).ok())
            .or_else(|| parse_size(inner).map(Self::Size).ok())
            .or_else(counted);
        // Keep the quotes: with them, `'7'` is a text in the override too.
        quantity.unwrap_or_else(|| Self::Text(text.to_owned()))
    }

    /// The value in the syntax of an override. Parsing it gives the same value.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Time(time) => duration_text(*time),
            Self::Rate(rate) => rate_text(*rate),
            Self::Size(bytes) => size_text(*bytes),
            Self::Counted(number, unit) => format!("{number} {}", COUNTED[*unit].0),
            Self::Number(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    /// Suffix of the column's name: the unit, as in all results.
    pub(super) const fn suffix(&self) -> &'static str {
        match self {
            Self::Time(_) => "_s",
            Self::Rate(_) => "_bps",
            Self::Size(_) => "_bytes",
            Self::Counted(_, unit) => COUNTED[*unit].1,
            Self::Number(_) | Self::Flag(_) | Self::Text(_) => "",
        }
    }

    /// Whether both values fit into one column.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        core::mem::discriminant(self) == core::mem::discriminant(other)
            && self.suffix() == other.suffix()
    }

    /// The number in the unit that [`Value::suffix`] names.
    pub(super) fn as_number(&self) -> Option<f64> {
        match self {
            Self::Time(time) => Some(time.as_secs_f64()),
            Self::Rate(rate) => Some(rate.as_bps() as f64),
            Self::Size(bytes) => Some(*bytes as f64),
            Self::Counted(number, _) | Self::Number(number) => Some(*number),
            Self::Flag(_) | Self::Text(_) => None,
        }
    }
}

/// Parses a number in TOML syntax, without names such as `inf` and `nan`.
fn number(text: &str) -> Option<f64> {
    let plain = |c: char| c.is_ascii_digit() || "+-._eE".contains(c);
    if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        || !text.chars().all(plain)
    {
        return None;
    }
    text.replace('_', "").parse().ok().filter(|number: &f64| number.is_finite())
}

/// `text` without enclosing quotes.
pub(super) fn unquoted(text: &str) -> &str {
    let between = |quote: char| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains(quote)).then_some(inner)
    };
    between('"').or_else(|| between('\'')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_with_their_type_and_written_as_the_scenario_takes_them() {
        for (text, value, written) in [
            ("20ms", Value::Time(Duration::from_millis(20)), "20 ms"),
            ("'1.5 s'", Value::Time(Duration::from_millis(1500)), "1500 ms"),
            ("2 Mbit/s", Value::Rate(Rate::from_bps(2_000_000)), "2 Mbit/s"),
            ("\"45 kB\"", Value::Size(45_000), "45 kB"),
            ("50 packets", Value::Counted(50.0, 0), "50 packets"),
            ("1.5BDP", Value::Counted(1.5, 1), "1.5 BDP"),
            ("1e-3", Value::Number(1e-3), "0.001"),
            ("1_000", Value::Number(1000.0), "1000"),
            ("true", Value::Flag(true), "true"),
            ("daps", Value::Text("daps".into()), "daps"),
            ("inf", Value::Text("inf".into()), "inf"),
            ("'7'", Value::Text("'7'".into()), "'7'"),
            ("['a','b']", Value::Text("['a','b']".into()), "['a','b']"),
        ] {
            assert_eq!(Value::parse(text), value, "{text}");
            assert_eq!(value.text(), written, "{text}");
        }
    }

    #[test]
    fn only_values_of_one_kind_and_unit_share_a_column() {
        let like = |a: &str, b: &str| Value::parse(a).is_like(&Value::parse(b));
        assert!(like("20ms", "1 s") && like("1", "0.5") && like("a", "b"));
        assert!(!like("20ms", "20kB") && !like("1 BDP", "1 packets") && !like("0", "0 s"));
    }
}
