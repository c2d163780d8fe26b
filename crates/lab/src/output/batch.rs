//! Time series as one Arrow table.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Metadata, Schema};

use super::columns::Columns;
use crate::series::Series;

/// The schema's name in the table's metadata.
pub const SCHEMA: &str = "ropewalk.series/1";

/// Origin of a series, stored in its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesOrigin {
    /// The scenario with all its overrides.
    pub scenario_toml: String,
    /// Root seed.
    pub seed: String,
    /// Version of ropewalk.
    pub version: String,
}

/// The series as a table: one row per interval; columns `time_s`, `goodput_bps`,
/// `delivered_bytes`, `receive_buffer_bytes`, `receive_window_bytes`, and for each path
/// `<name>.throughput_bps`, `<name>.cwnd_bytes`, `<name>.in_flight_bytes` and `<name>.srtt_s`
/// (null before the first sample). The metadata has `schema`, `scenario`, `seed` and `version`.
///
/// # Errors
/// If the columns are not equally long.
pub fn series_to_record_batch(
    series: &Series,
    origin: &SeriesOrigin,
) -> Result<RecordBatch, ArrowError> {
    let mut columns = Columns::default();
    columns.floats("time_s", series.time_s.iter().copied());
    columns.floats("goodput_bps", series.goodput_bps.iter().copied());
    columns.counts("delivered_bytes", series.delivered_bytes.iter().copied());
    columns.counts("receive_buffer_bytes", series.receive_buffer_bytes.iter().copied());
    columns.counts("receive_window_bytes", series.receive_window_bytes.iter().copied());
    for path in &series.paths {
        let name = |key: &str| format!("{}.{key}", path.name);
        columns.floats(name("throughput_bps"), path.throughput_bps.iter().copied());
        columns.counts(name("cwnd_bytes"), path.cwnd_bytes.iter().copied());
        columns.counts(name("in_flight_bytes"), path.in_flight_bytes.iter().copied());
        columns.floats_or_null(name("srtt_s"), path.srtt_s.iter().copied());
    }
    let metadata = [
        ("schema", SCHEMA),
        ("scenario", origin.scenario_toml.as_str()),
        ("seed", origin.seed.as_str()),
        ("version", origin.version.as_str()),
    ];
    columns.into_batch(Metadata::from(metadata))
}

/// One table per run, all with the same schema: a column `run` with the label, then the columns of
/// [`series_to_record_batch`]. The metadata stores each scenario as `scenario:<label>`.
pub fn labelled(runs: &[(&str, &Series, SeriesOrigin)]) -> Result<Vec<RecordBatch>, ArrowError> {
    let tables = runs.iter().map(|(_, series, origin)| series_to_record_batch(series, origin));
    let tables = tables.collect::<Result<Vec<_>, _>>()?;
    let (Some(first), Some((.., origin))) = (tables.first(), runs.first()) else {
        return Ok(Vec::new());
    };
    let mut metadata = BTreeMap::from([
        ("schema".to_owned(), SCHEMA.to_owned()),
        ("seed".to_owned(), origin.seed.clone()),
        ("version".to_owned(), origin.version.clone()),
    ]);
    for (label, _, origin) in runs {
        metadata.insert(format!("scenario:{label}"), origin.scenario_toml.clone());
    }
    let mut fields = vec![Arc::new(Field::new("run", DataType::Utf8, false))];
    fields.extend(first.schema().fields().iter().cloned());
    let schema = Arc::new(Schema::new(fields).with_metadata(Metadata::from(metadata)));
    let with_label = |(table, (label, ..)): (&RecordBatch, &(&str, &Series, SeriesOrigin))| {
        // Without this check, columns of other paths would appear under the names of the first run.
        if table.schema().fields() != first.schema().fields() {
            let message = format!("the paths of `{label}` are not those of the first run");
            return Err(ArrowError::SchemaError(message));
        }
        let labels = StringArray::from(vec![*label; table.num_rows()]);
        let mut columns: Vec<ArrayRef> = vec![Arc::new(labels)];
        columns.extend(table.columns().iter().cloned());
        RecordBatch::try_new(Arc::clone(&schema), columns)
    };
    tables.iter().zip(runs).map(with_label).collect()
}
