//! A table for other programs: CSV (RFC 4180) and Markdown.

use ropewalk_lab::result::Unit;

use super::column::column_text;
use super::{Cell, Table};

impl Table {
    /// The table as CSV. Quantities are in base units: bit/s, bytes, seconds, fractions of 1. An unknown value is
    /// an empty cell. A column whose values have intervals is followed by one with half of them.
    pub fn csv(&self) -> String {
        let columns: Vec<(String, Option<String>)> =
            (0..self.headings.len()).map(|index| self.csv_headings(index)).collect();
        let headings = columns.iter().flat_map(|(name, half)| [Some(name), half.as_ref()]);
        let mut text = joined(headings.flatten().map(|name| quoted(name)));
        for row in &self.rows {
            let cells = row.iter().zip(&columns).flat_map(|(cell, (_, half))| {
                let (value, half_width) = values(cell);
                [Some(value), half.as_ref().map(|_| half_width)]
            });
            text += &joined(cells.flatten());
        }
        text
    }

    /// Name of a column, and of the column with its intervals.
    fn csv_headings(&self, index: usize) -> (String, Option<String>) {
        let heading = &self.headings[index];
        let cells = || self.rows.iter().map(|row| &row[index]);
        let unit = cells().find_map(|cell| match cell {
            Cell::Quantity { unit, .. } => Some(*unit),
            _ => None,
        });
        let name = match heading.key.as_str() {
            "" => format!("{}{}", slug(&heading.shown), suffix(unit)),
            key => key.to_owned(),
        };
        let has_half = cells().any(|cell| matches!(cell, Cell::Quantity { half: Some(_), .. }));
        let half = has_half.then(|| format!("{name}_half_width"));
        (name, half)
    }

    /// The table as Markdown, each column in one unit.
    pub fn markdown(&self) -> String {
        let columns: Vec<_> = (0..self.headings.len())
            .map(|index| column_text(&self.rows.iter().map(|row| &row[index]).collect::<Vec<_>>()))
            .collect();
        let headings = self.headings.iter().zip(&columns).map(|(heading, column)| {
            let shown = escaped(&heading.shown);
            if column.unit.is_empty() { shown } else { format!("{shown}, {}", column.unit) }
        });
        let rule = (0..self.headings.len()).map(|i| if i < self.names { "---" } else { "---:" });
        let mut text = piped(headings) + &piped(rule.map(str::to_owned));
        for row in 0..self.rows.len() {
            text += &piped(columns.iter().map(|column| escaped(&column.cells[row])));
        }
        text
    }
}

fn joined(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join(",") + "\n"
}

fn piped(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// A cell and half of its interval.
fn values(cell: &Cell) -> (String, String) {
    match cell {
        Cell::Text(text) => (quoted(text), String::new()),
        Cell::Unknown => (String::new(), String::new()),
        Cell::Quantity { value, half, .. } => {
            (value.to_string(), half.map_or_else(String::new, |half| half.to_string()))
        }
    }
}

/// Quotes a text that has a comma, a quote or a line break (RFC 4180, Section 2).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

/// A vertical bar would end the cell.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// A heading as a name of a column.
fn slug(heading: &str) -> String {
    let words = heading.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.map(str::to_lowercase).collect::<Vec<_>>().join("_");
    if name.is_empty() { "name".to_owned() } else { name }
}

const fn suffix(unit: Option<Unit>) -> &'static str {
    match unit {
        Some(Unit::BitsPerSecond) => "_bps",
        Some(Unit::Bytes) => "_bytes",
        Some(Unit::Seconds) => "_s",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["link", "base RTT", "goodput", "note"]);
        table.column("of bound", "share_of_bound");
        let half = |value, half| Cell::Quantity { value, half, unit: Unit::BitsPerSecond };
        let rtt = |value| Cell::of(value, Unit::Seconds);
        let ratio = |value| Cell::known(value, Unit::Ratio);
        table.row(vec![
            "a, b".into(),
            rtt(0.2),
            half(2.5e6, Some(1e4)),
            "x|y".into(),
            ratio(Some(0.5)),
        ]);
        table.row(vec!["c".into(), rtt(0.02), half(3e5, None), "say \"no\"".into(), ratio(None)]);
        table
    }

    #[test]
    fn csv_has_base_units_in_its_names_and_values_and_an_empty_cell_for_the_unknown() {
        let expected = [
            "link,base_rtt_s,goodput_bps,goodput_bps_half_width,note,share_of_bound",
            "\"a, b\",0.2,2500000,10000,x|y,0.5",
            "c,0.02,300000,,\"say \"\"no\"\"\",",
            "",
        ];
        assert_eq!(table().csv(), expected.join("\n"));
    }

    #[test]
    fn markdown_has_one_unit_per_column_and_aligns_numbers_on_the_right() {
        let expected = [
            "| link | base RTT, ms | goodput, Mbit/s | note | of bound, % |",
            "| --- | ---: | ---: | ---: | ---: |",
            "| a, b | 200.0 | 2.500 ± 0.010 | x\\|y | 50.0 |",
            "| c | 20.0 | 0.300 | say \"no\" | - |",
            "",
        ];
        assert_eq!(table().markdown(), expected.join("\n"));
    }

    #[test]
    fn a_heading_without_letters_still_names_a_column() {
        let mut table = Table::new(&["", "b c"]);
        table.row(vec!["x", "y"]);
        assert_eq!(table.csv(), "name,b_c\nx,y\n");
    }
}
