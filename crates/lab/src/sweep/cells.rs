//! Access to columns of a table of runs by name and type, with errors for damaged files.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::ArrowError;

type ColumnResult<'a, T> = Result<&'a T, ArrowError>;

/// The column `name`.
pub(super) fn column<'a>(runs: &'a RecordBatch, name: &str) -> ColumnResult<'a, ArrayRef> {
    runs.column_by_name(name).ok_or_else(|| wrong(name))
}

/// The column `name` of whole numbers.
pub(super) fn counts<'a>(runs: &'a RecordBatch, name: &str) -> ColumnResult<'a, UInt64Array> {
    column(runs, name)?.as_primitive_opt::<UInt64Type>().ok_or_else(|| wrong(name))
}

/// The column `name` of numbers.
pub(super) fn floats<'a>(runs: &'a RecordBatch, name: &str) -> ColumnResult<'a, Float64Array> {
    column(runs, name)?.as_primitive_opt::<Float64Type>().ok_or_else(|| wrong(name))
}

/// The column `name` of text.
pub(super) fn texts<'a>(runs: &'a RecordBatch, name: &str) -> ColumnResult<'a, StringArray> {
    column(runs, name)?.as_string_opt::<i32>().ok_or_else(|| wrong(name))
}

fn wrong(name: &str) -> ArrowError {
    ArrowError::SchemaError(format!("the column `{name}` is missing, or of another type"))
}
