//! This crate against pion/webrtc (Go): a complete WebRTC stack over loopback.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peers::{Finish, Sizes, files_and_messages_cross};

/// Builds the peer.
///
/// # Errors
/// If Go is missing, or cannot get the module.
fn build() -> Result<PathBuf, String> {
    let test = std::env::current_exe().expect("a test is a file");
    let out = test.parent().expect("in a directory").join("webrtc");
    fs::create_dir_all(&out).expect("the target directory can be written");
    let program = out.join("pion-peer");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pion");
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&program).arg(".").current_dir(sources);
    let ended = go.output().map_err(|e| e.to_string())?;
    match ended.status.success() {
        true => Ok(program),
        false => Err(String::from_utf8_lossy(&ended.stderr).into_owned()),
    }
}

#[test]
fn channels_of_both_ends_carry_files_and_messages_both_ways_and_end() {
    let program = match build() {
        Ok(program) => program,
        Err(why) => return eprintln!("skipped: pion/webrtc (go): {why}"),
    };
    let sizes = Sizes { theirs: 3_000_000, ours: 2_000_000 };
    let all = [Finish::TheyClose, Finish::WeClose, Finish::Shutdown];
    files_and_messages_cross(|| Command::new(&program), sizes, &all);
}
