//! The table of a sweep as a JSON document.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use serde_json::Value;

use super::file::metadata;
use super::table::RUNS_SCHEMA;

/// The document: the metadata, and `points`, or `runs` for a table of single runs. Each row is on its own line
/// with its columns as keys.
pub fn to_json(batch: &RecordBatch) -> String {
    let schema = batch.schema();
    let mut text = String::from("{");
    for key in ["schema", "version", "identity", "shard"] {
        if let Some(value) = schema.metadata().get(key) {
            text += &format!("{}: {},\n", Value::from(key), Value::from(value.as_str()));
        }
    }
    for key in ["vary", "seeds"] {
        // The metadata contains JSON.
        if let Some(list) = schema.metadata().get(key) {
            text += &format!("{}: {list},\n", Value::from(key));
        }
    }
    let rows: Vec<String> = (0..batch.num_rows()).map(|row| line(batch, row)).collect();
    let name = if metadata(batch, "schema") == RUNS_SCHEMA { "runs" } else { "points" };
    text + &format!("\"{name}\": [\n{}\n]}}\n", rows.join(",\n"))
}

fn line(batch: &RecordBatch, row: usize) -> String {
    let schema = batch.schema();
    let pairs = schema.fields().iter().zip(batch.columns());
    let pairs = pairs.map(|(field, column)| {
        format!("{}: {}", Value::from(field.name().as_str()), cell(column, row))
    });
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
}

/// The cell of a column; null if it is empty or the column does not exist.
pub fn value(batch: &RecordBatch, name: &str, row: usize) -> Value {
    batch.column_by_name(name).map_or(Value::Null, |column| cell(column, row))
}

/// The columns of the varied keys.
pub fn varied(batch: &RecordBatch) -> Vec<String> {
    leading(batch).split_off(1)
}

/// The columns that identify the point of a row: its number and the varied keys. The next column is `runs` in a
/// table of means and `seed_number` in one of single runs; varied keys contain a dot.
pub(super) fn leading(batch: &RecordBatch) -> Vec<String> {
    let names = batch.schema_ref().fields().iter().map(|field| field.name().clone());
    names.take_while(|name| name != "runs" && name != "seed_number").collect()
}

fn cell(column: &dyn Array, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Float64 => Value::from(column.as_primitive::<Float64Type>().value(row)),
        DataType::UInt64 => Value::from(column.as_primitive::<UInt64Type>().value(row)),
        DataType::Boolean => Value::from(column.as_boolean().value(row)),
        DataType::Utf8 => Value::from(column.as_string::<i32>().value(row)),
        other => unreachable!("a sweep has no column of type {other}"),
    }
}
