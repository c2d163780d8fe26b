//! The output of `reproduce`.

use ropewalk_lab::reproduce::{self, Reproduction, Row, Value, Verdict, text};
use ropewalk_lab::result::Unit;

use crate::console::{layout, width, wrapped};
use crate::format::Captioned;
use crate::table::{Cell, Table};

/// A section per paper, and a count of the verdicts.
pub fn text(done: &Reproduction) -> String {
    let mut text = String::new();
    for (i, row) in done.rows.iter().enumerate() {
        let first = i == 0 || done.rows[i - 1].paper != row.paper;
        if first {
            let rows: Vec<&Row> = done.rows.iter().filter(|r| r.paper == row.paper).collect();
            text.push_str(&section(&row.paper, &rows));
        }
    }
    text.push_str(&summary(done));
    text
}

fn section(paper: &str, rows: &[&Row]) -> String {
    let mut text = format!("{paper}: {}\n", reproduce::title(paper));
    let readings = reproduce::readings(paper);
    if !readings.is_empty() {
        let sets: Vec<&str> = readings.iter().map(|reading| reading.set.as_str()).collect();
        text += &wrapped("Read as ", &sets.join(", "), width());
    }
    let mut reasons: Vec<&str> = Vec::new();
    // A setting that is the same in successive rows is printed once, above them.
    let mut groups: Vec<(&str, &str)> = Vec::new();
    for row in rows {
        let group = (row.item.as_str(), row.quantity.as_str());
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for (item, quantity) in groups {
        let rows = rows.iter().filter(|row| row.item == item && row.quantity == quantity);
        text += &format!("\n{item}: {quantity}\n");
        text += &table(&rows.copied().collect::<Vec<_>>(), &mut reasons).text(layout());
    }
    if rows.iter().any(|row| row.judged_by.is_some()) {
        let meaning =
            "the verdict compares the model with the paper; the simulated value is shown beside it";
        text += &format!("\n{}", wrapped("model ", meaning, width()));
    }
    if !reasons.is_empty() {
        text.push('\n');
    }
    for (i, reason) in reasons.iter().enumerate() {
        text += &wrapped(&format!("[{}] ", i + 1), reason, width());
    }
    text + "\n"
}

/// A number of a row. Units unknown to the table are part of the text.
fn number_cell(value: f64, unit: &str) -> Cell {
    match unit {
        "bit/s" => Cell::of(value, Unit::BitsPerSecond),
        "B" => Cell::of(value, Unit::Bytes),
        "s" => Cell::of(value, Unit::Seconds),
        _ => Cell::from(text::quantity(value, unit)),
    }
}

fn cell(value: Option<&Value>, unit: &str) -> Cell {
    match value {
        Some(Value::Number(number)) => number_cell(*number, unit),
        other => Cell::from(text::value(other, unit)),
    }
}

/// Table of the rows of one quantity; `reasons` collects the footnotes.
fn table<'a>(rows: &[&'a Row], reasons: &mut Vec<&'a str>) -> Table {
    let some = |value: fn(&Row) -> bool| rows.iter().any(|row| value(row));
    let (model, peer) =
        (some(|row| row.model_value.is_some()), some(|row| row.peer_value.is_some()));
    let simulated = some(|row| row.simulated_value.is_some());
    let columns = [
        ("case", true),
        ("paper", true),
        ("model", model),
        ("simulated", simulated),
        ("peer", peer),
        ("off by", some(|row| row.difference.or(row.difference_points).is_some())),
        ("interval", some(|row| row.interval.is_some())),
        ("verdict", true),
    ];
    let shown = columns.iter().filter(|(_, shown)| *shown);
    let mut table = Table::new(&shown.map(|(name, _)| *name).collect::<Vec<_>>());
    for row in rows {
        let mark = row.reason.as_deref().map(|reason| number(reasons, reason));
        let value = |value| cell(Option::as_ref(value), &row.unit);
        let by = row.judged_by.as_ref().map_or_else(String::new, |by| format!(", {by}"));
        let mark = mark.map_or_else(String::new, |mark| format!(" [{mark}]"));
        let cells = [
            Cell::from(row.case.clone()),
            value(&row.paper_value),
            value(&row.model_value),
            value(&row.simulated_value),
            value(&row.peer_value),
            Cell::from(text::difference(row)),
            Cell::from(interval(row)),
            Cell::from(format!("{}{by}{mark}", word(row.verdict))),
        ];
        let shown = cells.into_iter().zip(columns).filter(|(_, (_, shown))| *shown);
        table.row(shown.map(|(cell, _)| cell).collect());
    }
    table
}

