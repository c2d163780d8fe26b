//! A table as text for a terminal.

use anstyle::Style;

use super::Table;
use super::column::column_text;

/// The room and the means that the output has.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Characters per line.
    pub width: usize,
    /// Whether headings are marked by escape sequences.
    pub colour: bool,
}

impl From<usize> for Layout {
    /// Lines of at most `width` characters, without colours.
    fn from(width: usize) -> Self {
        Self { width, colour: false }
    }
}

/// A column of the laid-out table.
#[derive(Debug)]
struct Column {
    /// Lines of its heading, the unit included.
    lines: Vec<String>,
    cells: Vec<String>,
    width: usize,
    is_name: bool,
}

fn length(text: &str) -> usize {
    text.chars().count()
}

impl Table {
    /// The table as text, each row a line of at most the width of the layout. Units stand below the headings.
    ///
    /// If it does not fit, headings that are wider than their cells take several lines; then columns move
    /// closer; remaining columns go into a further block below, which repeats the columns that name the row.
    pub fn text(&self, layout: impl Into<Layout>) -> String {
        let Layout { width, colour } = layout.into();
        let columns = |wrap: bool| -> Vec<Column> {
            (0..self.headings.len()).map(|i| self.laid_out(i, wrap)).collect()
        };
        let fits = |columns: &[Column], gap: usize| {
            columns.iter().map(|column| gap + column.width).sum::<usize>() <= width + gap
        };
        let (plain, wrapped) = (columns(false), columns(true));
        let columns = if fits(&plain, 3) { plain } else { wrapped };
        let gap = if fits(&columns, 3) { 3 } else { 2 };
        let (names, rest) = columns.split_at(self.names.min(columns.len()));
        let names: Vec<&Column> = names.iter().collect();
        let names_width = names.iter().map(|column| column.width + gap).sum::<usize>();
        let mut blocks: Vec<Vec<&Column>> = vec![names.clone()];
        let mut used = names_width;
        for column in rest {
            let last = blocks.last_mut().expect("there is one");
            if used + column.width > width && last.len() > names.len() {
                blocks.push(names.iter().copied().chain([column]).collect());
                used = names_width + column.width + gap;
            } else {
                last.push(column);
                used += column.width + gap;
            }
        }
        let rows = self.rows.len();
        let blocks: Vec<String> =
            blocks.iter().map(|columns| block(columns, rows, gap, colour)).collect();
        blocks.join("\n")
    }

    fn laid_out(&self, index: usize, wrap: bool) -> Column {
        let text = column_text(&self.rows.iter().map(|row| &row[index]).collect::<Vec<_>>());
        let cells = text.cells.iter().map(|cell| length(cell)).max().unwrap_or(0);
        let heading = &self.headings[index].shown;
        let word = heading.split(' ').map(length).max().unwrap_or(0);
        let is_name = index < self.names;
        // Headings of names stay on one line, like the names.
        let room = if is_name || !wrap { length(heading) } else { cells.max(word) };
        let mut lines: Vec<String> = Vec::new();
        for word in heading.split(' ') {
            match lines.last_mut() {
                Some(line) if length(line) + 1 + length(word) <= room => {
                    line.extend([" ", word]);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        // The last line is that of the units.
        lines.push(text.unit.to_owned());
        let width = cells.max(lines.iter().map(|line| length(line)).max().unwrap_or(0));
        Column { lines, cells: text.cells, width, is_name }
    }
}

fn block(columns: &[&Column], rows: usize, gap: usize, colour: bool) -> String {
    let height = columns.iter().map(|column| column.lines.len()).max().unwrap_or(0);
    let mut text = String::new();
    let style = if colour { Style::new().bold() } else { Style::new() };
    let units =
        columns.iter().any(|column| column.lines.last().is_some_and(|unit| !unit.is_empty()));
    for number in 0..if units { height } else { height - 1 } {
        let cells = columns.iter().map(|column| {
            // Headings of fewer lines are aligned at the bottom.
            let above = height - column.lines.len();
            number.checked_sub(above).map_or("", |line| column.lines[line].as_str())
        });
        let line = line(columns, cells, gap);
        let is_unit = number + 1 == height;
        let style = if colour && is_unit { Style::new().dimmed() } else { style };
        text += &format!("{style}{line}{style:#}\n");
    }
    for row in 0..rows {
        text += &line(columns, columns.iter().map(|column| column.cells[row].as_str()), gap);
        text.push('\n');
    }
    text
}

fn line<'a>(columns: &[&Column], cells: impl Iterator<Item = &'a str>, gap: usize) -> String {
    let mut line = String::new();
    for (position, (column, cell)) in columns.iter().zip(cells).enumerate() {
        if position > 0 {
            line += &" ".repeat(gap);
        }
        let pad = " ".repeat(column.width - length(cell));
        line.extend(if column.is_name { [cell, &pad] } else { [pad.as_str(), cell] });
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use ropewalk_lab::result::Unit;

    use super::super::Cell;
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["path", "rate", "packets per period"]);
        table.row(vec![Cell::from("wän"), Cell::of(1e6, Unit::BitsPerSecond), Cell::count(7)]);
        table.row(vec![Cell::from("satellite"), Cell::Unknown, Cell::count(12)]);
        table
    }

    #[test]
    fn columns_line_up_by_characters_below_their_units() {
        let expected = [
            "path          rate   packets per period",
            "            Mbit/s",
            "wän          1.000                    7",
            "satellite        -                   12",
            "",
        ];
        assert_eq!(table().text(100), expected.join("\n"));
    }

    #[test]
    fn a_table_without_units_has_no_line_for_them() {
        let mut table = Table::new(&["a", "b"]);
        table.row(vec!["x", "y"]);
        assert_eq!(table.text(100), "a   b\nx   y\n");
    }

    #[test]
    fn headings_take_the_room_of_their_cells_where_there_is_no_more() {
        let expected = [
            "                     packets",
            "                         per",
            "path          rate    period",
            "            Mbit/s",
            "wän          1.000         7",
            "satellite        -        12",
            "",
        ];
        assert_eq!(table().text(36), expected.join("\n"));
    }

    #[test]
    fn what_does_not_fit_goes_below_with_the_names_repeated() {
        let text = table().text(22);
        let blocks: Vec<&str> = text.split("\n\n").collect();
        assert_eq!(blocks.len(), 2, "{text}");
        assert!(blocks[0].contains("Mbit/s") && blocks[1].contains("period"), "{text}");
        assert!(blocks.iter().all(|block| block.contains("satellite")), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 22), "{text}");
    }

    #[test]
    fn colour_marks_headings_and_changes_no_position() {
        let shown = table().text(Layout { width: 100, colour: true });
        assert!(shown.starts_with("\u{1b}[1mpath"), "{shown:?}");
        let plain = anstream::adapter::strip_str(&shown).to_string();
        assert_eq!(plain, table().text(100));
    }
}
