//! The measured effect of an attack, and its bound.

use std::path::Path;

use serde_json::{Map, Value, json};

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// An attack on this binary.
pub struct Attack {
    pub name: &'static str,
    pub run: fn(&Path) -> Result<Figure, Failure>,
    /// Repeatable on a busy machine, and finished within seconds.
    pub cheap: bool,
}

/// Bound of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// A measured figure.
#[derive(Clone, Debug)]
pub struct Figure {
    pub what: &'static str,
    pub unit: &'static str,
    pub value: f64,
    pub bound: Bound,
    /// Details that explain the figure.
    details: Map<String, Value>,
}

impl Figure {
    pub fn new(what: &'static str, unit: &'static str, value: f64, bound: Bound) -> Self {
        Self { what, unit, value, bound, details: Map::new() }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    pub fn holds(&self) -> bool {
        match self.bound {
            Bound::AtMost(most) => self.value <= most,
            Bound::AtLeast(least) => self.value >= least,
        }
    }

    pub fn json(&self, attack: &str) -> String {
        let (side, bound) = match self.bound {
            Bound::AtMost(bound) => ("at_most", bound),
            Bound::AtLeast(bound) => ("at_least", bound),
        };
        json!({
            "attack": attack, "figure": self.what, "value": rounded(self.value), "unit": self.unit,
            side: bound, "holds": self.holds(), "details": self.details,
        })
        .to_string()
    }

    pub fn heading(before: bool) -> &'static str {
        if before {
            "| attack | figure | before | now | bound | holds |\n| --- | --- | ---: | ---: | ---: | --- |"
        } else {
            "| attack | figure | value | bound | holds |\n| --- | --- | ---: | ---: | --- |"
        }
    }

    /// A row of the table. `before` holds the JSON lines of an earlier run.
    pub fn row(&self, attack: &str, before: Option<&str>) -> String {
        let bound = match self.bound {
            Bound::AtMost(bound) => format!("<= {bound}"),
            Bound::AtLeast(bound) => format!(">= {bound}"),
        };
        let earlier = before.map_or(String::new(), |text| format!(" {} |", earlier(text, attack)));
        let holds = if self.holds() { "yes" } else { "NO" };
        let (what, unit, value) = (self.what, self.unit, rounded(self.value));
        format!("| {attack} | {what}, {unit} |{earlier} {value} | {bound} | {holds} |")
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The value of this attack in the lines of an earlier run.
fn earlier(lines: &str, attack: &str) -> String {
    let parsed = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let same = parsed.into_iter().find(|line| line["attack"] == attack);
    same.map_or("-".to_owned(), |line| line["value"].to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_held_against_its_bound_and_beside_an_earlier_one() {
        let figure = Figure::new("growth", "MB", 12.34567, Bound::AtMost(100.0)).with("n", 7);
        assert!(figure.holds());
        assert!(!Figure { bound: Bound::AtLeast(13.0), ..figure.clone() }.holds());
        let line = figure.json("state");
        assert_eq!(earlier(&line, "state"), "12.346");
        assert_eq!(earlier(&line, "other"), "-");
        let row = figure.row("state", Some(&line));
        assert_eq!(row, "| state | growth, MB | 12.346 | 12.346 | <= 100 | yes |");
    }
}
