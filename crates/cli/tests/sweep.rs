//! Sweeps: identical bytes on any number of threads, in shards, and after a kill.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::support::TestDir;

const FILE: &str = "scenarios/wifi-lte.toml";

/// A grid with losses, so that seeds differ.
const GRID: [&str; 14] = [
    "sweep",
    FILE,
    "--set",
    "path.lte.loss=0.005",
    "--set",
    "transfer.duration=5 s",
    "--set",
    "transfer.warmup=1 s",
    "--vary",
    "path.lte.rtt=40ms..200ms/3",
    "--vary",
    "transfer.scheduler=round-robin,daps",
    "--seeds",
    "2",
];

#[test]
fn threads_and_shards_do_not_show_in_the_file() {
    let dir = TestDir::new("sweep-bytes");
    let run = |more: &[&str]| dir.ropewalk(&[&GRID[..], more].concat()).good();
    let bytes = |name: &str| fs::read(dir.file(name)).expect(name);
    let one = run(&["--threads", "1", "--out", "one.parquet", "--json"]);
    let document = one.json("ropewalk.sweep/1");
    let again = run(&["--out", "one.parquet", "--runs", "--json"]);
    let runs = again.json("ropewalk.sweep-runs/1")["runs"].as_array().expect("runs").clone();
    assert_eq!(runs.len(), 12);
    assert_eq!((&runs[11]["point"], &runs[11]["seed_number"]), (&5.into(), &2.into()));
    let points = document["points"].as_array().expect("points");
    assert_eq!(points.len(), 6);
    assert_eq!(points[5]["path.lte.rtt_s"], 0.2);
    assert_eq!(points[5]["transfer.scheduler"], "daps");
    assert!(points[5]["goodput_bps_half_width"].as_f64().expect("two seeds") > 0.0);
    // Line-oriented tools find each point on its own line.
    let lines = one.stdout().lines().filter(|line| line.starts_with("{\"point\": "));
    assert_eq!(lines.count(), 6);
    run(&["--threads", "2", "--out", "two.parquet"]);
    assert!(bytes("one.parquet") == bytes("two.parquet"));
    run(&["--shard", "1/2", "--out", "a.parquet"]);
    run(&["--shard", "2/2", "--out", "b.parquet"]);
    let words = ["sweep", "--merge", "b.parquet", "a.parquet", "--out", "all.parquet"];
    let table = dir.ropewalk(&words).good();
    assert!(bytes("one.parquet") == bytes("all.parquet"));
    assert_eq!(table.stdout(), run(&["--out", "two.parquet"]).stdout());
    let files = ["a", "all", "b", "one", "two"].map(|name| format!("{name}.parquet"));
    assert_eq!(dir.left_behind(), files);
}

/// Complete lines of a file. Empty if it does not exist.
fn lines(dir: &TestDir, name: &str) -> Vec<String> {
    let text = fs::read_to_string(dir.file(name)).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(str::to_owned).collect()
}

/// Waits until the journal has this many lines; the sweep must still be running then.
fn wait_for_lines(dir: &TestDir, name: &str, wanted: usize, sweep: &mut Child) {
    let (_open, never) = channel::<()>();
    for _ in 0..6000 {
        if lines(dir, name).len() >= wanted {
            return;
        }
        assert!(sweep.try_wait().expect("a child").is_none(), "the sweep was over too soon");
        let _ = never.recv_timeout(Duration::from_millis(10));
    }
    panic!("no {wanted} lines after a minute");
}

