//! Output files of a run: time series as Parquet, Arrow or CSV.

mod atomic;
mod batch;
mod columns;
mod csv;
mod packets;
mod parquet;

use core::fmt;
use std::ffi::OsStr;
use std::path::Path;

use ::parquet::errors::ParquetError;
use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, SchemaRef};

pub use atomic::write_atomically;
pub use batch::{SeriesOrigin, series_to_record_batch};
pub(crate) use columns::Columns;
pub use packets::{PACKET_COLUMNS, PacketColumn, packets_to_record_batch};
pub(crate) use parquet::ParquetFile;

use crate::series::Series;

/// File format of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesFormat {
    /// Apache Parquet, compressed with Snappy: small and widely supported.
    Parquet,
    /// An Arrow IPC file (also called Feather): readable without a copy.
    Arrow,
    /// Comma-separated values (RFC 4180), without scenario and seed.
    Csv,
}

impl SeriesFormat {
    /// File name extensions and their formats.
    const ENDINGS: [(&'static str, Self); 4] = [
        ("parquet", Self::Parquet),
        ("arrow", Self::Arrow),
        ("feather", Self::Arrow),
        ("csv", Self::Csv),
    ];

    /// The format by the extension of the file name.
    ///
    /// # Errors
    /// If the extension is missing or unknown.
    pub fn from_path(path: &Path) -> Result<Self, UnknownFormat> {
        let ending = path.extension().unwrap_or(OsStr::new("")).to_string_lossy().to_lowercase();
        let known = Self::ENDINGS.iter().find(|(name, _)| *name == ending);
        known.map(|(_, format)| *format).ok_or(UnknownFormat { ending })
    }
}

/// The extension does not belong to a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct UnknownFormat {
    /// The extension; empty if there is none.
    pub ending: String,
}

impl UnknownFormat {
    /// A hint that lists the known extensions.
    pub fn help(&self) -> String {
        let valid: Vec<String> =
            SeriesFormat::ENDINGS.iter().map(|(name, _)| format!(".{name}")).collect();
        format!("end the file's name in one of {}", valid.join(", "))
    }
}

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ending.as_str() {
            "" => f.write_str("the file's name has no extension that names a format"),
            ending => write!(f, "`.{ending}` is not a format for time series"),
        }
    }
}

/// Error in writing a file.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// An error of the file system.
    #[error("{0}")]
    Io(std::io::Error),
    /// The columns do not form a table.
    #[error("{0}")]
    Arrow(ArrowError),
    /// The file could not be encoded.
    #[error("{0}")]
    Parquet(ParquetError),
}

impl From<std::io::Error> for WriteError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ArrowError> for WriteError {
    fn from(error: ArrowError) -> Self {
        Self::Arrow(error)
    }
}

impl From<ParquetError> for WriteError {
    fn from(error: ParquetError) -> Self {
        Self::Parquet(error)
    }
}

/// Writes the series of one run to `path` atomically.
///
/// # Errors
/// [`WriteError`].
pub fn write_series(
    path: &Path,
    format: SeriesFormat,
    series: &Series,
    origin: &SeriesOrigin,
) -> Result<(), WriteError> {
    let batch = series_to_record_batch(series, origin)?;
    Ok(write_atomically(path, &encode(format, &batch.schema(), &[batch])?)?)
}

/// Writes the series of several runs over the same paths to one file, in turn. The first column, `run`,
/// has their labels.
///
/// # Errors
/// [`WriteError`]; also if there is no run, or if the names of the paths differ.
pub fn write_labelled_series(
    path: &Path,
    format: SeriesFormat,
    runs: &[(&str, &Series, SeriesOrigin)],
) -> Result<(), WriteError> {
    let batches = batch::labelled(runs)?;
    let schema = batches.first().map(RecordBatch::schema);
    let schema =
        schema.ok_or_else(|| ArrowError::InvalidArgumentError("no run to write".into()))?;
    Ok(write_atomically(path, &encode(format, &schema, &batches)?)?)
}

/// Encodes a table as the bytes of a file.
pub(crate) fn encode(
    format: SeriesFormat,
    schema: &SchemaRef,
    batches: &[RecordBatch],
) -> Result<Vec<u8>, WriteError> {
    match format {
        SeriesFormat::Parquet => Ok(parquet::write(schema, batches)?),
        SeriesFormat::Arrow => {
            let mut writer = FileWriter::try_new(Vec::new(), schema)?;
            for batch in batches {
                writer.write(batch)?;
            }
            Ok(writer.into_inner()?)
        }
        SeriesFormat::Csv => {
            let mut bytes = Vec::new();
            csv::write(&mut bytes, schema, batches)?;
            Ok(bytes)
        }
    }
}

#[cfg(test)]
mod tests;
