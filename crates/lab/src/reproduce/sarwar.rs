//! Equations 5 and 6 of Sarwar et al. 2013: the order of reception, and forward delays by timestamps.

use ropewalk_models::order::receive_order;
use ropewalk_models::period;

use super::csv::Table;
use super::data;
use super::expected::{Entry, Expected};
use super::judge::{empty_row, fraction};
use super::plan::{RunKey, Runs};
use super::row::{Row, Seeds, Verdict};

/// Key of the order vector.
pub const ORDER: &str = "receive_order";
/// Key of the difference between the forward delays of two paths.
pub const FORWARD_DELAY: &str = "forward_delay_difference_s";

/// The run that measures forward delays.
pub fn key(paper: &str, entry: &Entry) -> Option<RunKey> {
    let file = entry.scenario.as_ref()?;
    (entry.quantity == FORWARD_DELAY).then(|| RunKey {
        folder: paper.to_owned(),
        file: file.clone(),
        sets: Vec::new(),
        series: false,
    })
}

/// The difference of the forward delays of two paths by Eq 6, from the scheduler's last estimates.
///
/// # Errors
/// A message if the statement is incomplete, or if the run failed.
pub fn forward_delay(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Row, String> {
    let paper_value = entry.paper_value.ok_or("a delay without its number")?;
    let key = key(&expected.paper, entry).ok_or("a delay without its scenario")?;
    let last = runs.get(&key)?.decisions.last().ok_or("a run without decisions")?;
    let [first, second] = last.paths.as_slice() else { return Err("two paths".to_owned()) };
    let measured = (second.forward_nanos as f64 - first.forward_nanos as f64) * 1e-9;
    let allowed = entry.tolerance.map_or(0.0, |t| t.around(paper_value));
    Ok(Row {
        simulated_value: Some(measured.into()),
        difference: fraction(measured, paper_value),
        seeds: Some(Seeds::Deterministic),
        verdict: Verdict::of_value((measured - paper_value).abs() <= allowed),
        ..empty_row(expected, entry)
    })
}

/// One row for each instant of the printed order.
///
/// # Errors
/// A message if the table or the model is invalid.
pub fn order(expected: &Expected, entry: &Entry) -> Result<Vec<Row>, String> {
    let setup = expected.slot.as_ref().ok_or("this paper has no slot model")?;
    let whole = period(&setup.delay_ticks, None).map_err(|e| e.to_string())?;
    let order = receive_order(&setup.delay_ticks, whole.ticks).map_err(|e| e.to_string())?;
    let ours = instants(&setup.delay_ticks, &order);
    let name = entry.table.as_deref().ok_or("a table without its file")?;
    let file = data::folder(&expected.paper).and_then(|folder| folder.file(name));
    let printed = Table::parse(file.ok_or_else(|| format!("there is no file {name}"))?)?;
    let mut rows = Vec::new();
    for line in printed.lines() {
        let tick = line.number("received_ms")? as u64;
        let ours = ours.iter().find(|(at, _)| *at == tick);
        let ours = ours.map(|(_, cells)| cells.clone()).unwrap_or_default();
        let printed_cells = line.cells().get(1..).unwrap_or_default().to_vec();
        let same = ours.iter().map(String::as_str).eq(printed_cells.iter().copied());
        rows.push(Row {
            case: format!("{}, received at {tick} ms", entry.case),
            paper_value: Some(shown(&printed_cells).into()),
            model_value: Some(shown(&ours).into()),
            verdict: Verdict::of_value(same && ours.len() == setup.delay_ticks.len()),
            ..empty_row(expected, entry)
        });
    }
    Ok(rows)
}

/// Each instant, with the position in the order of each path that arrives then, counted from 1.
fn instants(delays: &[u64], order: &[usize]) -> Vec<(u64, Vec<String>)> {
    let mut turns = vec![0_u64; delays.len()];
    let mut instants: Vec<(u64, Vec<String>)> = Vec::new();
    for (entry, &path) in order.iter().enumerate() {
        turns[path] += 1;
        let tick = turns[path] * delays[path];
        if instants.last().is_none_or(|(at, _)| *at != tick) {
            instants.push((tick, vec![String::new(); delays.len()]));
        }
        if let Some((_, cells)) = instants.last_mut() {
            cells[path] = (entry + 1).to_string();
        }
    }
    instants
}

/// `O(10) = P1, O(11) = P2`.
fn shown<S: AsRef<str>>(cells: &[S]) -> String {
    let named = cells.iter().enumerate().filter(|(_, cell)| !cell.as_ref().is_empty());
    let each = named.map(|(path, cell)| format!("O({}) = P{}", cell.as_ref(), path + 1));
    each.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_due_together_share_an_instant() {
        let order = receive_order(&[2, 3], 6).unwrap();
        let ticks: Vec<u64> = instants(&[2, 3], &order).iter().map(|(tick, _)| *tick).collect();
        assert_eq!(ticks, [2, 3, 4, 6]);
        assert_eq!(instants(&[2, 3], &order)[3].1, ["4", "5"]);
        assert_eq!(shown(&["4", "5"]), "O(4) = P1, O(5) = P2");
    }
}
