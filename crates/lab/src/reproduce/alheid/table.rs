//! Tables of a scenario: paper, `chihani2011` and `rfc8684` side by side.

use ropewalk_base::statistics::mean;

use super::super::decide::Accepted;
use super::super::expected::{Entry, Expected};
use super::super::interval::of_values;
use super::super::judge::{empty_row, fraction};
use super::super::plan::Runs;
use super::super::row::{Row, Seeds, Verdict};
use super::cell::{Cell, Preset, Printed, printed};
use super::scenarios;

/// A row for each cell. The printed values are compared with `chihani2011`.
///
/// # Errors
/// A message if the statement is incomplete, or if a run failed.
pub fn rows(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Vec<Row>, String> {
    let [scenario] = scenarios(entry)?[..] else {
        return Err("a table of one scenario".to_owned());
    };
    let modelled = Cell::all(scenario, Preset::Chihani2011);
    let real = Cell::all(scenario, Preset::Rfc8684);
    let mut rows = Vec::new();
    for ((modelled, real), printed) in modelled.zip(real).zip(printed(scenario)?) {
        let values = modelled.values(expected, &entry.quantity, runs)?;
        let real = mean(&real.values(expected, &entry.quantity, runs)?);
        let mut empty_row = empty_row(expected, entry);
        empty_row.readings.extend(modelled.settings());
        let empty_row =
            Row { case: modelled.label(), simulated_value: Some(real.into()), ..empty_row };
        rows.push(row(empty_row, entry, &values, printed)?);
    }
    Ok(rows)
}

fn row(empty_row: Row, entry: &Entry, values: &[f64], printed: Printed) -> Result<Row, String> {
    let found = of_values(values, 1)?;
    let empty_row = Row {
        model_value: Some(found.mean.into()),
        interval: Some(found.ends()),
        seeds: Some(Seeds::Drawn(values.len() as u32)),
        verdict: Verdict::Shown,
        ..empty_row
    };
    let paper = match entry.quantity.as_str() {
        "out_of_order.ratio" => printed.ratio,
        "out_of_order.max_bytes" => printed.max_bytes,
        // The study shows throughput as bars without numbers.
        _ => return Ok(empty_row),
    };
    let allowed = entry.tolerance.ok_or("a table without its tolerance")?.around(paper);
    let decision = Accepted::around_zero(allowed).decide(found.map(|value| value - paper));
    Ok(Row {
        paper_value: Some(paper.into()),
        reference_value: Some(paper),
        difference: fraction(found.mean, paper),
        verdict: decision.of_value(),
        ..empty_row
    })
}
