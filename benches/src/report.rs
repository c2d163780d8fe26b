//! The report: Markdown for people, JSON for programs.

use serde::Serialize;

use crate::machine::Machine;
use crate::row::{Findings, Row};

/// A finished section.
#[derive(Clone, Debug, Serialize)]
pub struct Done {
    /// Name on the command line.
    pub name: &'static str,
    /// Title.
    pub title: &'static str,
    /// Wall-clock time, s.
    pub took_s: f64,
    /// Findings.
    #[serde(flatten)]
    pub findings: Findings,
    /// Why it stopped, if it did.
    pub error: Option<String>,
}

/// Everything measured in one run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    schema: &'static str,
    /// The machine.
    pub machine: Machine,
    /// The finished sections.
    pub sections: Vec<Done>,
}

impl Report {
    /// A report without sections.
    pub const fn new(machine: Machine) -> Self {
        Self { schema: "ropewalk.bench/1", machine, sections: Vec::new() }
    }

    /// Whether every section finished without an error.
    pub fn is_whole(&self) -> bool {
        self.sections.iter().all(|section| section.error.is_none())
    }

    /// The report as one JSON document.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings, numbers and lists are always JSON")
    }

    /// The report as Markdown tables.
    pub fn markdown(&self) -> String {
        let mut text = format!("# Figures\n\n{}\n", self.machine.line());
        for warning in &self.machine.warnings {
            text += &format!("\n> {warning}\n");
        }
        for section in &self.sections {
            text += &section.markdown();
        }
        text + &self.summary()
    }

    fn summary(&self) -> String {
        let rows = || self.sections.iter().flat_map(|s| s.findings.rows.iter());
        let with_target = rows().filter(|row| row.met.is_some()).count();
        let missed: Vec<&Row> = rows().filter(|row| row.met == Some(false)).collect();
        let met = with_target - missed.len();
        let mut text = format!("\n## Summary\n\n{met} of {with_target} targets met.\n");
        for row in missed {
            let target = row.target.as_deref().unwrap_or_default();
            text += &format!("* missed: {}: {} (target: {target})\n", row.what, row.measured);
        }
        text
    }
}

impl Done {
    fn markdown(&self) -> String {
        let mut text = format!("\n## {}: {}\n\n", self.name, self.title);
        if !self.findings.rows.is_empty() {
            text += "| what | target | measured | met |\n| --- | --- | --- | --- |\n";
        }
        for row in &self.findings.rows {
            let target = row.target.as_deref().unwrap_or("");
            let cells = [&row.what, target, &row.measured, row.met_text()].map(cell);
            text += &format!("| {} |\n", cells.join(" | "));
        }
        if !self.findings.notes.is_empty() {
            text += "\n";
        }
        for note in &self.findings.notes {
            text += &format!("* {note}\n");
        }
        if let Some(error) = &self.error {
            text += &format!("\n**Not measured to the end**: {error}\n");
        }
        text
    }
}

/// Escapes vertical bars, which would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(error: Option<String>) -> Report {
        let rows = vec![
            Row::told("goodput | steady", 2.0, "2 Mbit/s").with_target(">= 1 Mbit/s", true),
            Row::told("start", 80.0, "80 ms").with_target("<= 50 ms", false),
            Row::skipped("ns-2", "no `ns`"),
        ];
        let findings = Findings { rows, notes: vec!["A note.".to_owned()] };
        let done = Done { name: "speed", title: "How fast", took_s: 1.0, findings, error };
        Report { sections: vec![done], ..Report::new(Machine::default()) }
    }

    #[test]
    fn the_table_has_a_line_for_each_figure_and_the_summary_names_what_is_missed() {
        let text = report(None).markdown();
        for line in [
            "| goodput \\| steady | >= 1 Mbit/s | 2 Mbit/s | yes |",
            "| start | <= 50 ms | 80 ms | **no** |",
            "| ns-2 |  | skipped: no `ns` |  |",
            "* A note.",
            "1 of 2 targets met.",
            "* missed: start: 80 ms (target: <= 50 ms)",
        ] {
            assert!(text.lines().any(|l| l == line), "no line `{line}` in\n{text}");
        }
    }

    #[test]
    fn a_section_that_stopped_is_shown_and_makes_the_report_incomplete() {
        let stopped = report(Some("out of paths".to_owned()));
        assert!(stopped.markdown().contains("**Not measured to the end**: out of paths"));
        assert!(!stopped.is_whole() && report(None).is_whole());
    }

    #[test]
    fn the_document_carries_numbers_and_a_schema() {
        let document: serde_json::Value = serde_json::from_str(&report(None).json()).unwrap();
        assert_eq!(document["schema"], "ropewalk.bench/1");
        assert_eq!(document["sections"][0]["rows"][1]["value"], 80.0);
        assert_eq!(document["sections"][0]["rows"][2]["met"], serde_json::Value::Null);
    }
}
