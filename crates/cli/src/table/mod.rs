//! Tables of results: as text with one unit per column, as CSV in base units, and as Markdown.

mod cell;
mod column;
mod export;
mod text;

pub use cell::Cell;
pub use text::Layout;

/// Rows of cells. The leading columns name the row; they are left-aligned, the others right-aligned.
#[derive(Clone, Debug)]
pub struct Table {
    headings: Vec<Heading>,
    names: usize,
    rows: Vec<Vec<Cell>>,
}

/// The heading of a column.
#[derive(Clone, Debug)]
struct Heading {
    /// As people read it.
    shown: String,
    /// Name of the column in CSV; empty: made from `shown` and the unit of the cells.
    key: String,
}

impl Table {
    /// A table with these headings, whose first column names the row.
    pub fn new<S: AsRef<str>>(headings: &[S]) -> Self {
        let heading = |text: &S| Heading { shown: text.as_ref().to_owned(), key: String::new() };
        Self { headings: headings.iter().map(heading).collect(), names: 1, rows: Vec::new() }
    }

    /// A table without columns, for [`Table::name`] and [`Table::column`].
    pub const fn empty() -> Self {
        Self { headings: Vec::new(), names: 0, rows: Vec::new() }
    }

    /// Adds a column that names the row. `key` is its name in CSV.
    pub fn name(&mut self, shown: &str, key: &str) {
        debug_assert_eq!(self.headings.len(), self.names, "names come first");
        self.names += 1;
        self.column(shown, key);
    }

    /// Adds a column. `key` is its name in CSV.
    pub fn column(&mut self, shown: &str, key: &str) {
        self.headings.push(Heading { shown: shown.to_owned(), key: key.to_owned() });
    }

    /// Adds columns: what is shown, and the name in CSV.
    pub fn columns(&mut self, columns: &[(&str, &str)]) {
        columns.iter().for_each(|(shown, key)| self.column(shown, key));
    }

    /// Adds a row. It has as many cells as there are headings.
    pub fn row<C: Into<Cell>>(&mut self, cells: Vec<C>) {
        assert_eq!(cells.len(), self.headings.len(), "a cell for each heading");
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// What ± means in this table; `None` if no cell has an interval.
    pub fn interval_note(&self) -> Option<&'static str> {
        let cells = self.rows.iter().flatten();
        let mut halves = cells.filter_map(Cell::half_width).peekable();
        halves.peek()?;
        Some(match halves.all(|half| half == 0.0) {
            true => "all seeds gave the same figures: nothing in the scenario is random",
            false => "half of a 95 % confidence interval of the mean",
        })
    }

    /// Orders the rows by the values of a column, unknown ones last. Equal rows keep their order.
    pub fn sort(&mut self, column: usize, descending: bool) {
        let key = |row: &[Cell]| {
            let value = row[column].value().filter(|value| value.is_finite());
            value.map_or(f64::INFINITY, |value| if descending { -value } else { value })
        };
        self.rows.sort_by(|a, b| key(a).total_cmp(&key(b)));
    }
}
