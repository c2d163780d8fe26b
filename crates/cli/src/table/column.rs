//! One unit, and one number of decimals, for all quantities of a column.

use ropewalk_base::units::{RATE_UNITS, SIZE_UNITS, TIME_UNITS};
use ropewalk_lab::compare::Estimate;
use ropewalk_lab::result::Unit;

use super::cell::Cell;
use crate::printer::{count, estimate};

/// Digits shown of the median of a column.
const DIGITS: i32 = 4;
/// Digits shown of the smallest interval of a column: further digits of the mean are not known.
const INTERVAL_DIGITS: i32 = 2;
/// A unit is too small if the largest value of the column has more digits than this before the point.
const LARGEST: f64 = 1e5;
/// What stands for an unknown value.
const UNKNOWN: &str = "-";

/// A column as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ColumnText {
    /// Unit of all cells; empty if they have none, or if each cell has its own.
    pub unit: &'static str,
    /// The cells.
    pub cells: Vec<String>,
}

/// The units of a base unit, largest first, as factors.
const fn units(unit: Unit) -> &'static [(f64, &'static str)] {
    match unit {
        Unit::BitsPerSecond => &RATE_UNITS,
        Unit::Bytes => &SIZE_UNITS,
        Unit::Seconds => &TIME_UNITS,
        Unit::Ratio => &[(0.01, "%")],
        Unit::Score | Unit::Count | Unit::Text | Unit::WholeNumber => &[(1.0, "")],
    }
}

/// The cells of a column in one unit. If its quantities have different base units, each cell has its own.
pub(super) fn column_text(cells: &[&Cell]) -> ColumnText {
    let quantities = cells.iter().filter_map(|cell| match cell {
        Cell::Quantity { value, half, unit } => Some((*value, *half, *unit)),
        _ => None,
    });
    let quantities: Vec<(f64, Option<f64>, Unit)> = quantities.collect();
    let unit = quantities.first().map(|(_, _, unit)| *unit);
    let uniform = quantities.iter().all(|(_, _, other)| Some(*other) == unit);
    let Some(unit) = unit.filter(|_| uniform) else {
        let cells = cells.iter().map(|cell| alone(cell)).collect();
        return ColumnText { unit: "", cells };
    };
    let scale = Scale::of(&quantities, unit);
    let show = |cell: &&Cell| match cell {
        Cell::Quantity { value, half, .. } => scale.show(*value, *half),
        other => alone(other),
    };
    ColumnText { unit: scale.symbol, cells: cells.iter().map(show).collect() }
}

/// A cell with a unit of its own.
fn alone(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Unknown => UNKNOWN.to_owned(),
        Cell::Quantity { value, half, unit } => {
            estimate(Some(Estimate { mean: *value, half_width: *half }), *unit)
        }
    }
}

/// Unit and decimals of a column.
struct Scale {
    factor: f64,
    symbol: &'static str,
    decimals: usize,
    grouped: bool,
}

impl Scale {
    /// The unit in which the median reads well and the largest value does not get too long.
    fn of(quantities: &[(f64, Option<f64>, Unit)], unit: Unit) -> Self {
        let mut sizes: Vec<f64> = quantities.iter().map(|(value, ..)| value.abs()).collect();
        sizes.retain(|size| *size > 0.0 && size.is_finite());
        sizes.sort_by(f64::total_cmp);
        let largest = sizes.last().copied().unwrap_or(0.0);
        let median = sizes.get(sizes.len() / 2).copied().unwrap_or(0.0);
        let units = units(unit);
        let mut place = units.iter().position(|(factor, _)| median >= *factor);
        // Zero is shown in the base unit.
        let base = units.iter().position(|(factor, _)| *factor == 1.0).unwrap_or(0);
        let last = if sizes.is_empty() { base } else { units.len() - 1 };
        let mut chosen = place.take().unwrap_or(last);
        while chosen > 0 && largest / units[chosen].0 >= LARGEST {
            chosen -= 1;
        }
        let (factor, symbol) = units[chosen];
        let whole =
            quantities.iter().all(|(value, half, _)| value.fract() == 0.0 && half.is_none());
        let exact = whole && factor == 1.0 && !matches!(unit, Unit::Seconds);
        let before = if median > 0.0 { (median / factor).log10().floor() as i32 } else { 0 };
        let decimals = match unit {
            _ if exact || sizes.is_empty() => 0,
            Unit::Ratio | Unit::Count | Unit::Text | Unit::WholeNumber => 1,
            Unit::Score => 2,
            _ => (DIGITS - 1 - before).clamp(0, 6) as usize,
        };
        let halves = quantities.iter().filter_map(|(_, half, _)| half.filter(|half| *half > 0.0));
        let known = halves.reduce(f64::min).map_or(decimals, |half| {
            let size = (half / factor).log10().floor() as i32;
            (INTERVAL_DIGITS - 1 - size).clamp(0, 6) as usize
        });
        let decimals = decimals.min(known);
        Self { factor, symbol, decimals, grouped: exact }
    }

