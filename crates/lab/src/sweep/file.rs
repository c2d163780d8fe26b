//! The tables of a sweep on disk.

use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatch;

use super::error::SweepError;
use super::table::RUNS_SCHEMA;
use crate::output::{ParquetFile, SeriesFormat, encode, write_atomically};

/// Checks the name of a result file that can be resumed, given by `option`, before anything runs.
///
/// # Errors
/// If it does not end in `.parquet`, if it is a directory, or if its directory does not exist.
pub fn check_out(option: &str, path: &Path) -> Result<(), SweepError> {
    if path.extension().is_none_or(|ending| ending != "parquet") {
        let message =
            format!("{option} {}: this result of a sweep is a Parquet file", path.display());
        return Err(SweepError::input(message, "end the file's name in .parquet"));
    }
    check_table(option, path)
}

/// Checks the name of a file for a table, given by `option`, before anything runs.
///
/// # Errors
/// If it ends neither in `.parquet` nor in `.csv`, if it is a directory, or if its directory does not exist.
pub fn check_table(option: &str, path: &Path) -> Result<(), SweepError> {
    let directory = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let known = is_csv(path) || path.extension().is_some_and(|ending| ending == "parquet");
    let (wrong, help) = if !known {
        let what = "the result of a sweep is a Parquet or a CSV file".to_owned();
        (what, "end the file's name in .parquet or .csv")
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

/// Whether the name of a result file asks for CSV. Such a file lacks the metadata that a sweep needs to resume.
pub fn is_csv(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "csv")
}

/// The table as CSV.
///
/// # Errors
/// If it has a column without a text form.
pub fn csv(batch: &RecordBatch) -> Result<String, SweepError> {
    let bytes = encode(SeriesFormat::Csv, &batch.schema(), std::slice::from_ref(batch));
    let bytes = bytes.map_err(|error| SweepError::file(Path::new("CSV"), error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes the table to `path` atomically, in the format that its name ends in. Equal tables have equal bytes.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, batch: &RecordBatch) -> Result<(), SweepError> {
    let format = if is_csv(path) { SeriesFormat::Csv } else { SeriesFormat::Parquet };
    let bytes = encode(format, &batch.schema(), std::slice::from_ref(batch))
        .map_err(|error| SweepError::file(path, error))?;
    write_atomically(path, &bytes).map_err(|error| SweepError::file(path, error))
}

/// Reads the runs of a sweep. Returns `None` if the file is not a result.
///
/// # Errors
/// If the file cannot be read, or is another table of a sweep.
pub fn read(path: &Path) -> Result<Option<RecordBatch>, SweepError> {
    let file = File::open(path).map_err(|error| SweepError::file(path, error))?;
    let Ok(file) = ParquetFile::open(file) else { return Ok(None) };
    let metadata = file.metadata();
    let name = metadata.get("schema").map_or("", String::as_str);
    if name != RUNS_SCHEMA {
        if !name.starts_with("ropewalk.sweep") {
            return Ok(None);
        }
        let message = format!("{} is a table of `{name}`, not of `{RUNS_SCHEMA}`", path.display());
        let help = "give the file that a sweep wrote with --out, or --fresh to discard this one";
        return Err(SweepError::input(message, help));
    }
    file.read().map(Some).map_err(|error| SweepError::file(path, error))
}

/// An entry of the table's metadata; empty if it does not exist.
pub(super) fn metadata<'a>(batch: &'a RecordBatch, key: &str) -> &'a str {
    batch.schema_ref().metadata().get(key).map_or("", String::as_str)
}
