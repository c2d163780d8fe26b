//! Runs of the kernel that were recorded earlier.

use serde::{Deserialize, Serialize};

use super::{KernelTransport, Observed};

/// The schema of the document of `validate --json`.
pub const SCHEMA: &str = "ropewalk.validate/1";

/// What the options of a run have changed in its scenarios; null: nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Changes {
    /// Length of each transfer, s.
    pub time_s: Option<f64>,
    /// Initial time that all figures leave out, s.
    pub warmup_s: Option<f64>,
    /// Path of TCP.
    pub path: Option<String>,
}

/// The runs of the kernel in a document of `validate --json`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Recorded {
    schema: String,
    /// Release of the kernel.
    pub kernel: String,
    /// What its options have changed.
    pub options: Changes,
    cells: Vec<RecordedCell>,
}

/// The runs of the kernel in one cell.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct RecordedCell {
    scenario: String,
    transport: String,
    /// Each run; not empty.
    pub kernel: Vec<Observed>,
    /// How late the emulator was at most, s.
    pub lateness_s: f64,
}

impl Recorded {
    /// Parses a document.
    ///
    /// # Errors
    /// A message if the document is invalid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let found: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if found.schema != SCHEMA {
            return Err(format!("its schema is \"{}\", not \"{SCHEMA}\"", found.schema));
        }
        match found.cells.iter().find(|cell| cell.kernel.is_empty()) {
            Some(cell) => Err(format!("{}, {} has no run", cell.scenario, cell.transport)),
            None => Ok(found),
        }
    }

    /// The cell of a scenario and a transport, if it was recorded.
    pub fn cell(&self, scenario: &str, transport: KernelTransport) -> Option<&RecordedCell> {
        let same = |cell: &&RecordedCell| {
            cell.scenario == scenario && cell.transport == transport.as_str()
        };
        self.cells.iter().find(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_validate_prints_is_read_again() {
        let seen = Observed { goodput_bps: 1e6 / 3.0, ..Observed::default() };
        let cell = |kernel: &[Observed]| serde_json::json!({ "scenario": "a", "transport": "mptcp", "kernel": kernel, "lateness_s": 0.002 });
        let text = |schema: &str, kernel: &[Observed]| {
            serde_json::json!({ "schema": schema, "kernel": "6.18", "options": Changes::default(), "cells": [cell(kernel)] })
                .to_string()
        };
        let found =
            Recorded::parse(&text(SCHEMA, std::slice::from_ref(&seen))).expect("a document");
        let cell = found.cell("a", KernelTransport::Mptcp).expect("recorded");
        assert_eq!((cell.kernel.as_slice(), cell.lateness_s), ([seen.clone()].as_slice(), 0.002));
        assert_eq!(found.cell("a", KernelTransport::TcpReno), None);
        assert!(Recorded::parse(&text(SCHEMA, &[])).is_err_and(|error| error.contains("no run")));
        assert!(Recorded::parse(&text("x/1", &[seen])).is_err_and(|error| error.contains("x/1")));
        assert!(Recorded::parse("{}").is_err());
    }
}