#[test]
fn a_killed_sweep_goes_on_where_it_was_and_ends_with_the_same_bytes() {
    let dir = TestDir::new("sweep-kill");
    let words = |out| {
        let long = "transfer.duration=200 s";
        let vary = "path.lte.rtt=40ms..300ms/30";
        ["sweep", FILE, "--set", long, "--vary", vary, "--threads", "2", "--out", out]
    };
    dir.ropewalk(&words("whole.parquet")).good();
    // Killed twice: the second time it resumes from a journal of another process.
    for finished in [3, 8] {
        let mut sweep = Command::new(env!("CARGO_BIN_EXE_ropewalk"))
            .args(words("cut.parquet"))
            .current_dir(dir.file("."))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command");
        wait_for_lines(&dir, "cut.parquet.journal", 1 + finished, &mut sweep);
        // After SIGKILL the process cannot clean up.
        sweep.kill().expect("a running sweep");
        sweep.wait().expect("its end");
        assert_eq!(dir.left_behind(), ["cut.parquet.journal", "whole.parquet"]);
    }
    let journal = lines(&dir, "cut.parquet.journal");
    let kept = journal.len() - 1;
    let point = |line: &String| {
        let row: serde_json::Value = serde_json::from_str(line).expect("a run");
        row["point"].as_u64().expect("its number")
    };
    // Points are started in order, so missing ones before the last finished one were running.
    let last = journal[1..].iter().map(point).max().expect("points");
    assert!(last < kept as u64 + 2, "{kept} points are finished, but number {last} is");
    // Another sweep is refused for this file.
    let other = [&words("cut.parquet")[..], &["--seed", "2"]].concat();
    dir.ropewalk(&other).refused(&["belongs to another sweep", "`seed = ", "--fresh"]);
    let resumed = dir.ropewalk(&words("cut.parquet")).good();
    let said = format!("resumed: {kept} of 30 runs are finished");
    assert!(resumed.stderr().contains(&said), "{said}: {}", resumed.stderr());
    let bytes = |name: &str| fs::read(dir.file(name)).expect(name);
    assert!(bytes("cut.parquet") == bytes("whole.parquet"));
    assert_eq!(dir.left_behind(), ["cut.parquet", "whole.parquet"]);
    // In another run, nothing is left to do, and the output is the same.
    let again = dir.ropewalk(&words("cut.parquet")).good();
    assert!(again.stderr().contains("has all 30 runs"), "{}", again.stderr());
    assert_eq!(again.stdout(), resumed.stdout());
}

#[cfg(unix)]
#[test]
fn an_interrupted_sweep_keeps_what_has_begun_and_says_how_to_resume() {
    let dir = TestDir::new("sweep-interrupt");
    let words = [
        "sweep",
        FILE,
        "--set",
        "transfer.duration=200 s",
        "--vary",
        "path.lte.rtt=40ms..300ms/60",
        "--out",
        "a.parquet",
    ];
    let mut sweep = Command::new(env!("CARGO_BIN_EXE_ropewalk"))
        .args(words)
        .current_dir(dir.file("."))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command");
    wait_for_lines(&dir, "a.parquet.journal", 2, &mut sweep);
    let id = sweep.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill").success());
    let done = sweep.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("interrupted") && said.contains("the same command resumes"), "{said}");
    let kept = lines(&dir, "a.parquet.journal").len() - 1;
    let resumed = dir.ropewalk(&words).good();
    let said = format!("resumed: {kept} of 60 runs are finished");
    assert!(resumed.stderr().contains(&said), "{said}: {}", resumed.stderr());
}

