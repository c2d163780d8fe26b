//! Trace files: read relative to the scenario, and refused if their content is invalid.

use std::path::PathBuf;

use ropewalk_base::{Duration, Rate};
use ropewalk_scenario::{Capacity, Loss, Scenario, ScenarioError, Trace};

/// A separate directory with the given files for each test.
fn directory(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(directory.join("traces")).unwrap();
    for (name, text) in files {
        std::fs::write(directory.join(name), text).unwrap();
    }
    directory
}

fn load(test: &str, scenario: &str, trace: &str) -> Result<Scenario, ScenarioError> {
    let files = [("scenario.toml", scenario), ("traces/t.txt", trace)];
    Scenario::load(directory(test, &files).join("scenario.toml"))
}

const LINK_TRACE: &str = "[[path]]\ntrace = \"traces/t.txt\"\n";

#[test]
fn a_trace_is_found_beside_the_scenario_and_sets_the_rate_of_the_way_back() {
    let scenario = load("found", LINK_TRACE, "# a comment\n2\n2\n\n10\n").unwrap();
    let Capacity::Trace(trace) = &scenario.paths[0].up.capacity else { panic!("no trace") };
    let times: Vec<_> = [2, 2, 10].into_iter().map(Duration::from_millis).collect();
    assert_eq!(trace.opportunities, times);
    assert_eq!(trace.period(), Duration::from_millis(10));
    // Three opportunities of 1504 B in 10 ms.
    let mean = Rate::from_bps(3_609_600);
    assert_eq!(scenario.paths[0].down.capacity, Capacity::Rate(mean));
}

#[test]
fn wrong_traces_are_refused_with_the_line_of_the_trace() {
    for (i, (text, phrase)) in [
        ("", "the trace is empty"),
        ("# only a comment\n", "the trace is empty"),
        ("0\n0\n", "ends at 0 ms"),
        ("1\nx\n", "traces/t.txt:2: `x` is not a whole number"),
        ("1\n2.5\n", "traces/t.txt:2: `2.5` is not a whole number"),
        ("5\n# fine\n4\n", "traces/t.txt:3: 4 ms lies before"),
        ("99999999999\n", "traces/t.txt:1:"),
    ]
    .into_iter()
    .enumerate()
    {
        let error = load(&format!("wrong{i}"), LINK_TRACE, text).unwrap_err();
        assert!(error.to_string().contains(phrase), "no {phrase:?} in:\n{error}");
        assert_eq!(error.first().line, 2, "it points at the line of the scenario");
    }
}

#[test]
fn a_step_cannot_change_the_rate_of_a_trace() {
    let text = format!("{LINK_TRACE}steps = [{{ at = \"1 s\", rate = \"1 Mbit/s\" }}]\n");
    let error = load("step", &text, "10\n").unwrap_err();
    assert!(error.to_string().contains("follows a trace"), "{error}");
}

#[test]
fn losses_are_read_from_a_file_and_become_part_of_the_scenario() {
    let text = "[[path]]\nloss = { model = \"trace\", file = \"traces/t.txt\" }\n";
    let scenario = load("losses", text, "3\n7\n").unwrap();
    assert_eq!(scenario.paths[0].up.loss, Loss::Trace { losses: vec![3, 7] });
    assert!(scenario.to_toml().contains("losses = [3, 7]"));
    let error = load("losses_wrong", text, "7\n3\n").unwrap_err();
    assert!(error.to_string().contains("traces/t.txt:2: 3 does not ascend"), "{error}");
}

#[test]
fn a_trace_used_twice_is_held_once() {
    let text = format!("{LINK_TRACE}{LINK_TRACE}");
    let scenario = load("twice", &text, "10\n").unwrap();
    let traces: Vec<&std::sync::Arc<Trace>> = (scenario.paths.iter())
        .filter_map(|p| match &p.up.capacity {
            Capacity::Trace(trace) => Some(trace),
            Capacity::Rate(_) => None,
        })
        .collect();
    assert!(std::sync::Arc::ptr_eq(traces[0], traces[1]));
}
