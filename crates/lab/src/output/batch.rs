//! Time series as one Arrow table.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Metadata, Schema};

use super::columns::Columns;
use crate::series::{PathSeries, Series};

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

/// The series as a table: one row per interval; the [columns](Series::COLUMNS) of the series, then those of each
/// path as `<name>.throughput_bps`. The metadata has `schema`, `scenario`, `seed` and `version`.
///
/// # Errors
/// If the columns are not equally long.
pub fn series_to_record_batch(
    series: &Series,
    origin: &SeriesOrigin,
) -> Result<RecordBatch, ArrowError> {
    let mut columns = Columns::default();
    for column in Series::COLUMNS {
        columns.values(column.name, (column.values)(series));
    }
    for path in &series.paths {
        for column in PathSeries::COLUMNS {
            columns.values(format!("{}.{}", path.name, column.name), (column.values)(path));
        }
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
