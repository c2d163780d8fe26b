//! Emulated queues that mark packets (ECN), and how live senders respond. Needs Linux, root and /dev/net/tun;
//! otherwise says so and passes.
#![cfg(target_os = "linux")]

use std::fs;

use crate::support::{TestDir, can_emulate, lateness};
use serde_json::Value;

/// Suspensions of the machine up to this length do not overflow a queue of as many round trips.
const LATEST_S: f64 = 0.1;

/// Sends for ten seconds over links whose queues mark packets or do not. Returns how many packets with data were lost,
/// and how late the emulator was, in seconds. Packets without data are not marked, so that a queue may drop some.
fn lost(marks: bool, sealed: bool) -> (u64, f64) {
    let dir = TestDir::new(&format!("marks-{marks}-{sealed}"));
    let link = |name: &str, rate: u32| {
        format!(
            "[[path]]\nname = '{name}'\nrate = '{rate} Mbit/s'\nrtt = '20 ms'\n\
             queue = {{ discipline = 'codel', limit = '300 packets', ecn = {marks} }}\n"
        )
    };
    fs::write(dir.file("s.toml"), link("a", 8) + &link("b", 4)).expect("a file");
    let own = env!("CARGO_BIN_EXE_ropewalk");
    let (near, far) = match sealed {
        true => {
            let (near, far) = (dir.key("near.key"), dir.key("far.key"));
            (format!("--key near.key --peer {far}"), format!("--key far.key --allow {near}"))
        }
        false => ("--plain".to_owned(), "--plain".to_owned()),
    };
    let far =
        format!("exec {own} bench serve --once --listen {{local1}} --listen {{local2}} {far}");
    let near = format!(
        "{own} bench run --to {{remote1}},{{remote2}} --from {{local1}},{{local2}} {near} \
         --warmup 0s --time 10s --json > out.json"
    );
    let words =
        ["emulate", "s.toml", "--stats", "stats.json", "--far", &far, "--", "sh", "-c", &near];
    dir.ropewalk(&words).good();
    let read = |name: &str| -> Value {
        let text = fs::read_to_string(dir.file(name)).expect("the figures");
        serde_json::from_str(&text).expect("JSON")
    };
    let found = read("out.json");
    eprintln!("marks {marks}, sealed {sealed}: {found}");
    let paths = found["paths"].as_array().expect("a list");
    let lost = paths.iter().map(|path| path["lost_packets"].as_u64().expect("a number")).sum();
    (lost, lateness(&read("stats.json")))
}

// A sender that did not slow down would fill the queues, which then drop packets that they marked before. The
// links are slow, so that any machine fills them. docs/decisions/ecn.md compares the rates with marks and
// without.
#[test]
fn where_queues_mark_a_live_sender_slows_down_before_they_drop() {
    if !can_emulate() {
        return;
    }
    for sealed in [true, false] {
        let ((without, late), (with, _)) = (lost(false, sealed), lost(true, sealed));
        if without <= 10 && late > LATEST_S {
            eprintln!(
                "skipped: this machine stands still for {late} s at a time, and fills no queue"
            );
            continue;
        }
        assert!(without > 10, "{without} lost: no queue has built up");
        assert!(with * 2 < without, "{with} lost with marks, {without} without");
    }
}
