//! One figure with its target.

use serde::Serialize;

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// The target in words. `None` if the figure has no target.
    pub target: Option<String>,
    /// The measured value in words.
    pub measured: String,
    /// The measured value as a number, in the unit that `measured` names. `None` if it could not be
    /// measured.
    pub value: Option<f64>,
    /// Whether the target is met. `None` if there is no target or no value.
    pub met: Option<bool>,
}

impl Row {
    /// A figure without a target.
    pub fn told(what: impl Into<String>, value: f64, measured: impl Into<String>) -> Self {
        let (what, measured) = (what.into(), measured.into());
        Self { what, target: None, measured, value: Some(value), met: None }
    }

    /// Adds a target.
    pub fn with_target(mut self, target: impl Into<String>, met: bool) -> Self {
        self.target = Some(target.into());
        self.met = Some(met);
        self
    }

    /// A figure that could not be measured, and why.
    pub fn skipped(what: impl Into<String>, reason: impl Into<String>) -> Self {
        let measured = format!("skipped: {}", reason.into());
        Self { what: what.into(), target: None, measured, value: None, met: None }
    }

    /// `yes`, `NO`, or nothing.
    pub const fn met_text(&self) -> &'static str {
        match self.met {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        }
    }
}

/// Findings of a section.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    /// Figures.
    pub rows: Vec<Row>,
    /// Additional notes, one line each.
    pub notes: Vec<String>,
}
