//! Tables of text.

/// Rows of cells: the first column to the left, the others to the right unless said otherwise.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    left: Option<usize>,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        let headings = headings.iter().map(|heading| (*heading).to_owned()).collect();
        Self { rows: vec![headings], left: None }
    }

    /// The same table with this column, which holds words, to the left.
    #[must_use]
    pub const fn left(mut self, column: usize) -> Self {
        self.left = Some(column);
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table as text, each row a line.
    pub fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
                match column {
                    0 => line.extend([cell, pad.as_str()]),
                    _ if self.left == Some(column) => line.extend(["   ", cell, &pad]),
                    _ => line.extend(["   ", &pad, cell]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_by_characters_not_by_bytes() {
        let mut table = Table::new(&["path", "rate"]);
        table.row(vec!["wän".into(), "1 Mbit/s".into()]);
        table.row(vec!["satellite".into(), "-".into()]);
        let expected = "path            rate\nwän         1 Mbit/s\nsatellite          -\n";
        assert_eq!(table.text(), expected);
    }
}