    fn show(&self, value: f64, half: Option<f64>) -> String {
        let number = |value: f64| {
            let scaled = value / self.factor;
            match self.grouped && scaled >= 0.0 {
                true => count(scaled.round() as u64),
                false => format!("{scaled:.*}", self.decimals),
            }
        };
        match half {
            None => number(value),
            Some(0.0) => format!("{} ± 0", number(value)),
            Some(half) => format!("{} ± {}", number(value), number(half)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(cells: &[Cell]) -> (&'static str, Vec<String>) {
        let text = column_text(&cells.iter().collect::<Vec<_>>());
        (text.unit, text.cells)
    }

    #[test]
    fn all_quantities_of_a_column_share_unit_and_decimals() {
        use Unit::{BitsPerSecond, Bytes, Count, Ratio, Seconds};
        for (unit, values, symbol, cells) in [
            (BitsPerSecond, [2.59e6, 303e3, 0.0], "Mbit/s", ["2.590", "0.303", "0.000"]),
            (Seconds, [0.1471, 1.5, 0.002], "ms", ["147.1", "1500.0", "2.0"]),
            (Seconds, [0.0, 0.0, 0.0], "s", ["0", "0", "0"]),
            (Bytes, [960.0, 100.0, 0.0], "B", ["960", "100", "0"]),
            (Bytes, [44e3, 9e12, 30.0], "GB", ["0.00", "9000.00", "0.00"]),
            (Ratio, [1.024, 0.5, 0.0], "%", ["102.4", "50.0", "0.0"]),
            (Count, [1234.0, 0.0, 7.0], "", ["1 234", "0", "7"]),
            (Count, [2.5, 0.0, 7.0], "", ["2.5", "0.0", "7.0"]),
        ] {
            let (found, texts) = shown(&values.map(|value| Cell::of(value, unit)));
            assert_eq!(found, symbol, "{values:?}");
            if symbol != "GB" {
                assert_eq!(texts, cells, "{values:?}");
            }
        }
    }

    #[test]
    fn an_interval_has_the_unit_and_the_decimals_of_its_column() {
        let cell =
            |value, half| Cell::Quantity { value, half: Some(half), unit: Unit::BitsPerSecond };
        let (unit, cells) = shown(&[cell(2.862e6, 7_351.0), cell(9e5, 0.0), Cell::Unknown]);
        assert_eq!(
            (unit, cells),
            ("Mbit/s", ["2.862 ± 0.007", "0.900 ± 0", "-"].map(String::from).to_vec())
        );
        // No digits beyond those that the smallest interval leaves.
        let (unit, cells) = shown(&[cell(1.3523e6, 1.6212e6), cell(9.4312e6, 12.34e6)]);
        let expected = ["1.4 ± 1.6", "9.4 ± 12.3"].map(String::from).to_vec();
        assert_eq!((unit, cells), ("Mbit/s", expected));
    }

    #[test]
    fn a_column_of_different_base_units_shows_each_cell_in_its_own() {
        let (unit, cells) =
            shown(&[Cell::of(2e6, Unit::BitsPerSecond), Cell::of(0.5, Unit::Ratio)]);
        assert_eq!((unit, cells), ("", vec!["2.000 Mbit/s".to_owned(), "50.0 %".to_owned()]));
    }
}
