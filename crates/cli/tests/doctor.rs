//! `ropewalk doctor` alone, and with a receiver on this machine.

use std::process::{Command, Stdio};

use crate::support::{Server, TestDir};
use serde_json::Value;

/// The verdict of the first check of this name.
fn verdict<'a>(document: &'a Value, name: &str) -> &'a str {
    let checks = document["checks"].as_array().expect("checks");
    let check = checks.iter().find(|check| check["name"] == name);
    check.unwrap_or_else(|| panic!("no {name}: {document:#}"))["verdict"].as_str().expect("a text")
}

#[test]
fn a_machine_is_checked_without_a_peer() {
    let dir = TestDir::new("doctor-alone");
    let public = dir.key("me.key");
    let done = dir.ropewalk(&["doctor", "--key", "me.key", "--listen", "127.0.0.1:0"]).good();
    assert!(done.stdout().contains(&public), "{}", done.stdout());
    let done = dir.ropewalk(&["doctor", "--key", "me.key", "--listen", "127.0.0.1:0", "--json"]);
    let document = done.good().json("ropewalk.doctor/1");
    for name in ["key", "UDP port"] {
        assert_eq!(verdict(&document, name), "ok", "{document:#}");
    }
    assert_eq!(document["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_port_that_is_taken_fails() {
    let dir = TestDir::new("doctor-port");
    dir.key("me.key");
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = taken.local_addr().expect("an address").to_string();
    let done = dir.ropewalk(&["doctor", "--key", "me.key", "--listen", &address, "--json"]);
    assert_eq!(done.status(), 1, "{}", done.stderr());
    assert_eq!(verdict(&done.json("ropewalk.doctor/1"), "UDP port"), "failure");
}

#[cfg(unix)]
#[test]
fn a_key_that_others_may_read_fails() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TestDir::new("doctor-key");
    let public = dir.key("me.key");
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(dir.file("me.key"), open).expect("a mode");
    let done = dir.ropewalk(&["doctor", "--key", "me.key", "--listen", "127.0.0.1:0"]);
    assert_eq!(done.status(), 1, "{}", done.stderr());
    assert!(done.stdout().contains("chmod 600 me.key"), "{}", done.stdout());
    let to = ["--to", "127.0.0.1:9", "--peer", &public, "--json"];
    let done = dir.ropewalk(&[&["doctor", "--key", "me.key"], &to[..]].concat());
    assert_eq!(done.status(), 1, "{}", done.stderr());
    assert_eq!(verdict(&done.json("ropewalk.doctor/1"), "reach peer"), "not checked");
}

#[test]
fn a_receiver_is_reached_and_goes_on_and_a_wrong_key_is_not() {
    let dir = TestDir::new("doctor-peer");
    let (near, far) = (dir.key("near.key"), dir.key("far.key"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_ropewalk"));
    command.args(["recv", "in", "--listen", "127.0.0.1:0", "--key", "far.key", "--allow", &near]);
    command.current_dir(dir.file(".")).stdout(Stdio::null());
    let mut server = Server::start(&mut command, "send");
    let to = server.line.iter().skip_while(|word| *word != "--to").nth(1).expect("an address");
    let doctor = |peer: &str| {
        dir.ropewalk(&["doctor", "--key", "near.key", "--to", to, "--peer", peer, "--json"])
    };
    // Twice: the first time has left the receiver running.
    for _ in 0..2 {
        let document = doctor(&far).good().json("ropewalk.doctor/1");
        assert_eq!(verdict(&document, "reach peer"), "ok", "{document:#}");
        assert_eq!(verdict(&document, "NAT, peer version"), "not checked");
    }
    assert!(server.child.try_wait().expect("a child").is_none(), "recv has ended");
    let wrong = doctor(&near);
    assert_eq!(wrong.status(), 1, "{}", wrong.stderr());
    assert_eq!(verdict(&wrong.json("ropewalk.doctor/1"), "reach peer"), "failure");
}
