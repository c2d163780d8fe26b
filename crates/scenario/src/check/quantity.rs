//! Checks of numbers with units, with suggestions for mistakes.

use ropewalk_base::{Duration, Rate};

use super::{Checker, Value, describe};
use crate::error::ProblemKind;
use crate::keys::{Extra, Kind};
use crate::quantity::{Decimal, Dimension, Quantity, QuantityError, base_text};
use crate::suggest;
use crate::tree::Node;

impl Checker<'_> {
    /// Checks text such as `20 ms` as a value of `kind`, a quantity or a number of packets.
    pub(super) fn quantity(
        &mut self,
        kind: &Kind,
        text: &str,
        node: &Node,
        path: &str,
    ) -> Option<Value> {
        let quantity = match Quantity::parse(text) {
            Ok(quantity) => quantity,
            Err(error) => {
                self.not_a_quantity(kind, error, node, path);
                return None;
            }
        };
        if quantity.unit.is_empty() {
            self.no_unit(kind, node, path);
            return None;
        }
        if quantity.number.negative {
            let message = format!("`{path}` = {} is negative", node.excerpt(self.sources));
            let help = format!("it takes {}", describe(kind));
            self.problem(&node.span, ProblemKind::OutOfRange, path, message, help);
            return None;
        }
        match kind {
            Kind::Packets { min, max } => self.packets(&quantity, *min, *max, kind, node, path),
            Kind::Quantity { dimension, min, max, also } => {
                match also.iter().find(|e| is_unit(**e, quantity.unit)) {
                    Some(Extra::Packets) => {
                        self.packets(&quantity, 1, u64::from(u32::MAX), kind, node, path)
                    }
                    Some(Extra::Bdp) => self.bdp(text, node, path),
                    None => {
                        let value = self.base_units(&quantity, *dimension, kind, node, path)?;
                        self.within(value, *dimension, *min, *max, node, path)
                    }
                }
            }
            other => unreachable!("{other:?} is not a quantity"),
        }
    }

    /// Reports a number without a unit.
    pub(super) fn no_unit(&mut self, kind: &Kind, node: &Node, path: &str) {
        let text = node.excerpt(self.sources);
        let message = format!("`{path}` = {text} has no unit");
        let number = text.trim_matches(['"', '\'']);
        let value = number.parse().unwrap_or(0.0);
        let takes = format!("it takes {}", describe(kind));
        // A zero of some unit is rarely intended, and usually out of range.
        let help = if value == 0.0 {
            takes
        } else {
            format!("write \"{number} {}\", say; {takes}", usual_unit(kind, value))
        };
        self.problem(&node.span, ProblemKind::WrongUnit, path, message, help);
    }

    fn not_a_quantity(&mut self, kind: &Kind, error: QuantityError, node: &Node, path: &str) {
        let text = node.excerpt(self.sources);
        let message = match error {
            QuantityError::TooLong => format!("`{path}` = {text} has too many digits"),
            _ => format!("`{path}` = {text} does not begin with a number"),
        };
        let help = format!("it takes {}", describe(kind));
        self.problem(&node.span, ProblemKind::WrongType, path, message, help);
    }

    fn packets(
        &mut self,
        quantity: &Quantity<'_>,
        min: u64,
        max: u64,
        kind: &Kind,
        node: &Node,
        path: &str,
    ) -> Option<Value> {
        if !is_unit(Extra::Packets, quantity.unit) {
            self.wrong_unit(quantity, kind, node, path);
            return None;
        }
        let valid = format!("{min} to {max} packets");
        match quantity.number.times(1) {
            Ok(n) if (min..=max).contains(&n) => Some(Value::Packets(n)),
            Ok(n) => {
                let near = if n < min { min } else { max };
                self.out_of_range(node, path, &valid, &format!("\"{near} packets\""));
                None
            }
            Err(_) => {
                let message = format!(
                    "`{path}` = {} is not a whole number of packets up to {max}",
                    node.excerpt(self.sources)
                );
                self.problem(&node.span, ProblemKind::OutOfRange, path, message, String::new());
                None
            }
        }
    }

    fn bdp(&mut self, text: &str, node: &Node, path: &str) -> Option<Value> {
        let number = text.trim().trim_end_matches("BDP").trim_end().replace('_', "");
        match number.parse::<f64>() {
            Ok(x) if x > 0.0 && x <= 1e6 => Some(Value::Bdp(x)),
            _ => {
                self.out_of_range(node, path, "above 0 to 1000000 BDP", "\"1 BDP\"");
                None
            }
        }
    }

    fn base_units(
        &mut self,
        quantity: &Quantity<'_>,
        dimension: Dimension,
        kind: &Kind,
        node: &Node,
        path: &str,
    ) -> Option<u64> {
        let Some((_, worth)) = dimension.units().iter().find(|u| u.0 == quantity.unit) else {
            self.wrong_unit(quantity, kind, node, path);
            return None;
        };
        match quantity.number.times(*worth) {
            Ok(value) => Some(value),
            Err(QuantityError::NotWhole) => {
                let unit = dimension.base_unit();
                let message = format!(
                    "`{path}` = {} is not a whole number of {unit}",
                    node.excerpt(self.sources)
                );
                let help = format!("the smallest step is 1 {unit}");
                self.problem(&node.span, ProblemKind::OutOfRange, path, message, help);
                None
            }
            // A number beyond 64 bits exceeds every limit.
            Err(_) => Some(u64::MAX),
        }
    }

    fn within(
        &mut self,
        value: u64,
        dimension: Dimension,
        min: u64,
        max: u64,
        node: &Node,
        path: &str,
    ) -> Option<Value> {
        if !(min..=max).contains(&value) {
            let text = |v| base_text(dimension, v);
            let near = if value < min { min } else { max };
            let valid = format!("{} to {}", text(min), text(max));
            self.out_of_range(node, path, &valid, &format!("\"{}\"", text(near)));
            return None;
        }
        Some(match dimension {
            Dimension::Time => Value::Time(Duration::from_nanos(value)),
            Dimension::Rate => Value::Rate(Rate::from_bps(value)),
            Dimension::Size => Value::Bytes(value),
        })
    }

    fn wrong_unit(&mut self, quantity: &Quantity<'_>, kind: &Kind, node: &Node, path: &str) {
        let unit = quantity.unit;
        let text = node.excerpt(self.sources);
        let (dimension, also) = match kind {
            Kind::Quantity { dimension, also, .. } => (Some(*dimension), *also),
            _ => (None, &[Extra::Packets][..]),
        };
        let message = match Dimension::of_unit(unit) {
            Some(other) if Some(other) != dimension => {
                format!("`{path}` = {text} is {}", other.with_article())
            }
            _ => format!("`{path}` = {text}: there is no unit `{unit}` here"),
        };
        let mut units: Vec<_> = dimension.iter().flat_map(|d| d.units()).map(|u| u.0).collect();
        units.extend(also.iter().map(|e| e.unit()));
        let hint = dimension.and_then(|d| usual_slip(d, unit)).or_else(|| {
            let same = Dimension::of_unit(unit).is_none();
            let near = suggest::nearest(unit, &units).filter(|_| same)?;
            Some(format!("did you mean `{near}`?"))
        });
        let valid = format!("it takes {}", describe(kind));
        let help = hint.map_or_else(|| valid.clone(), |hint| format!("{hint} {valid}"));
        self.problem(&node.span, ProblemKind::WrongUnit, path, message, help);
    }
}

