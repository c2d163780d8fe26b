//! The ready-made scenarios of this repository.

use std::path::PathBuf;

/// Their files, sorted by name.
pub fn files() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let entries = std::fs::read_dir(folder).expect("the folder of ready scenarios");
    let files = entries.map(|e| e.expect("an entry").path());
    let mut files: Vec<_> = files.filter(|p| p.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    files
}
