//! Parser of the CSV files in `papers/`: a header, commas, no quotes, `#` for comments.

/// A table of text.
#[derive(Clone, Debug)]
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<&'static str>>,
}

/// One row of a table, with cells by column name.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    table: &'a Table,
    cells: &'a [&'static str],
}

impl Table {
    /// Parses a table.
    ///
    /// # Errors
    /// A message if a row has more or fewer cells than the header.
    pub fn parse(text: &'static str) -> Result<Self, String> {
        let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let header: Vec<&str> = lines.next().ok_or("the table is empty")?.split(',').collect();
        let mut rows = Vec::new();
        for line in lines {
            let cells: Vec<&str> = line.split(',').collect();
            if cells.len() != header.len() {
                let (found, wanted) = (cells.len(), header.len());
                return Err(format!("`{line}` has {found} cells, the header has {wanted}"));
            }
            rows.push(cells);
        }
        Ok(Self { header, rows })
    }

    /// All rows.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.rows.iter().map(|cells| Line { table: self, cells })
    }
}

impl Line<'_> {
    /// The cell in this column.
    ///
    /// # Errors
    /// A message if there is no such column.
    pub fn text(&self, column: &str) -> Result<&'static str, String> {
        let position = self.table.header.iter().position(|name| *name == column);
        position.map(|i| self.cells[i]).ok_or_else(|| format!("there is no column `{column}`"))
    }

    /// The number in this column.
    ///
    /// # Errors
    /// A message if there is no such column, or if its cell is not a number.
    pub fn number(&self, column: &str) -> Result<f64, String> {
        let text = self.text(column)?;
        text.parse().map_err(|_| format!("`{text}` in column `{column}` is not a number"))
    }

    /// All cells, in the order of the columns.
    pub fn cells(&self) -> &[&'static str] {
        self.cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_by_the_name_of_their_column() {
        let table = Table::parse("# why\na,b\n1,\n2,x\n").unwrap();
        let lines: Vec<Line> = table.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].number("a"), lines[1].text("b")), (Ok(1.0), Ok("x")));
        assert!(lines[0].number("b").unwrap_err().contains("column `b`"));
        assert!(lines[0].text("c").is_err());
    }

    #[test]
    fn a_row_that_is_too_short_is_refused() {
        assert!(Table::parse("a,b\n1\n").unwrap_err().contains("`1` has 1 cells"));
    }
}