/// The most likely unit of a number without one.
fn usual_unit(kind: &Kind, number: f64) -> &'static str {
    // A time that may exceed two hours is the length of a run, not a delay.
    const HOUR: u64 = 3_600_000_000_000;
    match kind {
        Kind::Quantity { dimension: Dimension::Time, max, .. } if *max > 2 * HOUR => "s",
        Kind::Quantity { dimension: Dimension::Time, .. } => "ms",
        Kind::Quantity { dimension: Dimension::Rate, .. } if number >= 1e4 => "bit/s",
        Kind::Quantity { dimension: Dimension::Rate, .. } => "Mbit/s",
        Kind::Quantity { also, .. } if number >= 1e3 || also.is_empty() => "B",
        _ => "packets",
    }
}

/// Alternative names of units, for suggestions.
const LONG_NAMES: &[(&str, &str)] = &[
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("msec", "ms"),
    ("millis", "ms"),
    ("usec", "us"),
    ("\u{b5}s", "us"),
    ("\u{3bc}s", "us"),
    ("m", "min"),
    ("mins", "min"),
    ("minute", "min"),
    ("minutes", "min"),
    ("byte", "B"),
    ("bytes", "B"),
    ("pkt", "packets"),
    ("pkts", "packets"),
];

/// A hint for ambiguous units: bits or bytes, 1000 or 1024.
fn usual_slip(dimension: Dimension, unit: &str) -> Option<String> {
    let lower = unit.to_lowercase();
    if let Some((_, meant)) = LONG_NAMES.iter().find(|(long, _)| *long == lower) {
        return Some(format!("did you mean `{meant}`?"));
    }
    let prefix = match lower.chars().next()? {
        'k' => "k",
        'm' => "M",
        'g' => "G",
        'b' => "",
        _ => return None,
    };
    match dimension {
        Dimension::Rate
            if ["bps", "b/s", "bit", "bits", "bits/s", "bit/s", "bitps"]
                .contains(&lower.trim_start_matches(['k', 'm', 'g'])) =>
        {
            Some(format!("write `{prefix}bit/s` for bits or `{prefix}B/s` for bytes;"))
        }
        Dimension::Size if lower.ends_with('b') && lower.len() == 2 => {
            let binary = prefix.to_uppercase();
            Some(format!(
                "write `{prefix}B` for powers of 1000 or `{binary}iB` for powers of 1024;"
            ))
        }
        _ => None,
    }
}

fn is_unit(extra: Extra, unit: &str) -> bool {
    extra.spellings().contains(&unit)
}

/// Parses a size, a rate or a time outside of a file, for arguments of other programs.
pub(crate) fn read(dimension: Dimension, text: &str) -> Result<u64, String> {
    let quantity = Quantity::parse(text)
        .map_err(|_| format!("`{text}` is not {}", dimension.with_article()))?;
    let Quantity { number, unit }: Quantity<'_> = quantity;
    let number: Decimal = number;
    let units = dimension.unit_list();
    if unit.is_empty() {
        return Err(format!("`{text}` has no unit; it takes {units}"));
    }
    let worth = dimension.units().iter().find(|u| u.0 == unit).map(|u| u.1).ok_or_else(|| {
        let slip = usual_slip(dimension, unit).map_or(String::new(), |slip| format!("; {slip}"));
        format!("`{text}` is not {} in {units}{slip}", dimension.with_article())
    })?;
    if number.negative {
        return Err(format!("`{text}` is negative"));
    }
    number.times(worth).map_err(|_| {
        format!("`{text}` is not a whole number of {} within 64 bits", dimension.base_unit())
    })
}
