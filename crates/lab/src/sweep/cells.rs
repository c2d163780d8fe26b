//! Access to columns of a table of runs by name and type, with errors for damaged files.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow_schema::{ArrowError, DataType};

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

/// The cells at `places`, each an index of `columns` and a row. All columns have one of the four types of our
/// tables. Arrow's own functions handle all types, and would add a megabyte to the command.
pub(super) fn gather(
    columns: &[&ArrayRef],
    places: &[(usize, usize)],
) -> Result<ArrayRef, ArrowError> {
    match columns.first().map(|column| column.data_type()) {
        Some(DataType::Float64) => gather_as::<Float64Array, _>(
            (columns, places),
            |column| column.as_primitive_opt::<Float64Type>(),
            |column, row| column.value(row),
        ),
        Some(DataType::UInt64) => gather_as::<UInt64Array, _>(
            (columns, places),
            |column| column.as_primitive_opt::<UInt64Type>(),
            |column, row| column.value(row),
        ),
        Some(DataType::Boolean) => gather_as::<BooleanArray, _>(
            (columns, places),
            |column| column.as_boolean_opt(),
            |column, row| column.value(row),
        ),
        Some(DataType::Utf8) => gather_as::<StringArray, _>(
            (columns, places),
            |column| column.as_string_opt::<i32>(),
            |column, row| column.value(row).to_owned(),
        ),
        other => Err(ArrowError::SchemaError(format!("a table of runs has no type {other:?}"))),
    }
}

fn gather_as<A: Array + FromIterator<Option<T>> + 'static, T>(
    (columns, places): (&[&ArrayRef], &[(usize, usize)]),
    typed: impl Fn(&ArrayRef) -> Option<&A>,
    value: impl Fn(&A, usize) -> T,
) -> Result<ArrayRef, ArrowError> {
    let differ = || ArrowError::SchemaError("the columns have different types".to_owned());
    let columns = columns.iter().map(|column| typed(column)).collect::<Option<Vec<_>>>();
    let columns = columns.ok_or_else(differ)?;
    let cell = |(column, row): &(usize, usize)| {
        let column = columns[*column];
        column.is_valid(*row).then(|| value(column, *row))
    };
    Ok(Arc::new(places.iter().map(cell).collect::<A>()))
}

fn wrong(name: &str) -> ArrowError {
    ArrowError::SchemaError(format!("the column `{name}` is missing, or of another type"))
}
