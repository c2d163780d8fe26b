//! Time series as one Arrow table.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt64Array};
use arrow_schema::{ArrowError, Field, Metadata, Schema};

use crate::series::Series;

/// The schema's name in the table's metadata.
pub const SCHEMA: &str = "ropewalk.series/1";

/// Where a series comes from, kept with it.
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
    columns.floats("time_s", &series.time_s);
    columns.floats("goodput_bps", &series.goodput_bps);
    columns.counts("delivered_bytes", &series.delivered_bytes);
    columns.counts("receive_buffer_bytes", &series.receive_buffer_bytes);
    columns.counts("receive_window_bytes", &series.receive_window_bytes);
    for path in &series.paths {
        let name = |key: &str| format!("{}.{key}", path.name);
        columns.floats(name("throughput_bps"), &path.throughput_bps);
        columns.counts(name("cwnd_bytes"), &path.cwnd_bytes);
        columns.counts(name("in_flight_bytes"), &path.in_flight_bytes);
        let srtt = Float64Array::from(path.srtt_s.clone());
        columns.add(name("srtt_s"), Arc::new(srtt), true);
    }
    let metadata = [
        ("schema", SCHEMA),
        ("scenario", origin.scenario_toml.as_str()),
        ("seed", origin.seed.as_str()),
        ("version", origin.version.as_str()),
    ];
    let schema = Schema::new(columns.fields).with_metadata(Metadata::from(metadata));
    RecordBatch::try_new(Arc::new(schema), columns.arrays)
}

#[derive(Default)]
struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    fn add(&mut self, name: String, array: ArrayRef, nullable: bool) {
        self.fields.push(Field::new(name, array.data_type().clone(), nullable));
        self.arrays.push(array);
    }

    fn floats(&mut self, name: impl Into<String>, values: &[f64]) {
        self.add(name.into(), Arc::new(Float64Array::from(values.to_vec())), false);
    }

    fn counts(&mut self, name: impl Into<String>, values: &[u64]) {
        self.add(name.into(), Arc::new(UInt64Array::from(values.to_vec())), false);
    }
}
