//! Emulated queues that mark packets (ECN), and how live senders respond. Needs Linux, root and /dev/net/tun;
//! otherwise says so and passes.
#![cfg(target_os = "linux")]

use std::fs;

use crate::support::{TestDir, can_emulate, lateness};
use serde_json::Value;

/// Suspensions of the machine up to this length do not overflow a queue of that many round trips.
const LATEST_S: f64 = 0.1;

/// Observations from a transfer of ten seconds over two links.
struct Seen {
    /// Lost packets with data. Packets without data are not marked, so a queue may drop some of them.
    lost: u64,
    /// Packets that the queues of the links towards the receiver marked.
    marked: u64,
    /// Maximum lateness of the emulator, seconds.
    late_s: f64,
}

/// Sends for ten seconds over links with this queue, with these options of the sender.
fn transfer(name: &str, queue: &str, sealed: bool, options: &str) -> Seen {
    let dir = TestDir::new(&format!("marks-{name}-{sealed}"));
    let link = |name: &str, rate: u32| {
        format!(
            "[[path]]\nname = '{name}'\nrate = '{rate} Mbit/s'\nrtt = '20 ms'\n\
             queue = {{ limit = '300 packets', {queue} }}\n"
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
        "{own} bench run --to {{remote1}},{{remote2}} --from {{local1}},{{local2}} {near} {options} \
         --warmup 0s --time 10s --json > out.json"
    );
    let words =
        ["emulate", "s.toml", "--stats", "stats.json", "--far", &far, "--", "sh", "-c", &near];
    dir.ropewalk(&words).good();
    let read = |name: &str| -> Value {
        let text = fs::read_to_string(dir.file(name)).expect("the figures");
        serde_json::from_str(&text).expect("JSON")
    };
    let (found, stats) = (read("out.json"), read("stats.json"));
    eprintln!("{name}, sealed {sealed}: {found}\n{stats}");
    let number = |value: &Value| value.as_u64().expect("a number");
    let sum = |document: &Value, figure: &dyn Fn(&Value) -> u64| -> u64 {
        document["paths"].as_array().expect("a list").iter().map(figure).sum()
    };
    Seen {
        lost: sum(&found, &|path| number(&path["lost_packets"])),
        marked: sum(&stats, &|path| number(&path["up"]["marked"])),
        late_s: lateness(&stats),
    }
}

// A sender that did not slow down would fill the queues, which would then drop packets. The links are slow,
// so that any machine can fill them. docs/decisions/ecn.md compares the rates with marks and without.
#[test]
fn where_queues_mark_a_live_sender_slows_down_before_they_drop() {
    if !can_emulate() {
        return;
    }
    for sealed in [true, false] {
        let codel = |marks: bool| {
            let queue = format!("discipline = 'codel', ecn = {marks}");
            transfer(if marks { "codel-marks" } else { "codel" }, &queue, sealed, "")
        };
        let (without, with) = (codel(false), codel(true));
        if without.lost <= 10 && without.late_s > LATEST_S {
            eprintln!(
                "skipped: this machine stands still for {} s at a time, and fills no queue",
                without.late_s
            );
            continue;
        }
        assert!(
            without.lost > 10 && without.marked == 0,
            "{}: no queue has built up",
            without.lost
        );
        let (with, marked) = (with.lost, with.marked);
        assert!(with * 2 < without.lost && marked > 0, "{with} lost with {marked} marks");
    }
}

// A dual queue uses the codepoint to identify scalable senders: ECT(1) is marked after a millisecond, ECT(0) by a
// controller that aims at 15 ms. Prague keeps sending while it is marked, and loses nothing.
#[test]
fn a_live_prague_sender_is_marked_often_by_a_dual_queue_and_loses_next_to_nothing() {
    if !can_emulate() {
        return;
    }
    let dual = |congestion: &str| {
        let options = format!("--congestion {congestion}");
        transfer(&format!("dual-{congestion}"), "discipline = 'dualpi2'", true, &options)
    };
    let (prague, cubic) = (dual("prague"), dual("cubic"));
    let found = format!(
        "{} and {} marks, {} packets of prague lost",
        prague.marked, cubic.marked, prague.lost
    );
    let holds = prague.marked > 100 && prague.marked > 2 * cubic.marked && prague.lost <= 20;
    let late_s = prague.late_s.max(cubic.late_s);
    if !holds && late_s > LATEST_S {
        eprintln!("skipped: this machine stands still for {late_s} s at a time: {found}");
        return;
    }
    assert!(holds, "{found}");
}
