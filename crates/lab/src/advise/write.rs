//! Writes an advice into the text of a scenario and leaves everything else unchanged.

use ropewalk_scenario::{Scenario, duration_text};
use toml_edit::{DocumentMut, Item, TableLike, Value};

use super::Advice;
use crate::tune::{WriteError, put};

/// The text of a scenario with the advice: `transfer.scheduler`, `transfer.congestion` and
/// `transfer.receive_buffer`, the changes of the tunnel and the uses of links. Unused links and their cross traffic
/// are removed. `scenario` is the parsed text.
///
/// # Errors
/// If the text is not a scenario with as many paths as `scenario`.
pub fn written(source: &str, scenario: &Scenario, advice: &Advice) -> Result<String, WriteError> {
    let no = |why: String| WriteError::NoScenario(why);
    let text = source.strip_prefix('\u{feff}').unwrap_or(source);
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| no(error.to_string()))?;
    if let Some(table) = document.get_mut("scheduler").and_then(Item::as_table_like_mut) {
        // `transfer.scheduler` and `scheduler.name` exclude each other.
        table.remove("name");
    }
    let transfer = document.entry("transfer").or_insert_with(toml_edit::table);
    let transfer =
        transfer.as_table_like_mut().ok_or_else(|| no("`transfer` is no table".into()))?;
    let choice = &advice.advice;
    if choice.paths.len() > 1 {
        put(transfer, "scheduler", &choice.scheduler);
    }
    put(transfer, "congestion", &choice.congestion);
    put(transfer, "receive_buffer", &format!("{} B", choice.receive_buffer_bytes));
    let paths = document.get_mut("path").ok_or_else(|| no("it has no path".into()))?;
    let known = scenario.paths.len();
    let found = length(paths);
    if found != known {
        return Err(WriteError::Paths { found, limits: known });
    }
    for (path, usage) in &advice.chosen.tunnel.uses {
        let own = table_mut(paths, *path).ok_or_else(|| no("a path is no table".into()))?;
        put(own, "use", usage.as_str());
    }
    let left: Vec<usize> = (0..known).filter(|path| !advice.chosen.paths.contains(path)).collect();
    left.iter().rev().for_each(|path| remove(paths, *path));
    let names: Vec<&str> = left.iter().map(|path| scenario.paths[*path].name.as_str()).collect();
    if let Some(cross) = document.get_mut("cross") {
        for place in (0..length(cross)).rev() {
            let on = table(cross, place).and_then(|flow| flow.get("on")).and_then(Item::as_str);
            if on.is_some_and(|on| names.contains(&on)) {
                remove(cross, place);
            }
        }
        if length(cross) == 0 {
            document.remove("cross");
        }
    }
    let tunnel = &advice.chosen.tunnel;
    if tunnel.redundancy.is_some() || tunnel.latency_budget.is_some() {
        let own = document.entry("tunnel").or_insert_with(toml_edit::table);
        let own = own.as_table_like_mut().ok_or_else(|| no("`tunnel` is no table".into()))?;
        tunnel.redundancy.iter().for_each(|one| put(own, "redundancy", one.as_str()));
        let budget = tunnel.latency_budget.map(duration_text);
        budget.iter().for_each(|one| put(own, "latency_budget", one));
    }
    Ok(document.to_string())
}

/// The number of tables in `[[list]]`, or in `list = [{...}]`.
fn length(item: &Item) -> usize {
    match item {
        Item::ArrayOfTables(list) => list.len(),
        Item::Value(Value::Array(list)) => list.len(),
        _ => 0,
    }
}

fn table(item: &Item, place: usize) -> Option<&dyn TableLike> {
    match item {
        Item::ArrayOfTables(list) => list.get(place).map(|table| table as &dyn TableLike),
        Item::Value(Value::Array(list)) => {
            list.get(place)?.as_inline_table().map(|table| table as &dyn TableLike)
        }
        _ => None,
    }
}

fn table_mut(item: &mut Item, place: usize) -> Option<&mut dyn TableLike> {
    match item {
        Item::ArrayOfTables(list) => list.get_mut(place).map(|table| table as &mut dyn TableLike),
        Item::Value(Value::Array(list)) => {
            list.get_mut(place)?.as_inline_table_mut().map(|table| table as &mut dyn TableLike)
        }
        _ => None,
    }
}

fn remove(item: &mut Item, place: usize) {
    match item {
        Item::ArrayOfTables(list) => {
            list.remove(place);
        }
        Item::Value(Value::Array(list)) => {
            list.remove(place);
        }
        _ => {}
    }
}
