//! `bench`: a server and a client, two processes over loopback.

use std::process::Command;

use ropewalk_runtime::endpoint::RawError;

use crate::support::Server;
use serde_json::Value;

const ROPEWALK: &str = env!("CARGO_BIN_EXE_ropewalk");

fn measure(more: &[&str]) -> Value {
    measure_with(&[], more)
}

fn measure_with(server: &[&str], more: &[&str]) -> Value {
    let words = ["bench", "serve", "--plain", "--once", "--listen", "127.0.0.1:0"];
    let mut server = Server::start(Command::new(ROPEWALK).args(words).args(server), "bench run");
    let client = Command::new(ROPEWALK)
        .args(&server.line)
        .args(["--json", "--time", "300 ms", "--warmup", "100 ms"])
        .args(more)
        .output()
        .expect("the command runs");
    let ended = server.child.wait().expect("it ends after one client");
    let message = String::from_utf8_lossy(&client.stderr).into_owned();
    assert!(client.status.success() && ended.success(), "{message}");
    serde_json::from_slice(&client.stdout).expect("one JSON document")
}

#[test]
fn either_side_sends_and_the_receiver_s_figures_come_back() {
    let both = ["--reverse", "--in-order"];
    for more in [&both[2..], &both[..1], &both, &both[1..]] {
        let found = measure(more);
        assert_eq!(found["schema"], "ropewalk.bench/1");
        assert_eq!(found["reverse"], more.contains(&"--reverse"));
        assert_eq!(found["in_order"], more.contains(&"--in-order"));
        assert!(found["goodput_bps"].as_f64().is_some_and(|bps| bps > 1e6), "{found}");
        assert!(found["seconds"].as_f64().is_some_and(|seconds| seconds >= 0.3), "{found}");
    }
}

/// The server prints the options that its client needs.
#[test]
fn both_ends_speak_sctp_over_ip_without_udp() {
    if let Err(error) = RawError::check() {
        return eprintln!("skipped: {error}");
    }
    // A unique port: directly over IP, programs of one host cannot share a port.
    let port = (10_000 + std::process::id() % 20_000).to_string();
    let found = measure_with(&["--encapsulation", "none", "--port", &port], &[]);
    assert!(found["goodput_bps"].as_f64().is_some_and(|bps| bps > 1e6), "{found}");
    assert_eq!(found["paths"][0]["remote"], "127.0.0.1:0", "{found}");
}

/// The server prints the options with which its client offers the same extensions.
#[test]
fn extensions_that_both_ends_offer_are_in_use_and_the_others_are_not() {
    let said = |server: &[&str], more: &[&str]| {
        let words = ["bench", "serve", "--plain", "--once", "--listen", "127.0.0.1:0"];
        let mut server =
            Server::start(Command::new(ROPEWALK).args(words).args(server), "bench run");
        let times = ["--time", "100 ms", "--warmup", "0 s"];
        let client = Command::new(ROPEWALK).args(&server.line).args(times).args(more).output();
        let client = client.expect("the command runs");
        assert!(server.child.wait().expect("it ends").success());
        assert!(client.status.success(), "{client:?}");
        String::from_utf8_lossy(&client.stderr).into_owned()
    };
    let both = ["--extension", "nr-sack,authentication", "--authenticate", "data"];
    let text = said(&both, &[]);
    assert!(text.contains("extensions in use: nr-sack, authentication"), "{text}");
    let text = said(&[], &["--extension", "interleaving,address-reconfiguration"]);
    assert!(text.contains("not offer it: interleaving, address-reconfiguration"), "{text}");
    assert!(!text.contains("in use: "), "{text}");
}

#[test]
fn the_result_of_a_measurement_is_also_printed_as_csv_and_markdown() {
    for (option, expected) in [
        (
            "--csv",
            &[
                "path,figure,unit,value\n",
                ",goodput_bps,bit/s,",
                "127.0.0.1:",
                ",sent_packets,count,",
            ][..],
        ),
        ("--markdown", &["| figure | value |", "| goodput_bps |", "| path | share |"]),
    ] {
        let words = ["bench", "serve", "--plain", "--once", "--listen", "127.0.0.1:0"];
        let mut server = Server::start(Command::new(ROPEWALK).args(words), "bench run");
        let more = ["--time", "100 ms", "--warmup", "0 s", option];
        let client = Command::new(ROPEWALK).args(&server.line).args(more).output();
        let client = client.expect("the command runs");
        assert!(server.child.wait().expect("it ends").success());
        let text = String::from_utf8(client.stdout).expect("text");
        assert!(expected.iter().all(|part| text.contains(part)), "{text}");
    }
}

#[test]
fn nothing_is_measured_in_no_time_and_nobody_answers_where_nobody_listens() {
    let run = |words: &[&str]| {
        let done = Command::new(ROPEWALK).args(["bench", "run"]).args(words).output();
        let done = done.expect("the command runs");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (status, message) = run(&["--plain", "--to", "127.0.0.1:29863", "--time", "0 s"]);
    assert_eq!(status, Some(2), "{message}");
    assert!(message.contains("--time 0"), "{message}");
    let (status, message) = run(&["--to", "127.0.0.1:29863"]);
    assert_eq!(status, Some(2), "{message}");
    assert!(message.contains("--peer"), "{message}");
}
