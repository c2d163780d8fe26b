//! Permissions that a receiver has set itself do not stop the next transfer. Needs root to start receivers as
//! another user, because root's own receivers are never refused.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::{Command, Stdio};

use crate::support::Server;
use crate::transfer::{BINARY, HERE, NOBODY, TestHome, can_change_user, failed, good};

const FOLDER_MODES: [u32; 4] = [0o755, 0o555, 0o311, 0o000];
const FILE_MODES: [u32; 4] = [0o644, 0o444, 0o200, 0o000];

/// A receiver that runs as an unprivileged user.
fn nobody(home: &TestHome, options: &[&str]) -> Server {
    let mut command = Command::new("setpriv");
    command.args(NOBODY).args([BINARY, "recv", "in", "--plain"]).args(options).args(HERE);
    Server::start(command.current_dir(home.file(".")).stdout(Stdio::piped()), "send")
}

fn set_mode(home: &TestHome, name: &str, mode: u32) {
    fs::set_permissions(home.file(name), fs::Permissions::from_mode(mode)).expect("a mode");
}

fn mode(home: &TestHome, name: &str) -> u32 {
    fs::symlink_metadata(home.file(name)).expect(name).permissions().mode() & 0o7777
}

/// A tree with a folder for each mode and a file in it for each mode, and an empty inbox.
fn home(name: &str) -> TestHome {
    let home = TestHome::new(name);
    for folder in FOLDER_MODES {
        for file in FILE_MODES {
            let name = format!("tree/{folder:o}/{file:o}");
            home.write(&name, name.as_bytes());
            set_mode(&home, &name, file);
        }
        set_mode(&home, &format!("tree/{folder:o}"), folder);
    }
    set_mode(&home, "tree", 0o555);
    fs::create_dir(home.file("in")).expect("a directory");
    chown(home.file("in"), Some(65_534), Some(65_534)).expect("an owner");
    home
}

/// The receiver keeps its own access to files, and no other.
fn assert_kept(home: &TestHome) {
    for folder in FOLDER_MODES {
        assert_eq!(mode(home, &format!("in/tree/{folder:o}")), folder | 0o500);
        for file in FILE_MODES {
            let name = format!("tree/{folder:o}/{file:o}");
            assert_eq!(mode(home, &format!("in/{name}")), file | 0o400, "{name}");
            home.same(&name, &format!("in/{name}"));
        }
    }
}

#[test]
fn an_unchanged_tree_can_be_sent_again_whatever_its_permissions() {
    if !can_change_user() {
        return;
    }
    let home = home("modes-again");
    for options in [&["--preserve-modes"][..], &["--preserve-modes", "--overwrite"], &[]] {
        let receiver = nobody(&home, options);
        for preserve in [&["--preserve-modes"][..], &[]] {
            good(&home.send(&receiver, &["tree"], preserve));
            assert_kept(&home);
        }
    }
}

#[test]
fn files_in_read_only_folders_are_replaced_where_that_is_permitted() {
    if !can_change_user() {
        return;
    }
    let home = home("modes-new");
    let receiver = nobody(&home, &["--preserve-modes"]);
    good(&home.send(&receiver, &["tree"], &["--preserve-modes"]));
    let changed = FOLDER_MODES.map(|folder| format!("tree/{folder:o}/{:o}", FILE_MODES[0]));
    for name in &changed {
        fs::write(home.file(name), b"changed and longer than before").expect("root may");
    }
    // Without --overwrite, read-only and existing entries stay unchanged. All of the reasons are
    // permanent.
    let sent = home.send(&receiver, &["tree"], &["--preserve-modes"]);
    failed(&sent, 1, &["the folder is not writable", "4 entries were not sent"]);
    drop(receiver);
    let receiver = nobody(&home, &["--preserve-modes", "--overwrite"]);
    good(&home.send(&receiver, &["tree"], &["--preserve-modes"]));
    assert_kept(&home);
}

/// A crash between the permissions and the name leaves an unfinished file with the sender's permissions.
#[test]
fn an_unfinished_file_with_the_permissions_of_the_sender_is_continued() {
    if !can_change_user() {
        return;
    }
    let home = home("modes-part");
    home.write("file", &crate::support::noise(20_000_000));
    set_mode(&home, "file", 0o444);
    let receiver = nobody(&home, &["--preserve-modes"]);
    let mut sender = home
        .sender(&receiver, &["file"], &["--preserve-modes"])
        .stderr(Stdio::null())
        .spawn()
        .expect("send");
    let part = loop {
        let parts = fs::read_dir(home.file("in/.ropewalk")).into_iter().flatten().flatten();
        let mut parts = parts
            .map(|part| part.path())
            .filter(|path| path.extension().is_some_and(|e| e == "part"));
        if let Some(part) = parts
            .next()
            .filter(|part| fs::metadata(part).is_ok_and(|found| found.len() > 1_000_000))
        {
            break part;
        }
        assert!(
            sender.try_wait().expect("send").is_none(),
            "the transfer was too quick to be interrupted"
        );
    };
    let _ = sender.kill();
    sender.wait().expect("send");
    drop(receiver);
    fs::set_permissions(&part, fs::Permissions::from_mode(0o444)).expect("a mode");
    let receiver = nobody(&home, &["--preserve-modes"]);
    good(&home.send(&receiver, &["file"], &["--preserve-modes"]));
    home.same("file", "in/file");
    assert_eq!(mode(&home, "in/file"), 0o444);
}
