//! A table as comma-separated values (RFC 4180).

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{ArrowError, DataType, SchemaRef};

/// Writes header and rows; a null is an empty cell. Numbers are written with enough digits to be read back
/// exactly.
pub fn write(
    out: &mut Vec<u8>,
    schema: &SchemaRef,
    batches: &[RecordBatch],
) -> Result<(), ArrowError> {
    let headings: Vec<String> = schema.fields().iter().map(|f| quoted(f.name())).collect();
    writeln!(out, "{}", headings.join(","))?;
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| cell(column, row));
            let cells = cells.collect::<Result<Vec<_>, _>>()?;
            writeln!(out, "{}", cells.join(","))?;
        }
    }
    Ok(())
}

fn cell(column: &dyn Array, row: usize) -> Result<String, ArrowError> {
    if column.is_null(row) {
        return Ok(String::new());
    }
    match column.data_type() {
        DataType::Float64 => Ok(column.as_primitive::<Float64Type>().value(row).to_string()),
        DataType::UInt64 => Ok(column.as_primitive::<UInt64Type>().value(row).to_string()),
        DataType::Boolean => Ok(column.as_boolean().value(row).to_string()),
        DataType::Utf8 => Ok(quoted(column.as_string::<i32>().value(row))),
        other => Err(ArrowError::CsvError(format!("a column of type {other} has no text form"))),
    }
}

/// Quotes a text that has a comma, a quote or a line break (RFC 4180, Section 2).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}