#[test]
fn seeds_are_added_to_a_finished_sweep_and_a_kill_meanwhile_costs_nothing_else() {
    let dir = TestDir::new("sweep-seeds");
    let words = |out, seeds| {
        let long = "transfer.duration=100 s";
        let vary = "path.lte.rtt=40ms..300ms/10";
        ["sweep", FILE, "--set", long, "--vary", vary, "--seeds", seeds, "--out", out]
    };
    dir.ropewalk(&words("whole.parquet", "5")).good();
    dir.ropewalk(&words("x.parquet", "2")).good();
    let mut sweep = Command::new(env!("CARGO_BIN_EXE_ropewalk"))
        .args(words("x.parquet", "3..5"))
        .current_dir(dir.file("."))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command");
    wait_for_lines(&dir, "x.parquet.journal", 1 + 4, &mut sweep);
    sweep.kill().expect("a running sweep");
    sweep.wait().expect("its end");
    let kept = lines(&dir, "x.parquet.journal").len() - 1;
    let more = [&words("x.parquet", "3..5")[..], &["--means", "means.parquet", "--json"]].concat();
    let done = dir.ropewalk(&more).good();
    let said = format!("resumed: {} of 50 runs are finished", 20 + kept);
    assert!(done.stderr().contains(&said), "{said}: {}", done.stderr());
    let bytes = |name: &str| fs::read(dir.file(name)).expect(name);
    assert!(bytes("x.parquet") == bytes("whole.parquet"));
    let document = done.json("ropewalk.sweep/1");
    assert_eq!(
        (&document["points"][9]["runs"], document["seeds"].as_array().map(Vec::len)),
        (&5.into(), Some(5))
    );
    // The same result as from a run with all seeds, and as from two merged files.
    let all = ["--means", "whole-means.parquet"];
    dir.ropewalk(&[&words("whole.parquet", "1")[..], &all].concat()).good();
    assert!(bytes("means.parquet") == bytes("whole-means.parquet"));
    dir.ropewalk(&words("a.parquet", "1..2")).good();
    dir.ropewalk(&words("b.parquet", "3..5")).good();
    let words = ["sweep", "--merge", "b.parquet", "a.parquet", "--out", "all.parquet"];
    dir.ropewalk(&words).good();
    assert!(bytes("all.parquet") == bytes("whole.parquet"));
}

#[test]
fn a_dry_run_counts_and_estimates_and_leaves_nothing() {
    let dir = TestDir::new("sweep-dry");
    let done = dir.ropewalk(&[&GRID[..], &["--dry-run", "--out", "x.parquet"]].concat()).good();
    assert!(done.stdout().starts_with("6 points, 0 of them finished\n12 runs left, about "));
    let words = [&GRID[..], &["--dry-run", "--json", "--shard", "2/4"]].concat();
    let estimate = dir.ropewalk(&words).good().json("ropewalk.sweep-outlook/1");
    assert_eq!((&estimate["points"], &estimate["runs_left"]), (&2.into(), &4.into()));
    assert!(estimate["estimated_s"].as_f64().expect("a time") > 0.0);
    assert_eq!(dir.left_behind(), [""; 0]);
}

#[test]
fn wrong_input_is_refused_with_what_would_be_right_before_anything_runs() {
    let dir = TestDir::new("sweep-refused");
    let rtt = "path.lte.rtt=1ms,2ms";
    let cases: [(&[&str], &[&str]); 23] = [
        (&["sweep"], &["<SCENARIO>"]),
        (&["sweep", "nope.toml", "--vary", rtt], &["nope.toml", "cannot be read"]),
        (&["sweep", FILE], &["nothing varies", "--vary"]),
        (&["sweep", FILE, "--vary", "path.lte.rtt"], &["there is no `=`", "=20ms..400ms/20"]),
        (&["sweep", FILE, "--vary", "path.lte.rtt=1ms..2ms"], &["how many values"]),
        (&["sweep", FILE, "--vary", "path.lte.rtt=1ms..2ms/0"], &["`0`", "from 2 to"]),
        (&["sweep", FILE, "--vary", "path.lte.rtt=1ms..2kB/4"], &["not of one kind"]),
        (&["sweep", FILE, "--vary", "path.lte.rt=1ms,2ms"], &["did you mean `rtt`?", "--vary"]),
        (&["sweep", FILE, "--vary", "path.lt.rtt=1ms"], &["path.lt", "path[1] (lte)"]),
        (&["sweep", FILE, "--vary", "transfer.scheduler=daps,dasp"], &["did you mean `daps`?"]),
        (&["sweep", FILE, "--vary", "transfer.seed=1,2"], &["--seeds N"]),
        (&["sweep", FILE, "--vary", rtt, "--vary", rtt], &["the key is given twice"]),
        (&["sweep", FILE, "--vary", rtt, "--seeds", "0"], &["--seeds", "from 1 to 10000"]),
        (&["sweep", FILE, "--vary", rtt, "--seeds", "9..8"], &["--seeds", "`9..8` is empty"]),
        (&["sweep", FILE, "--vary", rtt, "--seeds", "1..3,2"], &["--seeds", "seed 2", "twice"]),
        (
            &["sweep", FILE, "--vary", rtt, "--means", "x.txt"],
            &["--means x.txt", ".parquet or .csv"],
        ),
        (
            &["sweep", FILE, "--vary", rtt, "--out", "x.parquet", "--means", "x.parquet"],
            &["--means x.parquet", "names of their own"],
        ),
        (&["sweep", FILE, "--vary", rtt, "--shard", "1/2"], &["--shard", "--out"]),
        (
            &["sweep", FILE, "--vary", rtt, "--shard", "1/2", "--out", "x.csv"],
            &["--shard", "Parquet"],
        ),
        (&["sweep", FILE, "--vary", rtt, "--shard", "3/2"], &["valid: 1/2 to 2/2"]),
        (&["sweep", FILE, "--vary", rtt, "--out", "x.txt"], &["x.txt", ".parquet or .csv"]),
        (&["sweep", FILE, "--merge", "a.parquet", "--out", "b.parquet"], &["cannot be used with"]),
        (&["sweep", "--merge", "a.parquet", "--out", "b.parquet"], &["a.parquet", "shard"]),
    ];
    for (words, hints) in cases {
        dir.ropewalk(words).refused(hints);
        assert_eq!(dir.left_behind(), [""; 0], "{words:?}");
    }
}

