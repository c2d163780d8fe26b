//! Rows of fields: separated by semicolons, tabs, commas or blanks.

use super::RateLogError;
use crate::types::numbered_lines;

/// Maximum number of fields of a row: more than any log has.
const MOST_FIELDS: usize = 1000;

/// What separates the fields of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delimiter {
    /// One character.
    Byte(u8),
    /// Any number of blanks and tabs.
    Blank,
}

impl Delimiter {
    /// The separator of the first row.
    pub(super) fn of(row: &str) -> Self {
        let found = *b";\t,".iter().find(|byte| row.as_bytes().contains(byte)).unwrap_or(&b' ');
        // Blanks around a tab are not fields.
        if found == b' ' { Self::Blank } else { Self::Byte(found) }
    }
}

/// The rows of a text that are not empty and do not begin with `#`.
pub(super) struct Rows<'a> {
    text: &'a str,
    pub(super) delimiter: Delimiter,
}

impl<'a> Rows<'a> {
    /// `None` if there is no row.
    pub(super) fn new(text: &'a str) -> Option<Self> {
        let mut lines = text.lines().map(str::trim);
        let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'))?;
        Some(Self { text, delimiter: Delimiter::of(first) })
    }

    /// Calls `row` with the line number and the fields of each row.
    pub(super) fn each(
        &self,
        mut row: impl FnMut(usize, &[&str]) -> Result<(), RateLogError>,
    ) -> Result<(), RateLogError> {
        for (line, content) in numbered_lines(self.text) {
            match self.delimiter {
                Delimiter::Blank => {
                    row(line, &limited(line, content.split_whitespace().collect())?)?
                }
                Delimiter::Byte(delimiter) if content.contains('"') => {
                    let record = quoted(content, delimiter);
                    row(line, &limited(line, record.iter().collect())?)?;
                }
                Delimiter::Byte(delimiter) => {
                    let fields = content.split(char::from(delimiter)).map(str::trim);
                    row(line, &limited(line, fields.collect())?)?;
                }
            }
        }
        Ok(())
    }

    /// The number in a field. `None` if the field is empty or stands for a missing value.
    pub(super) fn number(&self, field: &str) -> Result<Option<f64>, String> {
        if matches!(
            field.to_ascii_lowercase().as_str(),
            "" | "-" | "na" | "n/a" | "nan" | "null" | "none"
        ) {
            return Ok(None);
        }
        let comma = self.delimiter != Delimiter::Byte(b',')
            && field.matches(',').count() == 1
            && !field.contains('.');
        let parsed = if comma { field.replace(',', ".").parse() } else { field.parse::<f64>() };
        match parsed {
            Ok(number) if number.is_finite() => Ok(Some(number)),
            _ => Err(format!("`{}` is not a number", shortened(field))),
        }
    }
}

/// The fields of a line with quotes. A quote that is never closed ends with the line.
fn quoted(line: &str, delimiter: u8) -> csv::StringRecord {
    let mut builder = csv::ReaderBuilder::new();
    builder.delimiter(delimiter).has_headers(false).trim(csv::Trim::All);
    let mut record = csv::StringRecord::new();
    let read = builder.from_reader(line.as_bytes()).read_record(&mut record);
    debug_assert!(read.is_ok(), "a line of text is a record: {read:?}");
    record
}

fn limited(line: usize, fields: Vec<&str>) -> Result<Vec<&str>, RateLogError> {
    if fields.len() > MOST_FIELDS {
        let message = format!("{} fields: too many", fields.len());
        return Err(RateLogError { line, ..RateLogError::unknown(message) });
    }
    Ok(fields)
}

/// A field, shortened for messages.
pub(super) fn shortened(field: &str) -> String {
    const MOST: usize = 40;
    let mut text: String = field.chars().take(MOST).collect();
    if field.chars().nth(MOST).is_some() {
        text += "...";
    }
    text
}
