//! Files generated from the declared figures are up to date, and every figure appears everywhere.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ropewalk_lab::publish;
use ropewalk_lab::result::{PathResult, RunResult, Type, column, compared, figures, swept};
use ropewalk_lab::{RunOptions, run};
use ropewalk_scenario::Scenario;
use serde_json::Value;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Compares with the file. With `UPDATE_FIGURES` set, writes the file instead.
fn same_as_published(name: &str, generated: &str) {
    if std::env::var_os("UPDATE_FIGURES").is_some() {
        std::fs::write(file(name), generated).expect("the file can be written");
    }
    let text = std::fs::read_to_string(file(name)).unwrap_or_default();
    let hint = "UPDATE_FIGURES=1 cargo test -p ropewalk-lab --test all figures";
    assert!(text == generated, "{name} is out of date: {hint}");
}

#[test]
fn the_reference_page_is_up_to_date() {
    same_as_published("docs/reference/results.md", &publish::reference());
}

#[test]
fn the_guide_lists_the_columns_of_a_sweep() {
    let name = "docs/guides/sweep.md";
    let text = std::fs::read_to_string(file(name)).expect("the guide");
    let (begin, end) = ("<!-- figures -->\n", "<!-- end of figures -->");
    let (before, rest) = text.split_once(begin).expect("a marker before the figures");
    let (_, after) = rest.split_once(end).expect("a marker behind the figures");
    let head = "\n| figure | unit | meaning |\n| --- | --- | --- |\n";
    let generated = [before, begin, head, &publish::sweep_columns(), "\n", end, after].concat();
    same_as_published(name, &generated);
}

#[test]
fn the_classes_in_python_are_up_to_date() {
    same_as_published("python/ropewalk/_figures.py", &publish::python());
}

#[test]
fn the_vocabulary_of_the_report_page_is_up_to_date() {
    same_as_published("web/report/vocabulary.js", &publish::javascript());
}

fn document() -> (RunResult, Value) {
    let text = "[transfer]\nduration = '2 s'\nbytes = '50 kB'\n\
                [[path]]\nname = 'wifi'\nrate = '1 Mbit/s'\nrtt = '20 ms'\n";
    let scenario = Scenario::parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
    let result = run(&scenario, &RunOptions::default()).expect("a run").result;
    let document = serde_json::to_value(&result).expect("a document");
    (result, document)
}

/// The keys of a document, with a dot between a part and its figure.
fn keys(document: &Value) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for (key, value) in document.as_object().expect("an object") {
        let own = value.as_object().into_iter().flatten().map(|(own, _)| format!("{key}.{own}"));
        keys.extend(own.chain([key.clone()]));
    }
    keys
}

#[test]
fn every_key_of_a_document_is_a_declared_figure() {
    let (_, one) = document();
    let declared: BTreeSet<String> = RunResult::FIGURES.iter().map(|f| f.key.to_owned()).collect();
    let omitted =
        BTreeSet::from(["association_goodput_bps", "directions", "flows"].map(str::to_owned));
    assert_eq!(keys(&one), &declared - &omitted);
    let declared: BTreeSet<String> = PathResult::FIGURES.iter().map(|f| f.key.to_owned()).collect();
    let omitted = BTreeSet::from(["carried_bytes".to_owned(), "undone_reductions".to_owned()]);
    assert_eq!(keys(&one["paths"][0]), &declared - &omitted);
}

#[test]
fn a_figure_reads_what_the_document_says() {
    let (result, document) = document();
    let mut read = 0;
    for figure in RunResult::FIGURES.iter().filter(|f| f.is_value() && f.kind != Type::Text) {
        let pointer = format!("/{}", figure.key.replace('.', "/"));
        let Some(value) = document.pointer(&pointer).filter(|value| !value.is_array()) else {
            continue;
        };
        assert_eq!(value, &figure.value(&result), "{}", figure.key);
        read += 1;
    }
    assert!(read > 25, "{read} figures");
}

#[test]
fn columns_are_unambiguous_and_keep_their_names() {
    let all = figures();
    let names: BTreeSet<String> = all.iter().map(|figure| figure.column()).collect();
    assert_eq!(names.len(), all.len());
    for name in ["app_delay_p99_s", "receive_buffer_max_bytes", "out_of_order_ratio", "blocked_s"] {
        assert_eq!(column(name).column(), name);
    }
    assert_eq!(swept().len(), 18);
    assert_eq!(compared().len(), 10);
}
