//! The result of a sweep as one table: a row per run.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{Array, BooleanArray, Float64Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, Metadata};

use super::axis::Axis;
use super::cells::{counts, floats, texts};
use super::columns::SweptColumn;
use super::plan::SweepPlan;
use super::row::RunRow;
use super::shard::Shard;
use super::value::{Value, unquoted};
use crate::output::Columns;

/// Schema of single runs in the table's metadata.
pub const RUNS_SCHEMA: &str = "ropewalk.sweep-runs/1";
/// Schema of means in the table's metadata.
pub const MEANS_SCHEMA: &str = "ropewalk.sweep/1";

/// Largest magnitude up to which a float represents every whole number.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The runs of a sweep as a table, by point and then by seed. Columns: `point`; one per varied key, with its
/// unit as suffix (`path.lte.rtt_s`); `seed_number` and the `seed` itself; each of the grid's columns, null if
/// unknown; `error`, null unless the run failed. The metadata has `schema`, `version`, `identity`, `scenario`,
/// `vary`, `seeds`, `points`, and `shard` if the table is only a part.
///
/// # Errors
/// If the columns do not fit together.
pub fn runs_table<'a>(
    plan: &SweepPlan,
    shard: Option<Shard>,
    rows: impl IntoIterator<Item = &'a RunRow>,
) -> Result<RecordBatch, ArrowError> {
    let mut rows: Vec<&RunRow> = rows.into_iter().collect();
    rows.sort_by_key(|row| (row.point, row.seed));
    let grid = plan.grid();
    let mut columns = Columns::default();
    columns.counts("point", rows.iter().map(|row| row.point as u64));
    let indices: Vec<Vec<usize>> = rows.iter().map(|row| grid.indices(row.point)).collect();
    for (number, axis) in grid.axes().iter().enumerate() {
        let of_row = indices.iter().map(|indices| &axis.values()[indices[number]]);
        columns.axis(axis, &of_row.collect::<Vec<_>>());
    }
    columns.counts("seed_number", rows.iter().map(|row| u64::from(row.seed)));
    columns.counts("seed", rows.iter().map(|row| grid.seed(row.seed)));
    for (number, column) in grid.columns().iter().enumerate() {
        columns.floats_or_null(column.name.as_str(), rows.iter().map(|row| row.figures[number]));
    }
    let errors: Vec<Option<&str>> = rows.iter().map(|row| row.error.as_deref()).collect();
    columns.add("error", Arc::new(StringArray::from(errors)), true);
    let seeds: BTreeSet<u32> = rows.iter().map(|row| row.seed).collect();
    columns.into_batch(metadata(plan, shard, seeds.into_iter().map(|seed| grid.seed(seed))))
}

fn metadata(plan: &SweepPlan, shard: Option<Shard>, seeds: impl Iterator<Item = u64>) -> Metadata {
    let identity = plan.identity();
    let mut metadata = Metadata::from([
        ("schema", RUNS_SCHEMA.to_owned()),
        ("version", identity.version.clone()),
        ("identity", identity.hash.clone()),
        ("scenario", identity.scenario.clone()),
        ("vary", serde_json::Value::from(identity.vary.clone()).to_string()),
        ("seeds", seed_list(seeds)),
        ("points", plan.grid().points().to_string()),
    ]);
    if let Some(shard) = shard {
        metadata.insert("shard", shard.to_string());
    }
    metadata
}

/// Seeds as JSON: as text, because a seed can exceed the exact range of JSON readers.
pub(super) fn seed_list(seeds: impl Iterator<Item = u64>) -> String {
    serde_json::Value::from(seeds.map(|seed| seed.to_string()).collect::<Vec<_>>()).to_string()
}

/// The rows of a table of runs with the figures `columns`.
///
/// # Errors
/// If a column is missing or has another type.
pub(super) fn rows_of(
    runs: &RecordBatch,
    columns: &[SweptColumn],
) -> Result<Vec<RunRow>, ArrowError> {
    let (points, seeds) = (counts(runs, "point")?, counts(runs, "seed_number")?);
    let errors = texts(runs, "error")?;
    let figures = columns.iter().map(|column| floats(runs, &column.name));
    let figures = figures.collect::<Result<Vec<_>, _>>()?;
    let row = |row: usize| RunRow {
        point: points.value(row) as usize,
        seed: seeds.value(row) as u32,
        figures: figures.iter().map(|f| f.is_valid(row).then(|| f.value(row))).collect(),
        error: errors.is_valid(row).then(|| errors.value(row).to_owned()),
    };
    Ok((0..runs.num_rows()).map(row).collect())
}

impl Columns {
    /// Adds the column of a varied key. All values of the axis determine its type, so that shards have the same
    /// one.
    fn axis(&mut self, axis: &Axis, values: &[&Value]) {
        let (key, all) = (axis.key(), axis.values());
        let uniform = all.iter().all(|value| value.is_like(&all[0]));
        let name = if uniform { format!("{key}{}", all[0].suffix()) } else { key.to_owned() };
        let numbers = || values.iter().map(|value| value.as_number());
        match &all[0] {
            Value::Flag(_) if uniform => {
                let flags = values.iter().map(|value| matches!(value, Value::Flag(true)));
                let flags = flags.collect::<Vec<bool>>();
                self.add(name, Arc::new(BooleanArray::from(flags)), false);
            }
            Value::Size(_) | Value::Number(_) | Value::Counted(..)
                if uniform && all.iter().all(is_count) =>
            {
                let counts = numbers().map(|number| number.unwrap_or(0.0) as u64);
                self.counts(name, counts);
            }
            Value::Text(_) | Value::Flag(_) => self.texts(name, values),
            _ if uniform => {
                self.add(name, Arc::new(numbers().collect::<Float64Array>()), false);
            }
            _ => self.texts(name, values),
        }
    }

    fn texts(&mut self, name: String, values: &[&Value]) {
        let texts: Vec<String> =
            values.iter().map(|value| unquoted(&value.text()).to_owned()).collect();
        self.add(name, Arc::new(StringArray::from(texts)), false);
    }
}

fn is_count(value: &Value) -> bool {
    value.as_number().is_some_and(|n| n.fract() == 0.0 && (0.0..WHOLE_MAX).contains(&n))
}