#[test]
fn points_that_fail_are_kept_beside_the_others_and_the_status_is_1() {
    let dir = TestDir::new("sweep-failed");
    let dead = ["--set", "path.lte.loss=1.0", "--set", "transfer.duration=30 s"];
    let vary = ["--vary", "path.wifi.loss=0.0,1.0", "--json", "--out", "x.parquet"];
    let done = dir.ropewalk(&[&["sweep", FILE], &dead[..], &vary[..]].concat());
    assert_eq!(done.status(), 1, "{}", done.stderr());
    assert!(
        done.stderr().contains("1 of 2 runs failed, the first at point 1: the transfer stopped")
    );
    let document = done.json("ropewalk.sweep/1");
    assert_eq!(document["points"][0]["failed"], 0);
    assert_eq!(document["points"][1]["failed"], 1);
    assert_eq!(dir.left_behind(), ["x.parquet"]);
}

#[test]
fn runs_and_means_are_written_as_csv_where_the_name_says_so() {
    let dir = TestDir::new("sweep-csv");
    let words = [&GRID[..], &["--out", "runs.csv", "--means", "means.csv", "--quiet"]].concat();
    dir.ropewalk(&words).good();
    assert_eq!(dir.left_behind(), ["means.csv", "runs.csv"]);
    for name in ["runs", "means"] {
        let rows = lines(&dir, &format!("{name}.csv"));
        assert!(rows[0].starts_with("point,") && rows[0].contains("goodput_bps"), "{}", rows[0]);
        assert!(rows.len() > 2, "{rows:?}");
    }
}

#[test]
fn a_report_of_a_sweep_holds_its_keys_and_points() {
    let dir = TestDir::new("sweep-report");
    dir.ropewalk(&[&GRID[..], &["--report", "r.html", "--quiet"]].concat()).good();
    let page = fs::read_to_string(dir.file("r.html")).expect("a report");
    assert!(page.contains("\"kind\":\"sweep\""));
    assert!(page.contains("\"column\":\"path.lte.rtt_s\"") && page.contains("\"kind\":\"time\""));
    assert!(page.contains("goodput_bps_half_width"));
    let wrong = [&GRID[..], &["--report", "r.pdf"]].concat();
    dir.ropewalk(&wrong).refused(&["--report r.pdf", "HTML"]);
}
