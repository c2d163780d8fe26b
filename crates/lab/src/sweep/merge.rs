//! Shards become one table again.

use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_select::interleave::interleave_record_batch;

use super::error::SweepError;
use super::file::{metadata, read};

/// Most numbers of points that a message lists.
const LISTED: usize = 5;

/// Joins the results of shards, which together have every point once. The table is that of a
/// sweep in one piece.
///
/// # Errors
/// A file is no result of a sweep, they are not of one sweep, or points are missing or double.
pub fn merge(paths: &[PathBuf]) -> Result<RecordBatch, SweepError> {
    let mut shards = Vec::new();
    for path in paths {
        let help = "give the files that `ropewalk sweep --shard i/n --out FILE` wrote";
        let batch = match read(path) {
            Ok(Some(batch)) => batch,
            Ok(None) => {
                let message = format!("{} is no result of a sweep", path.display());
                return Err(SweepError::input(message, help));
            }
            Err(error) => {
                return Err(SweepError::input(format!("{error}; is its shard done?"), help));
            }
        };
        shards.push(batch);
    }
    let Some(first) = shards.first() else {
        return Err(SweepError::input("there is nothing to merge", "give the files of all shards"));
    };
    for (path, shard) in paths.iter().zip(&shards) {
        if metadata(shard, "identity") != metadata(first, "identity") {
            let [a, b] = [&paths[0], path].map(|path| path.display());
            let message = format!("{a} and {b} are of different sweeps");
            let help = "all shards have the same scenario, --vary, --seeds and version";
            return Err(SweepError::input(message, help));
        }
    }
    let places = places(paths, &shards)?;
    let batches: Vec<&RecordBatch> = shards.iter().collect();
    let whole = interleave_record_batch(&batches, &places)
        .map_err(|error| SweepError::file(&paths[0], error))?;
    let mut schema = first.schema().as_ref().clone();
    schema.metadata.remove("shard");
    RecordBatch::try_new(schema.into(), whole.columns().to_vec())
        .map_err(|error| SweepError::file(&paths[0], error))
}

/// Where each point is: the number of the table and the row in it.
fn places(paths: &[PathBuf], shards: &[RecordBatch]) -> Result<Vec<(usize, usize)>, SweepError> {
    let points: usize = metadata(&shards[0], "points").parse().unwrap_or(0);
    let mut places = vec![None; points];
    for (number, shard) in shards.iter().enumerate() {
        let column = shard.column_by_name("point").and_then(|c| c.as_primitive_opt::<UInt64Type>());
        for (row, point) in column.iter().flat_map(|column| column.values().iter().enumerate()) {
            let Some(place) = places.get_mut(*point as usize) else {
                let reason = format!("there is no point {point} in a sweep of {points}");
                return Err(SweepError::file(&paths[number], reason));
            };
            if let Some((other, _)) = place.replace((number, row)) {
                let [a, b] = [other, number].map(|at: usize| paths[at].display());
                let message = format!("{a} and {b} both have point {point}");
                return Err(SweepError::input(message, "give each shard once"));
            }
        }
    }
    let missing: Vec<String> =
        (0..points).filter(|at| places[*at].is_none()).map(|at| at.to_string()).collect();
    if !missing.is_empty() {
        let listed = missing[..missing.len().min(LISTED)].join(", ");
        let more = if missing.len() > LISTED { ", ..." } else { "" };
        let message = format!("{} of {points} points are missing: {listed}{more}", missing.len());
        let have: Vec<&str> = shards.iter().map(|shard| metadata(shard, "shard")).collect();
        let help = format!("give all shards of the sweep; these are {}", have.join(", "));
        return Err(SweepError::input(message, help));
    }
    Ok(places.into_iter().flatten().collect())
}
