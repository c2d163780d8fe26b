//! The conformance tables name tests that exist.

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

/// Names of all test functions of the crates that the pages refer to.
fn all_tests() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = ["", "../runtime", "../webrtc", "../../tests/interop"];
    crates.iter().flat_map(|at| tests(&root.join(at))).collect()
}

/// The fields of a line of CSV. Fields with a comma or a quote are quoted, and none has a line break.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => {
                rest.next();
                fields.last_mut().expect("a field").push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().expect("a field").push(c),
        }
    }
    assert!(!quoted, "an unclosed quote: {line}");
    fields
}

/// A row of `docs/data/conformance.csv`: a rule of a document, and its tests.
struct Rule {
    document: String,
    number: String,
    place: String,
}

fn table() -> Vec<Rule> {
    let text = page("data/conformance.csv");
    let mut lines = text.lines();
    let head = lines.next().expect("a head");
    assert_eq!(head, "document,part,section,rule,behaviour,profile,where");
    let rule = |line| {
        let cells = fields(line);
        assert_eq!(cells.len(), 7, "seven columns: {line}");
        assert!(!cells[3].is_empty(), "a rule: {line}");
        Rule { document: cells[0].clone(), number: cells[2].clone(), place: cells[6].clone() }
    };
    lines.map(rule).collect()
}

/// Requires that the tests named in `place` exist. One of `excuses` may replace them.
fn check(place: &str, tests: &[String], excuses: &[&str]) {
    let named: Vec<_> =
        place.split('`').skip(1).step_by(2).filter(|name| name.contains('_')).collect();
    for name in &named {
        assert!(tests.iter().any(|t| t == name), "no test is called {name}: {place}");
    }
    let excused = excuses.iter().any(|e| place.contains(e));
    assert!(!named.is_empty() || excused, "neither test nor reason: {place}");
}

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::read_to_string(path).expect("the page")
}

#[test]
fn every_rule_names_a_test_that_exists_or_says_why_there_is_none() {
    let (tests, table) = (all_tests(), table());
    for (document, least) in [
        ("RFC 9260", 50),
        ("RFC 3758", 20),
        ("RFC 8260", 14),
        ("RFC 6525", 30),
        ("RFC 4895", 16),
        ("RFC 5061", 30),
        ("RFC 8261", 5),
        ("RFC 8831", 15),
        ("RFC 8832", 10),
        ("RFC 7053", 5),
        ("NR-SACK", 15),
    ] {
        let rules: Vec<_> = table.iter().filter(|rule| rule.document == document).collect();
        rules.iter().for_each(|rule| check(&rule.place, &tests, &["driver:", "not done:"]));
        assert!(rules.len() > least, "{document}: {} rules", rules.len());
    }
}

#[test]
fn every_number_of_the_checklist_and_of_the_hostile_inputs_has_its_test_or_a_reason() {
    let (tests, table) = (all_tests(), table());
    for (document, count) in [("RFC 9260 checklist", 30), ("hostile inputs", 68)] {
        let rules: Vec<_> = table.iter().filter(|rule| rule.document == document).collect();
        let numbers: Vec<u32> = rules.iter().filter_map(|rule| rule.number.parse().ok()).collect();
        assert_eq!(numbers, (1..=count).collect::<Vec<_>>(), "one row each, in order");
        rules.iter().for_each(|rule| check(&rule.place, &tests, &["reason: "]));
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
            check(cell, &tests, &["No: ", "Not tested: "]);
        }
    }
    assert!(rows.len() > 15, "{} rows", rows.len());
}
