//! `tune` as a command.

use std::fs;

use crate::support::TestDir;

const CLEAN_AND_LOSSY: &str = "# mine\n[transfer]\nduration = '20 s' # short\nreceive_buffer = '126 kB'\n\n\
    [[path]]\nname = 'clean'\nrate = '21 Mbit/s'\nrtt = '40 ms'\nloss = 1e-4\n\n\
    [[path]]\nname = 'lossy'\nrate = '21 Mbit/s'\nrtt = '40 ms'\nloss = 3e-3\n";

fn dir(name: &str) -> TestDir {
    let dir = TestDir::new(name);
    fs::write(dir.file("two.toml"), CLEAN_AND_LOSSY).expect("a scenario");
    dir
}

#[test]
fn limits_promises_and_the_least_buffer_are_shown_and_in_the_document() {
    let dir = dir("tune");
    let shown = dir.ropewalk(&["tune", "two.toml", "--reach", "60%", "--seeds", "2"]).good();
    for part in [
        "clean",
        "pays off",
        "unlimited",
        "receive buffer",
        "exact links",
        "simulated:",
        "by the models",
    ] {
        assert!(shown.stdout().contains(part), "no {part} in {}", shown.stdout());
    }
    let words = ["tune", "two.toml", "--reach", "0.6", "--seeds", "2", "--json"];
    let document = dir.ropewalk(&words).good().json("ropewalk.tune/1");
    let limits: Vec<u64> = document["limits_packets"]
        .as_array()
        .expect("limits")
        .iter()
        .map(|limit| limit.as_u64().expect("packets"))
        .collect();
    assert!(limits[0] > limits[1] && limits[1] >= 1, "{limits:?}");
    assert!(limits.iter().sum::<u64>() <= document["buffer_packets"].as_u64().expect("packets"));
    let bps = |value: &serde_json::Value| value.as_f64().expect("bit/s");
    assert!(bps(&document["predicted_bps"]) > bps(&document["equal_split"]["predicted_bps"]));
    assert!(bps(&document["reach"]["least"]["predicted_bps"]) >= 0.6 * 42e6);
    let simulated = &document["reach"]["simulated"];
    let share = |trial: &str| simulated[trial]["share"]["mean"].as_f64().expect("a share");
    assert!(share("least") >= 0.6 && share("less") < 0.6, "{simulated}");
    // `run` with this buffer reaches the goodput of the document.
    let bytes = &simulated["least"]["receive_buffer_bytes"];
    let buffer = format!("transfer.receive_buffer={bytes}B");
    let words = ["compare", "two.toml", "--set", &buffer, "--seeds", "2", "--schedulers", "lay"];
    let runs = dir.ropewalk(&[&words[..], &["--json"]].concat()).good().json("ropewalk.compare/1");
    let goodput = |run: usize| bps(&runs["runs"][run]["result"]["goodput_bps"]);
    let mean = f64::midpoint(goodput(0), goodput(1));
    assert!((mean / bps(&simulated["least"]["goodput_bps"]["mean"]) - 1.0).abs() < 1e-9);
    assert!(document["simulated_bps"].is_null() && document["check"].is_null());
}

#[test]
fn a_check_has_all_managers_with_intervals() {
    let dir = dir("tune-check");
    let words = ["tune", "two.toml", "--check", "--seeds", "2", "--json"];
    let document = dir.ropewalk(&words).good().json("ropewalk.tune/1");
    let managers = document["check"]["managers"].as_array().expect("managers");
    for (manager, name) in managers.iter().zip(["none", "dynamic", "adaptive", "static"]) {
        assert_eq!(manager["window_manager"], name);
        assert!(manager["goodput_bps"]["half_width"].as_f64().expect("two seeds") > 0.0);
    }
    assert_eq!(document["simulated_bps"], managers[3]["goodput_bps"]);
}

#[test]
fn the_report_holds_the_document_and_what_is_drawn_of_it() {
    let dir = dir("tune-report");
    dir.ropewalk(&["tune", "two.toml", "--report", "limits.html", "--json"]).good();
    let page = fs::read_to_string(dir.file("limits.html")).expect("a page");
    let start = "<script type=\"application/json\" id=\"report-data\">";
    let (_, from) = page.split_once(start).expect("the document");
    let (text, _) = from.split_once("</script>").expect("its end");
    let report: serde_json::Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(
        (&report["kind"], &report["tuning"]["schema"]),
        (&"tune".into(), &"ropewalk.tune/1".into())
    );
    let ids: Vec<_> =
        report["figures"].as_array().expect("figures").iter().map(|f| &f["id"]).collect();
    assert_eq!(ids, ["window", "buffer", "allocation"]);
    assert_eq!(report["surfaces"][0]["mark"]["x"], report["tuning"]["limits_packets"][0]);
    let refused = dir.ropewalk(&["tune", "two.toml", "--report", "limits.pdf"]);
    refused.refused(&["a report is an HTML page"]);
}

#[test]
fn the_written_scenario_keeps_its_comments_and_runs_with_the_limits() {
    let dir = dir("tune-write");
    let done = dir.ropewalk(&["tune", "two.toml", "--write", "tuned.toml", "--json"]).good();
    let limits = &done.json("ropewalk.tune/1")["limits_packets"];
    let text = fs::read_to_string(dir.file("tuned.toml")).expect("what was written");
    for part in ["# mine", "# short", "window_manager = \"static\""] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    for limit in limits.as_array().expect("limits") {
        assert!(text.contains(&format!("window_limit = \"{limit} packets\"")), "{text}");
    }
    dir.ropewalk(&["run", "tuned.toml", "--set", "transfer.duration=2 s"]).good();
    // With changes on the command line, no existing text can be kept.
    let words = ["tune", "two.toml", "--set", "path.lossy.loss=0", "--write", "set.toml"];
    dir.ropewalk(&words).good();
    let text = fs::read_to_string(dir.file("set.toml")).expect("what was written");
    assert!(text.contains("window_manager = \"static\"") && !text.contains("0.003"), "{text}");
    dir.ropewalk(&["predict", "set.toml"]).good();
}

#[test]
fn what_cannot_be_tuned_or_written_is_refused_and_leaves_nothing_behind() {
    let dir = dir("tune-refused");
    let cases: [(&[&str], &[&str]); 6] = [
        (&["scenarios/thousand.toml"], &["shared links cannot be tuned (dsl, lte)", "via"]),
        (&["two.toml", "--set", "transfer.protocol=sctp"], &["one path at a time", "cmt-sctp"]),
        (
            &["two.toml", "--set", "transfer.receive_buffer=1 packets"],
            &["too small", "receive_buffer"],
        ),
        (&["two.toml", "--reach", "95"], &["`95` is not a share", "95%"]),
        (&["two.toml", "--write", "no/such/place.toml"], &["no directory `no/such`"]),
        (
            &["scenarios/trace-driven.toml", "--write", "moved.toml"],
            &["would not load from there", "scenarios/"],
        ),
    ];
    for (words, hints) in cases {
        dir.ropewalk(&[&["tune"], words].concat()).refused(hints);
    }
    assert_eq!(dir.left_behind(), ["two.toml"]);
}
