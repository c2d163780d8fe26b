//! The pages that say what is obeyed name tests that exist.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the crate") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Names of all test functions of a crate.
fn tests(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    ["src", "tests"].iter().for_each(|folder| sources(&root.join(folder), &mut files));
    let mut names = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file");
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(rest) =
                line.trim_start_matches("pub ").trim_start_matches("async ").strip_prefix("fn ")
            else {
                continue;
            };
            let attribute = lines[..at].iter().rev().find(|l| !l.is_empty()).copied();
            if attribute.is_some_and(|a| a == "#[test]" || a.starts_with("#[tokio::test")) {
                names.push(rest.split('(').next().unwrap_or_default().to_owned());
            }
        }
    }
    names
}

/// The same of all crates that the pages speak of.
fn all_tests() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = ["", "../runtime", "../webrtc", "../../tests/interop"];
    crates.iter().flat_map(|at| tests(&root.join(at))).collect()
}

/// The rows of all tables of a page that say where something is tested, without their heads.
fn rows(page: &str) -> Vec<&str> {
    let (mut rows, mut tells) = (Vec::new(), false);
    let lines: Vec<_> = page.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if lines.get(at + 1).is_some_and(|next| next.starts_with("| ---")) {
            tells = line.ends_with("| where |");
        } else if tells && line.starts_with("| ") && !line.starts_with("| ---") {
            rows.push(*line);
        }
    }
    rows
}

/// Holds the last column of a row to the tests that exist; one of `excuses` may stand in their place.
fn check(row: &str, tests: &[String], excuses: &[&str]) {
    let place = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or_default();
    let named: Vec<_> =
        place.split('`').skip(1).step_by(2).filter(|name| name.contains('_')).collect();
    for name in &named {
        assert!(tests.iter().any(|t| t == name), "no test is called {name}: {row}");
    }
    let excused = excuses.iter().any(|e| place.contains(e));
    assert!(!named.is_empty() || excused, "neither test nor reason: {row}");
}

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::read_to_string(path).expect("the page")
}

#[test]
fn every_rule_names_a_test_that_exists_or_says_why_there_is_none() {
    let tests = all_tests();
    for (name, least) in [
        ("rfc9260", 50),
        ("rfc3758", 20),
        ("rfc8260", 14),
        ("rfc6525", 30),
        ("rfc4895", 16),
        ("rfc5061", 30),
        ("rfc8831", 30),
        ("nr-sack", 15),
    ] {
        let page = page(&format!("reference/{name}.md"));
        let rules = rows(&page);
        for row in &rules {
            check(row, &tests, &["driver:", "not done:"]);
        }
        assert!(rules.len() > least, "{name}: {} rules", rules.len());
    }
}

#[test]
fn every_number_of_the_checklist_and_of_the_hostile_inputs_has_its_test_or_a_reason() {
    let tests = all_tests();
    let page = page("conformance.md");
    let (checklist, inputs) = page.split_once("## Hostile inputs").expect("two lists");
    for (list, count) in [(checklist, 30), (inputs, 68)] {
        let rows = rows(list);
        let number = |row: &&str| row.split('|').nth(1).and_then(|n| n.trim().parse().ok());
        let numbers: Vec<u32> = rows.iter().filter_map(number).collect();
        assert_eq!(numbers, (1..=count).collect::<Vec<_>>(), "one row each, in order");
        rows.iter().for_each(|row| check(row, &tests, &["reason: "]));
    }
}

#[test]
fn every_cell_about_another_implementation_names_a_test_that_exists_or_says_why_there_is_none() {
    let tests = all_tests();
    let page = page("reference/extensions-and-peers.md");
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| ")).skip(2).collect();
    for row in &rows {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).skip(1).collect();
        assert_eq!(cells.len(), 5, "a cell for each peer: {row}");
        for cell in cells {
            let cell = format!("| {cell} |");
            check(&cell, &tests, &["No: ", "Not tested: "]);
        }
    }
    assert!(rows.len() > 15, "{} rows", rows.len());
}
