//! Tables of text.

/// Rows of cells: the first column is left-aligned, the others right-aligned.
#[derive(Clone, Debug, Default)]
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        let headings = headings.iter().map(|heading| (*heading).to_owned()).collect();
        Self { headings, rows: Vec::new() }
    }

    /// Adds a row. It has as many cells as there are headings.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.headings.len(), "a cell for each heading");
        self.rows.push(cells);
    }

    /// The table as text, each row a line of at most `width` characters.
    ///
    /// If it does not fit, headings that are wider than their cells take several lines; then columns move
    /// closer; remaining columns go into a further block below, which repeats the first column.
    pub fn text(&self, width: usize) -> String {
        let columns = |wrap: bool| -> Vec<Column> {
            (0..self.headings.len()).map(|i| self.column(i, wrap)).collect()
        };
        let fits = |columns: &[Column], gap: usize| {
            columns.iter().map(|column| gap + column.width).sum::<usize>() <= width + gap
        };
        let (plain, wrapped) = (columns(false), columns(true));
        let columns = if fits(&plain, 3) { plain } else { wrapped };
        let gap = if fits(&columns, 3) { 3 } else { 2 };
        let Some((first, rest)) = columns.split_first() else { return String::new() };
        let mut blocks: Vec<Vec<&Column>> = vec![vec![first]];
        let mut used = first.width;
        for column in rest {
            let last = blocks.last_mut().expect("there is one");
            if used + gap + column.width > width && last.len() > 1 {
                blocks.push(vec![first, column]);
                used = first.width + gap + column.width;
            } else {
                last.push(column);
                used += gap + column.width;
            }
        }
        let blocks: Vec<String> = blocks.iter().map(|block| self.block(block, gap)).collect();
        blocks.join("\n")
    }

    fn column(&self, index: usize, wrap: bool) -> Column {
        let length = |text: &str| text.chars().count();
        let cells = self.rows.iter().map(|row| length(&row[index])).max().unwrap_or(0);
        let heading = &self.headings[index];
        let word = heading.split(' ').map(length).max().unwrap_or(0);
        // The first column's heading stays on one line, like the titles of the rows.
        let room = if index == 0 || !wrap { length(heading) } else { cells.max(word) };
        let mut lines: Vec<String> = Vec::new();
        for word in heading.split(' ') {
            match lines.last_mut() {
                Some(line) if length(line) + 1 + length(word) <= room => {
                    line.extend([" ", word]);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        let width = cells.max(lines.iter().map(|line| length(line)).max().unwrap_or(0));
        Column { index, lines, width }
    }

    fn block(&self, columns: &[&Column], gap: usize) -> String {
        let height = columns.iter().map(|column| column.lines.len()).max().unwrap_or(0);
        let mut text = String::new();
        for number in 0..height {
            let cells = columns.iter().map(|column| {
                // Headings of fewer lines are aligned at the bottom.
                let above = height - column.lines.len();
                number.checked_sub(above).map_or("", |line| column.lines[line].as_str())
            });
            text += &line(columns, cells, gap);
        }
        for row in &self.rows {
            text += &line(columns, columns.iter().map(|column| row[column.index].as_str()), gap);
        }
        text
    }
}

/// A column of the laid-out table.
#[derive(Debug)]
struct Column {
    index: usize,
    /// Lines of its heading.
    lines: Vec<String>,
    width: usize,
}

fn line<'a>(columns: &[&Column], cells: impl Iterator<Item = &'a str>, gap: usize) -> String {
    let mut line = String::new();
    for (position, (column, cell)) in columns.iter().zip(cells).enumerate() {
        let pad = " ".repeat(column.width - cell.chars().count());
        if position == 0 {
            line.extend([cell, &pad]);
        } else {
            line.extend([&" ".repeat(gap), pad.as_str(), cell]);
        }
    }
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["path", "rate", "packets per period"]);
        table.row(vec!["wän".into(), "1 Mbit/s".into(), "7".into()]);
        table.row(vec!["satellite".into(), "-".into(), "12".into()]);
        table
    }

    #[test]
    fn columns_line_up_by_characters() {
        let expected = [
            "path            rate   packets per period",
            "wän         1 Mbit/s                    7",
            "satellite          -                   12",
            "",
        ];
        assert_eq!(table().text(100), expected.join("\n"));
    }

    #[test]
    fn headings_take_the_room_of_their_cells_where_there_is_no_more() {
        let expected = [
            "                       packets",
            "                           per",
            "path            rate    period",
            "wän         1 Mbit/s         7",
            "satellite          -        12",
            "",
        ];
        let expected = expected.join("\n");
        assert_eq!(table().text(40), expected);
    }

    #[test]
    fn what_does_not_fit_goes_below_with_the_first_column_repeated() {
        let text = table().text(22);
        let blocks: Vec<&str> = text.split("\n\n").collect();
        assert_eq!(blocks.len(), 2, "{text}");
        assert!(blocks[0].contains("1 Mbit/s") && blocks[1].contains("period"), "{text}");
        assert!(blocks.iter().all(|block| block.contains("satellite")), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 22), "{text}");
    }
}
