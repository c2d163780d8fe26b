//! The list of RFC 9260's rules names tests that exist.

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

/// Names of all test functions of this crate.
fn tests(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    ["src", "tests"].iter().for_each(|folder| sources(&root.join(folder), &mut files));
    let mut names = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file");
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("fn ")) {
            if lines[..at].iter().rev().find(|l| !l.is_empty()) == Some(&"#[test]") {
                names.push(line[3..].split('(').next().unwrap_or_default().to_owned());
            }
        }
    }
    names
}

#[test]
fn every_rule_names_a_test_that_exists_or_says_why_there_is_none() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tests = tests(root);
    let list = fs::read_to_string(root.join("../../docs/reference/rfc9260.md")).expect("the list");
    let mut rules = 0;
    for row in list.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| section")) {
        let place = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or_default();
        if place.contains("---") {
            continue;
        }
        rules += 1;
        let named: Vec<_> =
            place.split('`').skip(1).step_by(2).filter(|name| name.contains('_')).collect();
        for name in &named {
            assert!(tests.iter().any(|t| t == name), "no test is called {name}: {row}");
        }
        let excused =
            ["codec, not yet", "driver", "open:", "not done:"].iter().any(|e| place.contains(e));
        assert!(!named.is_empty() || excused, "neither test nor reason: {row}");
    }
    assert!(rules > 50, "{rules} rules");
}
