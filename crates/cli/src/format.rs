//! `--json`, `--csv`, `--markdown`: the form of the printed results.

use clap::Args;

use crate::console::layout;
use crate::failure::Failure;
use crate::output;
use crate::table::Table;

/// The form of the printed results; text unless one is given.
#[derive(Clone, Copy, Debug, Default, Args)]
#[group(multiple = false)]
pub struct FormatArgs {
    /// Print the results as one JSON document
    #[arg(long)]
    json: bool,
    /// Print the results as one table in CSV, in base units: bit/s, bytes, seconds, fractions of 1
    #[arg(long)]
    csv: bool,
    /// Print the tables as Markdown
    #[arg(long)]
    markdown: bool,
}

/// The form of the printed results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text for people.
    Text,
    /// One JSON document.
    Json,
    /// One table in CSV.
    Csv,
    /// Tables in Markdown.
    Markdown,
}

impl FormatArgs {
    /// The form that was chosen.
    pub const fn format(&self) -> Format {
        match self {
            Self { json: true, .. } => Format::Json,
            Self { csv: true, .. } => Format::Csv,
            Self { markdown: true, .. } => Format::Markdown,
            _ => Format::Text,
        }
    }

    /// Whether a program reads the output, so that nothing is printed beside it.
    pub fn is_data(&self) -> bool {
        self.format() != Format::Text
    }
}

/// A table with a caption, which may be empty.
#[derive(Clone, Debug)]
pub struct Captioned {
    /// What the table shows.
    pub caption: String,
    /// The table.
    pub table: Table,
}

impl Captioned {
    /// A table with a caption.
    pub fn new(caption: impl Into<String>, table: Table) -> Self {
        Self { caption: caption.into(), table }
    }

    /// Caption and table as text.
    pub fn text(&self) -> String {
        let table = self.table.text(layout());
        if self.caption.is_empty() { table } else { format!("{}\n\n{table}", self.caption) }
    }

    fn markdown(&self) -> String {
        let table = self.table.markdown();
        if self.caption.is_empty() { table } else { format!("**{}**\n\n{table}", self.caption) }
    }
}

/// Prints a result for programs as CSV or Markdown. Text and JSON are printed by the command.
///
/// # Errors
/// It cannot be written.
pub fn print_tables(
    format: Format,
    csv: &Table,
    markdown: impl FnOnce() -> Vec<Captioned>,
) -> Result<(), Failure> {
    match format {
        Format::Csv => output::print(&csv.csv()),
        Format::Markdown => print_markdown(&markdown()),
        Format::Text | Format::Json => Ok(()),
    }
}

/// Prints tables as Markdown.
///
/// # Errors
/// They cannot be written.
pub fn print_markdown(tables: &[Captioned]) -> Result<(), Failure> {
    let parts: Vec<String> = tables.iter().map(Captioned::markdown).collect();
    output::print(&parts.join("\n"))
}
