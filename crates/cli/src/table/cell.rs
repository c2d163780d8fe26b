//! One cell of a table.

use ropewalk_lab::compare::Estimate;
use ropewalk_lab::result::Unit;

/// A cell: text, or a quantity whose unit the column chooses.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text, shown unchanged.
    Text(String),
    /// A quantity in its base unit, with half of its confidence interval if there is one.
    Quantity {
        /// In the base unit.
        value: f64,
        /// Half of the confidence interval.
        half: Option<f64>,
        /// The base unit.
        unit: Unit,
    },
    /// Not known.
    Unknown,
}

impl Cell {
    /// A quantity.
    pub const fn of(value: f64, unit: Unit) -> Self {
        Self::Quantity { value, half: None, unit }
    }

    /// A quantity that may be unknown.
    pub fn known(value: Option<f64>, unit: Unit) -> Self {
        value.map_or(Self::Unknown, |value| Self::of(value, unit))
    }

    /// A mean with its interval, or unknown.
    pub fn mean(estimate: Option<Estimate>, unit: Unit) -> Self {
        estimate.map_or(Self::Unknown, |Estimate { mean, half_width }| Self::Quantity {
            value: mean,
            half: half_width,
            unit,
        })
    }

    /// A number of things.
    pub const fn count(count: u64) -> Self {
        Self::of(count as f64, Unit::Count)
    }

    /// Half of the interval of a quantity.
    pub(super) const fn half_width(&self) -> Option<f64> {
        match self {
            Self::Quantity { half, .. } => *half,
            _ => None,
        }
    }

    /// The value of a quantity.
    pub(super) const fn value(&self) -> Option<f64> {
        match self {
            Self::Quantity { value, .. } => Some(*value),
            _ => None,
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
