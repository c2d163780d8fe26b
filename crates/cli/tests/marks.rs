//! Emulated queues that mark packets, and what live senders make of it. Needs Linux, root and /dev/net/tun; says so
//! and passes without.
#![cfg(target_os = "linux")]

mod support;

use std::fs;

use serde_json::Value;
use support::{Room, can_emulate};

/// Measures for ten seconds over links whose queues mark, or do not. Packets sent again, and bit/s.
fn measure(marks: bool, sealed: bool) -> (u64, f64) {
    let room = Room::new(&format!("marks-{marks}-{sealed}"));
    let link = |name: &str, rate: u32| {
        format!(
            "[[path]]\nname = '{name}'\nrate = '{rate} Mbit/s'\nrtt = '20 ms'\n\
             queue = {{ discipline = 'codel', limit = '300 packets', ecn = {marks} }}\n"
        )
    };
    fs::write(room.file("s.toml"), link("a", 20) + &link("b", 10)).expect("a file");
    let own = env!("CARGO_BIN_EXE_ropewalk");
    let (near, far) = match sealed {
        true => {
            let (near, far) = (room.key("near.key"), room.key("far.key"));
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
    room.ropewalk(&["emulate", "s.toml", "--far", &far, "--", "sh", "-c", &near]).good();
    let text = fs::read_to_string(room.file("out.json")).expect("the figures");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let paths = document["paths"].as_array().expect("a list");
    let again = paths.iter().map(|path| path["retransmitted_packets"].as_u64().expect("a number"));
    (again.sum(), document["goodput_bps"].as_f64().expect("a number"))
}

#[test]
fn where_queues_mark_a_live_sender_slows_down_and_sends_next_to_nothing_again() {
    if !can_emulate() {
        return;
    }
    for sealed in [true, false] {
        let (dropped, without) = measure(false, sealed);
        let (marked, with) = measure(true, sealed);
        eprintln!("sealed {sealed}: {dropped} and {marked} sent again, {without} and {with} bit/s");
        // A machine that is late now and then makes a sender repeat itself, but not as often as a queue does.
        assert!(dropped > 10, "{dropped}");
        assert!(marked * 2 < dropped, "{marked} sent again with marks, {dropped} without");
        assert!(with > 0.9 * without, "{with} bit/s with marks, {without} without");
    }
}
