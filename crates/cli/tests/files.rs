//! Reports and time series on disk.

use std::fs;

use crate::support::TestDir;
use serde_json::Value;

/// The document in a report page.
fn document_of(page: &str) -> Value {
    let start = "<script type=\"application/json\" id=\"report-data\">";
    let (_, behind) = page.split_once(start).expect("the element of the document");
    let (data, _) = behind.split_once("</script>").expect("its end");
    serde_json::from_str(data).expect("JSON")
}

#[test]
fn a_report_holds_the_run_with_series_and_sequence() {
    let dir = TestDir::new("report");
    fs::write(dir.file("r.html"), "what was there before").expect("a file");
    let words = [
        "run",
        "scenarios/sarwar.toml",
        "--report",
        "r.html",
        "--set",
        "transfer.duration=8 s",
        "--set",
        "transfer.warmup=1 s",
    ];
    dir.ropewalk(&words).good();
    assert_eq!(dir.left_behind(), ["r.html"]);
    let page = fs::read_to_string(dir.file("r.html")).expect("a report");
    for left in ["/*REPORT_DATA*/", "/*UPLOT_JS*/", "/*REPORT_CSS*/", "/*REPORT_JS"] {
        assert!(!page.contains(left), "{left} was not filled");
    }
    let report = document_of(&page);
    assert_eq!((&report["schema"], &report["kind"]), (&"ropewalk.report/1".into(), &"run".into()));
    assert!(
        report["generated_from"].as_str().expect("text").starts_with("ropewalk run scenarios/")
    );
    let run = &report["runs"][0];
    assert_eq!(run["result"]["schema"], "ropewalk.run/1");
    let times = run["series"]["time_s"].as_array().expect("times").len();
    assert!(times >= 8, "{times}");
    assert_eq!(run["series"]["paths"][1]["srtt_s"].as_array().expect("values").len(), times);
    let arrivals = run["sequence"]["paths"][0]["time_s"].as_array().expect("arrivals");
    assert!(arrivals.len() > 100);
    assert!(arrivals.iter().all(|at| at.as_f64().expect("a time") < 5.0), "the first seconds only");
    // The recorded scenario reproduces the run.
    fs::write(dir.file("again.toml"), run["scenario_toml"].as_str().expect("text"))
        .expect("a file");
    let again = dir.ropewalk(&["run", "again.toml", "--json"]).good().json("ropewalk.run/1");
    assert_eq!(again["delivered_bytes"], run["result"]["delivered_bytes"]);
}

#[test]
fn a_report_of_a_comparison_holds_every_run() {
    let dir = TestDir::new("report-compare");
    let words = [
        "compare",
        "scenarios/sarwar.toml",
        "--report",
        "r.html",
        "--out",
        "s.csv",
        "--json",
        "--schedulers",
        "daps,backup",
        "--seeds",
        "2",
        "--set",
        "transfer.duration=3 s",
        "--set",
        "transfer.warmup=0 s",
    ];
    dir.ropewalk(&words).good().json("ropewalk.compare/1");
    let report = document_of(&fs::read_to_string(dir.file("r.html")).expect("a report"));
    assert_eq!(report["kind"], "compare");
    let labels: Vec<&Value> =
        report["runs"].as_array().expect("runs").iter().map(|run| &run["label"]).collect();
    assert_eq!(labels, ["daps", "backup"]);
    let repeats = report["repeats"].as_array().expect("every seed");
    let seeds: Vec<[&Value; 2]> = repeats.iter().map(|one| [&one["label"], &one["seed"]]).collect();
    assert_eq!(seeds, [["daps", "1"], ["daps", "2"], ["backup", "1"], ["backup", "2"]]);
    assert!(repeats.iter().all(|one| one["goodput_bps"].as_f64() > Some(0.0)));
    assert!(report["summary"][0]["goodput_bps"]["half_width"].is_number());
    assert!(report["runs"][0]["distributions"]["app_delay_s"]["shares"].is_array());
    let table = fs::read_to_string(dir.file("s.csv")).expect("series");
    assert!(table.starts_with("run,time_s,goodput_bps,"), "{table}");
    for label in ["daps,", "backup,"] {
        assert!(table.lines().filter(|line| line.starts_with(label)).count() >= 3, "{table}");
    }
}

#[test]
fn a_name_cannot_break_out_of_the_report() {
    let dir = TestDir::new("report-hostile");
    let name = "<!-- <script> REPORT_DATA.toml";
    let text = "[transfer]\nduration = '1 s'\n[[path]]\nrate = '1 Mbit/s'\nrtt = '20 ms'\n";
    fs::write(dir.file(name), text).expect("a file");
    dir.ropewalk(&["run", name, "--report", "r.html"]).good();
    let page = fs::read_to_string(dir.file("r.html")).expect("a report");
    let report = document_of(&page);
    let title = report["title"].as_str().expect("text");
    assert!(title.starts_with("<!-- <script> REPORT_DATA, "), "{title}");
    assert!(!page.contains("<!-- <script>"), "the page has it with its `<` escaped");
}

#[test]
fn series_are_written_in_the_format_that_the_name_says() {
    let dir = TestDir::new("series");
    for (name, magic) in [
        ("s.parquet", "PAR1"),
        ("s.arrow", "ARROW1"),
        ("s.feather", "ARROW1"),
        ("s.csv", "time_s,"),
    ] {
        let words = [
            "run",
            "scenarios/wifi-lte.toml",
            "--out",
            name,
            "--set",
            "transfer.duration=3 s",
            "--set",
            "transfer.warmup=0 s",
        ];
        let bytes = |()| {
            dir.ropewalk(&words).good();
            fs::read(dir.file(name)).expect("the series")
        };
        let first = bytes(());
        assert!(first.starts_with(magic.as_bytes()), "{name}");
        assert_eq!(first, bytes(()), "{name}: the same run, the same bytes");
    }
    assert_eq!(dir.left_behind(), ["s.arrow", "s.csv", "s.feather", "s.parquet"]);
    let table = fs::read_to_string(dir.file("s.csv")).expect("text");
    assert!(table.lines().next().expect("headings").contains(",lte.cwnd_bytes,"), "{table}");
}
