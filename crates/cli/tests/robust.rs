//! `benches/live/robust.py`, shortened for a test. Needs Linux, root, /dev/net/tun and Python;
//! otherwise says so and passes.
#![cfg(target_os = "linux")]

use std::process::Command;

use crate::support::{TestDir, can_emulate};

#[test]
fn a_file_arrives_whole_over_paths_that_fall_silent_in_turn_though_each_end_is_killed_once() {
    if !can_emulate() {
        return;
    }
    let dir = TestDir::new("robust");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/live/robust.py");
    let done = Command::new("python3")
        .args([script, "file", "--megabytes", "20"])
        .args(["--binary", env!("CARGO_BIN_EXE_ropewalk"), "--room"])
        .arg(dir.file("."))
        .output();
    let Ok(done) = done else {
        eprintln!("skipped: no python3");
        return;
    };
    let [said, problems] = [&done.stdout, &done.stderr].map(|out| String::from_utf8_lossy(out));
    assert!(done.status.success(), "{said}\n{problems}");
    assert!(said.contains("2 ends killed, equal"), "{said}");
}
