//! `bench`: a server and a client, two processes over loopback.

use std::process::{Command, Stdio};

use serde_json::Value;

const ROPEWALK: &str = env!("CARGO_BIN_EXE_ropewalk");

fn measure(port: u16, more: &[&str]) -> Value {
    let at = format!("127.0.0.1:{port}");
    let mut server = Command::new(ROPEWALK)
        .args(["bench", "serve", "--plain", "--once", "--listen", &at])
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let client = Command::new(ROPEWALK)
        .args(["bench", "run", "--plain", "--json", "--to", &at])
        .args(["--time", "300 ms", "--warmup", "100 ms"])
        .args(more)
        .output()
        .expect("the command runs");
    let ended = server.wait().expect("it ends after one client");
    let message = String::from_utf8_lossy(&client.stderr).into_owned();
    assert!(client.status.success() && ended.success(), "{message}");
    serde_json::from_slice(&client.stdout).expect("one JSON document")
}

#[test]
fn either_side_sends_and_the_receiver_s_figures_come_back() {
    let both = ["--reverse", "--in-order"];
    for (port, more) in
        [(29_861, &both[2..]), (29_862, &both[..1]), (29_866, &both), (29_867, &both[1..])]
    {
        let found = measure(port, more);
        assert_eq!(found["schema"], "ropewalk.bench/1");
        assert_eq!(found["reverse"], more.contains(&"--reverse"));
        assert_eq!(found["in_order"], more.contains(&"--in-order"));
        assert!(found["goodput_bps"].as_f64().is_some_and(|bps| bps > 1e6), "{found}");
        assert!(found["seconds"].as_f64().is_some_and(|seconds| seconds >= 0.3), "{found}");
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
