//! Wrong input: status 2, a helpful message, and nothing written. Failed runs: status 1.

use std::fs;

use crate::support::TestDir;

const FILE: &str = "scenarios/wifi-lte.toml";

#[test]
fn wrong_input_is_refused_with_a_hint_and_leaves_nothing() {
    let dir = TestDir::new("refused");
    let files = ["--report", "r.html", "--out", "s.parquet"];
    let cases: [(&[&str], &[&str]); 19] = [
        (&["run", "nope.toml"], &["nope.toml", "cannot be read"]),
        (&["run", FILE, "--set", "path.lte.rt=4ms"], &["rt", "did you mean `rtt`?", "--set"]),
        (&["run", FILE, "--set", "path.lte.rtt=4 parsec"], &["parsec", "--set"]),
        (&["run", FILE, "--set", "transfer.warmup=1000 s"], &["error:", "help:"]),
        (&["run", FILE, "--set", "path.lte.loss=1%"], &["1%", "write 0.01"]),
        (&["run", FILE, "--duration", "10s"], &["--set transfer.duration=VALUE"]),
        (&["run", FILE, "--set", "nonsense"], &["nonsense", "key=value"]),
        (&["run", FILE, "--scheduler", "dasp"], &["dasp", "did you mean `daps`?"]),
        (&["run", FILE, "--seed", "-1"], &["--seed"]),
        (&["run", FILE, "--sed", "1"], &["--sed", "--se"]),
        (&["run", FILE, "--out", "x.xlsx"], &[".xlsx", ".parquet, .arrow, .feather, .csv"]),
        (&["run", FILE, "--out", "x"], &["no extension", ".parquet"]),
        (&["run", FILE, "--report", "x.pdf"], &["x.pdf", ".html"]),
        (&["run", FILE, "--report", "no/where.html"], &["no/where.html", "directory"]),
        (&["run"], &["<SCENARIO>"]),
        (&["compare", FILE, "--schedulers", "daps,nobody"], &["nobody", "round-robin"]),
        (&["compare", FILE, "--vary", "transfer.seed"], &["transfer.seed", "for example"]),
        (&["compare", FILE, "--scheduler", "daps"], &["--schedulers"]),
        (
            &["compare", FILE, "--vary", "transfer.receive_buffer=30kB,x"],
            &["transfer.receive_buffer", "= x", "--> --vary transfer.receive_buffer=x"],
        ),
    ];
    for (words, hints) in cases {
        let own = words.iter().any(|word| ["--out", "--report"].contains(word));
        let words = if own { words.to_vec() } else { [words, &files].concat() };
        dir.ropewalk(&words).refused(hints);
        assert_eq!(dir.left_behind(), [""; 0], "{words:?}");
    }
}

#[test]
fn wrong_questions_to_explain_are_refused_with_what_would_be_right() {
    let dir = TestDir::new("refused-explain");
    let cases: [(&[&str], &[&str]); 9] = [
        (&["--path", "wlan"], &["wlan", "valid: wifi, lte"]),
        (&["--at", "soon"], &["soon", "--at '2.5 s'"]),
        (&["--at", "1 s", "--chunk", "3"], &["cannot be used with"]),
        (&["--at", "2.5"], &["2.5", "has no unit", "2500ms"]),
        (&["--at", "-1s"], &["-1s", "negative"]),
        (&["--at", "200 s"], &["200 s", "the run ends at 100 s"]),
        (&["--chunk", "99999999"], &["99999999", "chunks", "valid: 0 to "]),
        (&["--association", "1"], &["--association 1", "valid: 0 to 0"]),
        (&["--first", "some"], &["some"]),
    ];
    for (words, hints) in cases {
        dir.ropewalk(&[&["explain", FILE], words].concat()).refused(hints);
    }
}

#[test]
fn an_error_in_the_file_shows_its_line() {
    let dir = TestDir::new("line");
    fs::write(dir.file("bad.toml"), "[[path]]\nrate = \"1 Mbit/s\"\nrtt = 20\n").expect("a file");
    for command in ["run", "compare", "predict", "explain"] {
        dir.ropewalk(&[command, "bad.toml"]).refused(&["bad.toml:3:7", "rtt = 20", "help:"]);
    }
}

#[test]
fn a_file_that_exists_is_not_overwritten_by_new() {
    let dir = TestDir::new("new");
    fs::write(dir.file("mine.toml"), "precious").expect("a file");
    dir.ropewalk(&["new", "mine.toml"]).refused(&["mine.toml", "already exists"]);
    assert_eq!(fs::read_to_string(dir.file("mine.toml")).expect("the file"), "precious");
}

#[test]
fn a_run_that_fails_exits_with_1_says_why_and_writes_nothing() {
    let dir = TestDir::new("failed");
    let dead = [
        "--set",
        "path.wifi.loss=1.0",
        "--set",
        "path.lte.loss=1.0",
        "--set",
        "transfer.duration=30 s",
    ];
    for more in [&["--json"][..], &["--report", "r.html", "--out", "s.csv"]] {
        let done = dir.ropewalk(&[&["run", FILE][..], &dead, more].concat());
        assert_eq!(done.status(), 1, "{}", done.stderr());
        assert_eq!(done.stdout(), "");
        assert!(done.stderr().starts_with("error: the transfer stopped"), "{}", done.stderr());
        assert_eq!(dir.left_behind(), [""; 0]);
    }
}

#[test]
fn a_comparison_with_a_failed_run_shows_the_others_and_exits_with_1() {
    let dir = TestDir::new("half-failed");
    let words = [
        "compare",
        FILE,
        "--json",
        "--set",
        "transfer.duration=30 s",
        "--set",
        "path.lte.loss=1.0",
        "--vary",
        "path.wifi.loss=0.0,1.0",
    ];
    let done = dir.ropewalk(&words);
    assert_eq!(done.status(), 1, "{}", done.stderr());
    let document = done.json("ropewalk.compare/1");
    assert!(document["runs"][0]["result"].is_object());
    assert!(document["runs"][1]["result"].is_null());
    assert!(document["runs"][1]["error"].as_str().expect("a reason").contains("stopped"));
}

#[cfg(unix)]
#[test]
fn a_reader_that_closes_the_pipe_early_changes_no_exit_status() {
    let dir = TestDir::new("closed-pipe");
    for (words, status) in [("run scenarios/wifi-lte.toml", 0), ("run nosuch.toml", 2)] {
        // The reader ends before the command writes.
        let line = format!(
            "{{ sleep 0.2; {} {words} 2>&1; echo $? >status; }} | true; cat status",
            env!("CARGO_BIN_EXE_ropewalk")
        );
        let mut shell = std::process::Command::new("sh");
        let done = shell.args(["-c", &line]).current_dir(dir.file("")).output().expect("a shell");
        assert_eq!(String::from_utf8_lossy(&done.stdout), format!("{status}\n"), "{words}");
    }
}
