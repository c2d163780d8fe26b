//! `advise` as a command.

use std::fs;

use crate::support::TestDir;

const UNEQUAL: &str = "# mine\n[transfer]\nduration = '3 s' # short\nwarmup = '1 s'\n\n\
    [[path]]\nname = 'dsl'\nrate = '5 Mbit/s'\nrtt = '20 ms'\n\n\
    [[path]]\nname = 'lte'\nrate = '2 Mbit/s'\nrtt = '60 ms'\n";

fn dir(name: &str) -> TestDir {
    let dir = TestDir::new(name);
    fs::write(dir.file("links.toml"), UNEQUAL).expect("a scenario");
    dir
}

#[test]
fn the_advice_is_on_one_screen_and_what_is_written_runs_with_it() {
    let dir = dir("advise");
    let words = ["advise", "links.toml", "--seeds", "2", "--write", "advised.toml"];
    let shown = dir.ropewalk(&words).good();
    for part in
        ["use       dsl + lte", "why ", "how sure", "as it is", "pays off", "flow-control bound"]
    {
        assert!(shown.stdout().contains(part), "no {part} in {}", shown.stdout());
    }
    assert!(shown.stdout().lines().count() <= 30, "{}", shown.stdout());
    assert!(shown.stdout().lines().all(|line| line.chars().count() <= 100), "{}", shown.stdout());
    let text = fs::read_to_string(dir.file("advised.toml")).expect("what was written");
    for part in ["# mine", "# short", "congestion = ", "receive_buffer = "] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let document = dir.ropewalk(&["run", "advised.toml", "--json"]).good().json("ropewalk.run/1");
    assert!(document["goodput_bps"].as_f64().expect("bit/s") > 6e6, "{document}");
    assert_eq!(document["paths"].as_array().expect("paths").len(), 2);
}

#[test]
fn the_document_has_the_choices_the_links_and_what_changes_with_them() {
    let dir = dir("advise-json");
    let words = ["advise", "links.toml", "--goal", "calls", "--seeds", "2", "--json"];
    let document = dir.ropewalk(&words).good().json("ropewalk.advise/1");
    assert_eq!(document["goal"], "calls");
    for choice in ["advice", "current", "best_single"] {
        assert!(document[choice]["goodput_bps"]["mean"].as_f64().expect("bit/s") > 0.0);
    }
    let names: Vec<&str> = document["paths"]
        .as_array()
        .expect("links")
        .iter()
        .map(|link| link["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["dsl", "lte"]);
    assert!(!document["sensitivity"].as_array().expect("cases").is_empty());
}

#[test]
fn what_has_no_advice_is_refused_before_anything_runs() {
    let dir = dir("advise-refused");
    let cases: [(&[&str], &[&str]); 10] = [
        (&["--goal", "speed"], &["`speed` is no goal", "throughput, latency or calls"]),
        (&["--set", "transfer.protocol=sctp"], &["one path at a time", "cmt-sctp"]),
        (&["--seeds", "1"], &["1", "2..=1000"]),
        (&["--write", "no/such/place.toml"], &["no directory `no/such`"]),
        (&["--live"], &["--live needs --to", "bench serve"]),
        (&["--to", "127.0.0.1", "--plain"], &["--live"]),
        (&["--live", "--to", "127.0.0.1", "--plain", "--goal", "calls"], &["no call"]),
        (
            &["--live", "--to", "127.0.0.1", "--plain", "--set", "transfer.protocol=mptcp"],
            &["transfer.protocol is mptcp", "cmt-sctp"],
        ),
        (&["--live", "--to", "127.0.0.1", "--plain"], &["the link dsl", "--from", "dsl, lte"]),
        (
            &["--live", "--to", "127.0.0.1", "--plain", "--from", "127.0.0.1"],
            &["--from has 1 links", "scenario has 2"],
        ),
    ];
    for (words, hints) in cases {
        dir.ropewalk(&[&["advise", "links.toml"], words].concat()).refused(hints);
    }
    assert_eq!(dir.left_behind(), ["links.toml"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_live_run_shows_what_was_measured_beside_what_was_predicted() {
    if !crate::support::can_emulate() {
        return;
    }
    let dir = dir("advise-live");
    let (near, far) = (dir.key("near.key"), dir.key("far.key"));
    let own = env!("CARGO_BIN_EXE_ropewalk");
    let far_line = format!(
        "exec {own} bench serve --listen {{local1}} --listen {{local2}} --key far.key --allow {near}"
    );
    let words = ["emulate", "links.toml", "--far", &far_line, "--", own, "advise", "links.toml"];
    let live = [
        "--seeds",
        "2",
        "--live",
        "--live-time",
        "1 s",
        "--live-runs",
        "2",
        "--to",
        "{remote1},{remote2}",
    ];
    let keys = ["--from", "{local1},{local2}", "--key", "near.key", "--peer", &far, "--json"];
    let done = dir.ropewalk(&[&words[..], &live, &keys].concat()).good();
    let document = done.json("ropewalk.advise/1");
    let rows = document["live"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().map(|row| row["choice"].as_str().expect("a name")).collect();
    assert_eq!(names, ["advice", "rival"]);
    for (row, choice) in rows.iter().zip([&document["advice"], &document["rival"]]) {
        assert_eq!(row["predicted"]["goodput_bps"], choice["goodput_bps"]);
        let measured = row["measured"]["goodput_bps"].as_f64().expect("bit/s");
        // The links carry 7 Mbit/s. A busy machine makes the emulator late.
        assert!(measured > 0.2e6 && measured < 8e6, "{row}");
        assert_eq!(row["measured"]["runs"].as_array().expect("runs").len(), 2);
        let range = row["predicted"]["app_delay_p99_range_s"].clone();
        assert_eq!(range, choice["app_delay_p99_range_s"]);
        assert!(range[0].as_f64().expect("s") <= range[1].as_f64().expect("s"), "{row}");
        // At least half of the shorter round trip.
        let delay = row["measured"]["app_delay_p99_s"].as_f64().expect("s");
        assert!(delay > 0.008, "{row}");
    }
}
