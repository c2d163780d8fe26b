//! Merges shards into one table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::cells::{counts, gather};
use super::error::SweepError;
use super::file::{metadata, read};
use super::table::seed_list;
use super::work::Tables;

/// Maximum number of points or runs that a message lists.
const LISTED: usize = 5;

/// Merges the results of shards, or of the same sweep with other seeds, which together contain every run once.
/// The tables equal those of a sweep in one piece.
///
/// # Errors
/// If a file is not the result of a sweep, the files are not of one sweep, or runs are missing or duplicate.
pub fn merge(paths: &[PathBuf]) -> Result<Tables, SweepError> {
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
            let help = "all shards have the same scenario, --vary, --seed and version";
            return Err(SweepError::input(message, help));
        }
    }
    let failed = |error| SweepError::file(&paths[0], error);
    let places = places(paths, &shards)?;
    let whole = in_order(&shards, &places.into_values().collect::<Vec<_>>()).map_err(failed)?;
    let mut schema = first.schema().as_ref().clone();
    schema.metadata.remove("shard");
    schema.metadata.insert("seeds", seeds_of(&whole).map_err(failed)?);
    let whole = RecordBatch::try_new(schema.into(), whole.columns().to_vec()).map_err(failed)?;
    Tables::of(whole)
}

/// The rows at `places`, each an index of `shards` and a row, as one table.
fn in_order(shards: &[RecordBatch], places: &[(usize, usize)]) -> Result<RecordBatch, ArrowError> {
    let schema = shards[0].schema();
    if shards.iter().any(|shard| shard.schema_ref().fields() != schema.fields()) {
        return Err(ArrowError::SchemaError("the shards have different columns".to_owned()));
    }
    let columns = (0..schema.fields().len()).map(|column| {
        gather(&shards.iter().map(|shard| shard.column(column)).collect::<Vec<_>>(), places)
    });
    RecordBatch::try_new(Arc::clone(&schema), columns.collect::<Result<_, _>>()?)
}

/// The metadata `seeds` of a table that contains every seed.
fn seeds_of(runs: &RecordBatch) -> Result<String, ArrowError> {
    let (numbers, seeds) = (counts(runs, "seed_number")?, counts(runs, "seed")?);
    let seeds: BTreeMap<&u64, &u64> = numbers.values().iter().zip(seeds.values()).collect();
    Ok(seed_list(seeds.into_values().copied()))
}

/// Position of each run: index of the table and row.
type Places = BTreeMap<(u64, u64), (usize, usize)>;

fn places(paths: &[PathBuf], shards: &[RecordBatch]) -> Result<Places, SweepError> {
    let points: u64 = metadata(&shards[0], "points").parse().unwrap_or(0);
    let mut places = Places::new();
    for (number, shard) in shards.iter().enumerate() {
        let failed = |error| SweepError::file(&paths[number], error);
        let point = counts(shard, "point").map_err(failed)?.values();
        let seed = counts(shard, "seed_number").map_err(failed)?.values();
        for (row, (point, seed)) in point.iter().zip(seed).enumerate() {
            if *point >= points {
                let reason = format!("there is no point {point} in a sweep of {points}");
                return Err(SweepError::file(&paths[number], reason));
            }
            if let Some((other, _)) = places.insert((*point, *seed), (number, row)) {
                let [a, b] = [other, number].map(|at: usize| paths[at].display());
                let message = format!("{a} and {b} both have point {point} with seed {seed}");
                return Err(SweepError::input(message, "give each run once"));
            }
        }
    }
    complete(points, &places).map_err(|message| {
        let have: Vec<&str> = shards.iter().map(|shard| metadata(shard, "shard")).collect();
        let help = format!("give all shards of the sweep; these are {}", have.join(", "));
        SweepError::input(message, help)
    })?;
    Ok(places)
}

/// An error that lists what is missing: whole points, otherwise single runs.
fn complete(points: u64, places: &Places) -> Result<(), String> {
    let list = |missing: Vec<String>, of: String| {
        let listed = missing[..missing.len().min(LISTED)].join(", ");
        let more = if missing.len() > LISTED { ", ..." } else { "" };
        match missing.len() {
            0 => Ok(()),
            count => Err(format!("{count} of {of} are missing: {listed}{more}")),
        }
    };
    let have: BTreeSet<u64> = places.keys().map(|(point, _)| *point).collect();
    let missing = (0..points).filter(|point| !have.contains(point)).map(|point| point.to_string());
    list(missing.collect(), format!("{points} points"))?;
    let seeds: BTreeSet<u64> = places.keys().map(|(_, seed)| *seed).collect();
    let runs = (0..points).flat_map(|point| seeds.iter().map(move |seed| (point, *seed)));
    let missing = runs.filter(|run| !places.contains_key(run));
    let missing = missing.map(|(point, seed)| format!("point {point} with seed {seed}"));
    list(missing.collect(), format!("{} runs", points * seeds.len() as u64))
}
