//! The published reference and schema match the code.

use std::path::PathBuf;

fn published(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name)
}

/// Compares with the file; with `UPDATE_REFERENCE` set it writes the file instead.
fn same_as_published(name: &str, generated: &str) {
    let file = published(name);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::create_dir_all(file.parent().expect("a file lies in a directory")).unwrap();
        std::fs::write(&file, generated).unwrap();
    }
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let hint = "UPDATE_REFERENCE=1 cargo test -p ropewalk-scenario --test all reference";
    assert!(text == generated, "docs/reference/{name} is out of date: {hint}");
}

#[test]
fn the_published_reference_is_up_to_date() {
    same_as_published("scenario.md", &ropewalk_scenario::reference_markdown());
}

#[test]
fn the_published_schema_is_up_to_date() {
    same_as_published("scenario.schema.json", &ropewalk_scenario::json_schema());
}
