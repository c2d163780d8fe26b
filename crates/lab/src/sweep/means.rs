//! Means over the runs of each point, with confidence intervals.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, Float64Array, RecordBatch, StringArray};
use arrow_schema::ArrowError;

use super::cells::{column, counts, floats, gather, texts};
use super::columns::figures_of;
use super::json::leading;
use super::table::MEANS_SCHEMA;
use crate::compare::{Estimate, estimate};
use crate::output::Columns;
use crate::result::swept;

/// One row per point of a table of single runs. Columns: `point`; the varied keys; `runs` and
/// `failed`; mean and `..._half_width` of the 95 % confidence interval of each figure of the runs
/// over the runs that did not fail, null where unknown; `error` of the first that failed.
///
/// # Errors
/// A column is missing.
pub fn means(runs: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let points = points(runs)?;
    let error = texts(runs, "error")?;
    let mut columns = Columns::default();
    let first: Vec<_> = points.iter().map(|rows| (0, rows.start)).collect();
    for name in leading(runs) {
        columns.add(&*name, gather(&[column(runs, &name)?], &first)?, false);
    }
    let good: Vec<Vec<usize>> = points
        .iter()
        .map(|rows| rows.clone().filter(|row| error.is_null(*row)).collect())
        .collect();
    columns.counts("runs", good.iter().map(|rows| rows.len() as u64));
    let failed = points.iter().zip(&good).map(|(all, good)| (all.len() - good.len()) as u64);
    columns.counts("failed", failed);
    swept().iter().try_for_each(|figure| floats(runs, &figure.column()).map(drop))?;
    for name in figures_of(runs) {
        let values = floats(runs, &name)?;
        let means: Vec<_> = good.iter().map(|rows| mean(values, rows)).collect();
        columns.floats_or_null(&*name, means.iter().map(|mean| mean.map(|m| m.mean)));
        let half = means.iter().map(|mean| mean.and_then(|m| m.half_width));
        columns.floats_or_null(format!("{name}_half_width"), half);
    }
    let errors = points.into_iter().map(|mut rows| {
        rows.find(|row| error.is_valid(*row)).map(|row| error.value(row).to_owned())
    });
    columns.add("error", Arc::new(errors.collect::<StringArray>()), true);
    let mut metadata = runs.schema_ref().metadata().clone();
    metadata.insert("schema", MEANS_SCHEMA);
    columns.into_batch(metadata)
}

/// The rows of each point, which are contiguous.
fn points(runs: &RecordBatch) -> Result<Vec<Range<usize>>, ArrowError> {
    let numbers = counts(runs, "point")?.values();
    let mut start = 0;
    let groups = numbers.chunk_by(|a, b| a == b).map(|group| {
        let rows = start..start + group.len();
        start = rows.end;
        rows
    });
    Ok(groups.collect())
}

/// The mean. `None` if one of the runs lacks the figure.
fn mean(values: &Float64Array, rows: &[usize]) -> Option<Estimate> {
    let known = |row: &usize| values.is_valid(*row).then(|| values.value(*row));
    let Estimate { mean, half_width } =
        estimate(&rows.iter().map(known).collect::<Option<Vec<f64>>>()?)?;
    let half_width = half_width.filter(|half| half.is_finite());
    mean.is_finite().then_some(Estimate { mean, half_width })
}
