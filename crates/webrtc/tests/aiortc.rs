//! This crate against aiortc (Python): a complete WebRTC stack over loopback. `make venv` installs it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peers::{Finish, Sizes, files_and_messages_cross};

/// A Python that has aiortc: that of `make venv`, or else that of the machine.
///
/// # Errors
/// If there is none.
fn python() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut why = String::new();
    for python in [root.join(".venv/bin/python"), PathBuf::from("python3")] {
        let ended = Command::new(&python).args(["-c", "import aiortc"]).output();
        match ended {
            Ok(ended) if ended.status.success() => return Ok(python),
            Ok(ended) => why = String::from_utf8_lossy(&ended.stderr).into_owned(),
            Err(error) => why = error.to_string(),
        }
    }
    Err(why.lines().last().unwrap_or_default().to_owned())
}

#[test]
fn channels_of_both_ends_carry_files_and_messages_with_aiortc() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => return eprintln!("skipped: aiortc (`make venv`): {why}"),
    };
    let peer = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/aiortc/peer.py");
    let start = || {
        let mut command = Command::new(&python);
        command.arg(&peer);
        command
    };
    let sizes = Sizes { theirs: 600_000, ours: 400_000 };
    let all = [Finish::TheyClose, Finish::WeClose, Finish::Shutdown];
    files_and_messages_cross(start, sizes, &all);
}