/// All tables with their captions: one for each quantity of each item.
pub fn tables(rows: &[Row]) -> Vec<Captioned> {
    let mut groups: Vec<[&str; 3]> = Vec::new();
    for row in rows {
        let group = [row.paper.as_str(), row.item.as_str(), row.quantity.as_str()];
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let of_group = |[paper, item, quantity]: [&str; 3]| {
        let own = rows
            .iter()
            .filter(|row| row.paper == paper && row.item == item && row.quantity == quantity);
        let caption = format!("{paper}/{item}: {quantity}");
        Captioned::new(caption, table(&own.collect::<Vec<_>>(), &mut Vec::new()))
    };
    groups.into_iter().map(of_group).collect()
}

/// Every number and claim in its own row, in base units.
pub fn flat(rows: &[Row]) -> Table {
    let mut table = Table::empty();
    for name in ["paper", "item", "case", "quantity", "unit"] {
        table.name(name, name);
    }
    for name in [
        "paper_value",
        "model_value",
        "simulated_value",
        "peer_value",
        "difference",
        "difference_points",
        "interval_low",
        "interval_high",
        "verdict",
        "judged_by",
        "reason",
    ] {
        table.column(name, name);
    }
    for row in rows {
        let text = |text: &Option<String>| text.as_deref().map_or(Cell::Unknown, Cell::from);
        let value = |value: &Option<Value>| match value {
            Some(Value::Number(number)) => Cell::of(*number, Unit::Count),
            Some(Value::Text(text)) => Cell::from(text.as_str()),
            None => Cell::Unknown,
        };
        let names = [&row.paper, &row.item, &row.case, &row.quantity, &row.unit];
        let values = [&row.paper_value, &row.model_value, &row.simulated_value, &row.peer_value];
        let ends = [0, 1].map(|end| row.interval.map(|interval| interval[end]));
        let known = |value| Cell::known(value, Unit::Ratio);
        let cells = names.into_iter().map(|name| Cell::from(name.as_str()));
        let cells = cells
            .chain(values.map(value))
            .chain([row.difference, row.difference_points].map(known));
        let cells = cells.chain(ends.map(known)).chain([
            Cell::from(row.verdict.as_str()),
            text(&row.judged_by),
            text(&row.reason),
        ]);
        table.row(cells.collect());
    }
    table
}

/// `+4.7 to +5.3 %`; empty for a single run.
fn interval(row: &Row) -> String {
    let ends = row.interval.map(|ends| ends.map(|end| format!("{:+.1}", end * 100.0 + 0.0)));
    ends.map_or_else(String::new, |[least, most]| format!("{least} to {most} %"))
}

/// A verdict in a narrow column. The column of bounds shows whether the row is a claim.
const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::ClaimHolds => "holds",
        Verdict::ClaimFails => "fails",
        other => other.as_str(),
    }
}

/// The number of the footnote with this text, which is added if it is new.
fn number<'a>(reasons: &mut Vec<&'a str>, reason: &'a str) -> usize {
    let known = reasons.iter().position(|text| *text == reason);
    known.unwrap_or_else(|| {
        reasons.push(reason);
        reasons.len() - 1
    }) + 1
}

fn summary(done: &Reproduction) -> String {
    let counts = done.counts().into_iter();
    let counts: Vec<String> = counts.map(|(verdict, n)| counted(verdict, n)).collect();
    let unexplained = done.unexplained().count();
    let open = match unexplained {
        0 => String::new(),
        n => format!("; {n} without a reason"),
    };
    let (rows, runs) = (done.rows.len(), done.simulations);
    format!("{rows} numbers and claims, {runs} simulations: {}{open}\n", counts.join(", "))
}

fn counted(verdict: Verdict, n: usize) -> String {
    match (verdict, n) {
        (Verdict::Agrees, 1) => "1 agrees".to_owned(),
        (Verdict::Agrees, n) => format!("{n} agree"),
        (Verdict::Differs, 1) => "1 differs".to_owned(),
        (Verdict::Differs, n) => format!("{n} differ"),
        (Verdict::ClaimHolds, 1) => "1 claim holds".to_owned(),
        (Verdict::ClaimHolds, n) => format!("{n} claims hold"),
        (Verdict::ClaimFails, 1) => "1 claim fails".to_owned(),
        (Verdict::ClaimFails, n) => format!("{n} claims fail"),
        (Verdict::Shown, n) => format!("{n} shown"),
        (Verdict::Undecided, n) => format!("{n} undecided"),
        (Verdict::Failed, n) => format!("{n} failed"),
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_lab::reproduce::{Options, find, reproduce};

    use super::*;

    #[test]
    fn one_reason_is_one_footnote_however_many_rows_it_explains() {
        let mut reasons = Vec::new();
        let numbers = ["a", "b", "a"].map(|text| number(&mut reasons, text));
        assert_eq!((numbers, reasons), ([1, 2, 1], vec!["a", "b"]));
    }

    #[test]
    fn a_section_shows_every_row_and_what_differs_only_where_it_does() {
        let done = reproduce(&find("sarwar2013/table1"), &Options::default()).unwrap();
        let text = text(&done);
        assert_eq!(text.matches("slot.table").count(), 1, "what all rows share stands above them");
        assert_eq!(text.lines().filter(|line| line.ends_with("agrees")).count(), 7, "{text}");
        assert!(text.contains("7 numbers and claims, 0 simulations: 7 agree\n"), "{text}");
    }
}
