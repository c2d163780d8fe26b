//! The tables of a scenario: paper, `chihani2011` and `rfc8684` side by side.

use super::super::expected::{Entry, Expected};
use super::super::judge::{blank, fraction};
use super::super::plan::Runs;
use super::super::row::{Row, Value, Verdict};
use super::cell::{Cell, Measured, Preset, Printed, printed};
use super::scenarios;

/// A row for each cell. What the study prints is compared with `chihani2011`.
///
/// # Errors
/// What the statement lacks, or why a run failed, in words.
pub fn rows(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Vec<Row>, String> {
    let [scenario] = scenarios(entry)?[..] else {
        return Err("a table of one scenario".to_owned());
    };
    let modelled = Cell::all(scenario, Preset::Chihani2011);
    let real = Cell::all(scenario, Preset::Rfc8684);
    let mut rows = Vec::new();
    for ((modelled, real), printed) in modelled.zip(real).zip(printed(scenario)?) {
        let model = modelled.measured(runs)?;
        let blank = Row {
            case: modelled.label(),
            simulated_value: Some(real.measured(runs)?.of(&entry.quantity)?.into()),
            ..blank(expected, entry)
        };
        rows.push(row(blank, entry, model, printed)?);
    }
    Ok(rows)
}

fn row(blank: Row, entry: &Entry, model: Measured, printed: Printed) -> Result<Row, String> {
    let model = model.of(&entry.quantity)?;
    let model_value = Some(Value::Number(model));
    let paper = match entry.quantity.as_str() {
        "out_of_order.ratio" => printed.ratio,
        "out_of_order.max_bytes" => printed.max_bytes,
        // The study shows throughput as bars without numbers.
        _ => return Ok(Row { model_value, verdict: Verdict::Shown, ..blank }),
    };
    let allowed = entry.tolerance.ok_or("a table without its tolerance")?.around(paper);
    Ok(Row {
        paper_value: Some(paper.into()),
        reference_value: Some(paper),
        model_value,
        difference: fraction(model, paper),
        verdict: Verdict::of_value((model - paper).abs() <= allowed),
        ..blank
    })
}
