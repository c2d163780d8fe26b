//! The tables of a sweep on disk.

use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;

use super::error::SweepError;
use super::table::RUNS_SCHEMA;
use crate::output::{SeriesFormat, encode, write_atomically};

/// Checks the name of a result file, given by `option`, before anything runs.
///
/// # Errors
/// If it does not end in `.parquet`, if it is a directory, or if its directory does not exist.
pub fn check_out(option: &str, path: &Path) -> Result<(), SweepError> {
    let directory = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (wrong, help) = if path.extension().is_none_or(|ending| ending != "parquet") {
        ("the result of a sweep is a Parquet file".to_owned(), "end the file's name in .parquet")
    } else if path.is_dir() {
        ("it is a directory".to_owned(), "give the name of a file")
    } else if !directory.is_dir() {
        let what = format!("there is no directory `{}`", directory.display());
        (what, "give the name of a file in a directory that exists")
    } else {
        return Ok(());
    };
    Err(SweepError::input(format!("{option} {}: {wrong}", path.display()), help))
}

/// Writes the table to `path` atomically. Equal tables have equal bytes.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, batch: &RecordBatch) -> Result<(), SweepError> {
    let bytes = encode(SeriesFormat::Parquet, &batch.schema(), std::slice::from_ref(batch))
        .map_err(|error| SweepError::file(path, error))?;
    write_atomically(path, &bytes).map_err(|error| SweepError::file(path, error))
}

/// Reads the runs of a sweep; none if the file is not a result.
///
/// # Errors
/// If the file cannot be read, or is another table of a sweep.
pub fn read(path: &Path) -> Result<Option<RecordBatch>, SweepError> {
    let file = File::open(path).map_err(|error| SweepError::file(path, error))?;
    let Ok(builder) = ParquetRecordBatchReaderBuilder::try_new(file) else { return Ok(None) };
    let schema = builder.schema().clone();
    let name = schema.metadata().get("schema").map_or("", String::as_str);
    if name != RUNS_SCHEMA {
        if !name.starts_with("ropewalk.sweep") {
            return Ok(None);
        }
        let message = format!("{} is a table of `{name}`, not of `{RUNS_SCHEMA}`", path.display());
        let help = "give the file that a sweep wrote with --out, or --fresh to discard this one";
        return Err(SweepError::input(message, help));
    }
    let batches = builder
        .build()
        .and_then(|reader| reader.collect::<Result<Vec<_>, _>>().map_err(ParquetError::from));
    let batches = batches.map_err(|error| SweepError::file(path, error))?;
    let batch = concat_batches(&schema, &batches).map_err(|error| SweepError::file(path, error))?;
    Ok(Some(batch))
}

/// An entry of the table's metadata; empty if it does not exist.
pub(super) fn metadata<'a>(batch: &'a RecordBatch, key: &str) -> &'a str {
    batch.schema_ref().metadata().get(key).map_or("", String::as_str)
}
