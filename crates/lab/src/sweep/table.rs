//! The result of a sweep as one table: a row per point.

use std::sync::Arc;

use arrow_array::{BooleanArray, Float64Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, Metadata};

use super::axis::Axis;
use super::plan::Plan;
use super::row::{FIGURES, PointRow};
use super::shard::Shard;
use super::value::{Value, unquoted};
use crate::output::Columns;

/// The schema's name in the table's metadata.
pub const SCHEMA: &str = "ropewalk.sweep/1";

/// Beyond these, a float does not hold every whole number.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The rows of a sweep as a table, in the order of the points. Columns: `point`; one per varied
/// key, with the unit behind it (`path.lte.rtt_s`); `runs` and `failed`; mean and
/// `..._half_width` of the 95 % confidence interval of each of [`FIGURES`], null where unknown;
/// `error`. The metadata has `schema`, `version`, `identity`, `scenario`, `vary`, `seeds`,
/// `points`, and `shard` if the table is only a part.
///
/// # Errors
/// If the columns do not fit together.
pub fn to_record_batch(
    plan: &Plan,
    shard: Option<Shard>,
    mut rows: Vec<PointRow>,
) -> Result<RecordBatch, ArrowError> {
    rows.sort_by_key(|row| row.point);
    let mut columns = Columns::default();
    columns.counts("point", rows.iter().map(|row| row.point as u64));
    let indices: Vec<Vec<usize>> = rows.iter().map(|row| plan.grid().indices(row.point)).collect();
    for (number, axis) in plan.grid().axes().iter().enumerate() {
        let of_point = indices.iter().map(|indices| &axis.values()[indices[number]]);
        columns.axis(axis, &of_point.collect::<Vec<_>>());
    }
    columns.counts("runs", rows.iter().map(|row| row.runs));
    columns.counts("failed", rows.iter().map(|row| row.failed));
    for (number, figure) in FIGURES.iter().enumerate() {
        let mean = rows.iter().map(|row| row.figures[number].map(|(mean, _)| mean));
        columns.floats_or_null(figure.name, mean);
        let half = rows.iter().map(|row| row.figures[number].and_then(|(_, half)| half));
        columns.floats_or_null(format!("{}_half_width", figure.name), half);
    }
    let errors: Vec<Option<&str>> = rows.iter().map(|row| row.error.as_deref()).collect();
    columns.add("error", Arc::new(StringArray::from(errors)), true);
    columns.into_batch(metadata(plan, shard))
}

fn metadata(plan: &Plan, shard: Option<Shard>) -> Metadata {
    let identity = plan.identity();
    let grid = plan.grid();
    // As text, since a seed may exceed what readers of JSON keep exactly.
    let seeds: Vec<String> = (0..grid.seeds()).map(|seed| grid.seed(seed).to_string()).collect();
    let json = |list: &[String]| serde_json::Value::from(list.to_vec()).to_string();
    let mut metadata = Metadata::from([
        ("schema", SCHEMA.to_owned()),
        ("version", identity.version.clone()),
        ("identity", identity.hash.clone()),
        ("scenario", identity.scenario.clone()),
        ("vary", json(&identity.vary)),
        ("seeds", json(&seeds)),
        ("points", grid.points().to_string()),
    ]);
    if let Some(shard) = shard {
        metadata.insert("shard", shard.to_string());
    }
    metadata
}

impl Columns {
    /// A varied key. Its type follows from all values of the axis, so that shards agree on it.
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
