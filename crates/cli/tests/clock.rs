//! A machine whose clock is wrong: the peer refuses its handshakes and names both clocks.
#![allow(clippy::disallowed_methods, reason = "waits for real programs, which take real time")]

use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;

use ropewalk_runtime::seal::{Initiator, PublicKey, SecretKey, Timestamp};
use serde_json::Value;

use crate::support::{Server, TestDir};

const DAY: u64 = 86_400_000_000_000;

/// A receiver that admits `near.key`.
struct Receiver {
    dir: TestDir,
    server: Server,
    to: String,
    peer: String,
}

impl Receiver {
    /// Starts it with `program` before the command, such as one that shifts its clock.
    fn start(name: &str, program: &[&str]) -> Self {
        let dir = TestDir::new(name);
        let (near, peer) = (dir.key("near.key"), dir.key("far.key"));
        let own = [env!("CARGO_BIN_EXE_ropewalk"), "recv", "in", "--listen", "127.0.0.1:0"];
        let words = [program, &own, &["--key", "far.key", "--allow", &near]].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(dir.file(".")).stdout(Stdio::null());
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        let server = Server::start(&mut command, "send");
        let to = server.line.iter().skip_while(|word| *word != "--to").nth(1);
        let to = to.expect("an address").clone();
        Self { dir, server, to, peer }
    }

    fn address(&self) -> SocketAddr {
        self.to.parse().expect("an address")
    }

    /// Sends a handshake of `near.key` with this date. Returns the first datagram and the answer.
    fn handshake(&self, date: u64) -> (Vec<u8>, Vec<u8>) {
        let secret = SecretKey::read_file(&self.dir.file("near.key")).expect("a key");
        let peer: PublicKey = self.peer.parse().expect("a key");
        let date = Timestamp::from_unix_nanos(date);
        let (_, first) = Initiator::new(&secret, peer, date, 1, &[1, 1]).expect("a datagram");
        let answer = ask(self.address(), &first).expect("an answer");
        (first, answer)
    }

    fn doctor(&self) -> Value {
        let to = ["doctor", "--key", "near.key", "--to", &self.to, "--peer", &self.peer, "--json"];
        self.dir.ropewalk(&to).json("ropewalk.doctor/1")
    }
}

fn ask(to: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(2))).expect("a timeout");
    socket.send_to(datagram, to).expect("sent");
    let mut buffer = [0; 2048];
    let length = socket.recv(&mut buffer).ok()?;
    Some(buffer[..length].to_vec())
}

fn check<'a>(document: &'a Value, name: &str) -> &'a Value {
    let checks = document["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{document:#}"))
}

#[test]
fn a_clock_that_was_set_back_is_named_by_send_and_doctor() {
    let receiver = Receiver::start("clock-back", &[]);
    let now = Timestamp::now().as_unix_nanos();
    // This machine's clock was two days ahead, and has been corrected.
    let (_, reply) = receiver.handshake(now + 2 * DAY);
    assert_eq!(reply[0], 2, "a Reply");

    std::fs::write(receiver.dir.file("a"), "a").expect("a file");
    let to = ["--to", &receiver.to, "--peer", &receiver.peer, "--key", "near.key"];
    let done = receiver.dir.ropewalk(&[&["send", "a", "--retry", "1s"], &to[..]].concat());
    assert_eq!(done.status(), 1);
    let error = done.stderr();
    for part in
        ["refused the handshake: its date, ", "the peer's clock says ", "clock ahead before"]
    {
        assert!(error.contains(part), "{error}");
    }
    assert!(!error.contains("firewall"), "{error}");

    let document = receiver.doctor();
    let reach = check(&document, "reach peer");
    assert_eq!(reach["verdict"], "failure");
    assert!(reach["found"].as_str().expect("a text").contains("the peer's clock says "));
    assert_eq!(check(&document, "peer clock")["verdict"], "ok");
    let ahead = document["peer"][0]["clock_ahead_s"].as_f64().expect("a number");
    assert!(ahead.abs() < 10.0, "{ahead}");
}

#[test]
fn the_answer_to_a_repeated_old_datagram_is_smaller_and_sealed_with_fresh_keys() {
    let mut receiver = Receiver::start("clock-replay", &[]);
    let now = Timestamp::now().as_unix_nanos();
    let (recorded, _) = receiver.handshake(now - 2 * DAY);
    receiver.handshake(now);
    // For 10 s, a repeated first message is answered with the old Reply.
    std::thread::sleep(Duration::from_secs(11));
    let answer = ask(receiver.address(), &recorded).expect("an answer");
    assert!(answer.len() < recorded.len(), "{} bytes", answer.len());
    assert_eq!((answer[0], answer.len()), (6, 86), "a Clock");
    let again = ask(receiver.address(), &recorded).expect("an answer");
    assert_ne!(again[6..], answer[6..], "each is sealed with keys of its own");
    assert!(receiver.server.child.try_wait().expect("a child").is_none());
}

/// Whether the command `faketime` is installed.
fn can_shift_clocks() -> bool {
    let found = Command::new("faketime").args(["-f", "+0", "true"]).status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        eprintln!("skipped: `faketime` is not installed");
    }
    found
}

#[test]
fn doctor_measures_the_difference_of_the_clocks() {
    if !can_shift_clocks() {
        return;
    }
    for (shift, expected, verdict) in [("-3h", -10_800.0, "warning"), ("+0", 0.0, "ok")] {
        let receiver = Receiver::start("clock-shift", &["faketime", "-f", shift]);
        let document = receiver.doctor();
        assert_eq!(check(&document, "reach peer")["verdict"], "ok", "{document:#}");
        assert_eq!(check(&document, "peer clock")["verdict"], verdict, "{document:#}");
        let ahead = document["peer"][0]["clock_ahead_s"].as_f64().expect("a number");
        assert!((ahead - expected).abs() < 2.0, "{ahead} s");
    }
}

#[test]
fn a_client_whose_clock_is_behind_learns_by_how_much() {
    if !can_shift_clocks() {
        return;
    }
    let receiver = Receiver::start("clock-behind", &[]);
    receiver.handshake(Timestamp::now().as_unix_nanos());
    let mut client = Command::new("faketime");
    client.args(["-f", "-3h", env!("CARGO_BIN_EXE_ropewalk"), "doctor", "--key", "near.key"]);
    client.args(["--to", &receiver.to, "--peer", &receiver.peer, "--json"]);
    client.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").current_dir(receiver.dir.file("."));
    let output = client.output().expect("a program");
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let found = check(&document, "reach peer")["found"].as_str().expect("a text").to_owned();
    assert!(found.contains("this machine's clock is 3 hours behind it"), "{found}");
    assert_eq!(check(&document, "peer clock")["verdict"], "warning");
    let ahead = document["peer"][0]["clock_ahead_s"].as_f64().expect("a number");
    assert!((ahead - 10_800.0).abs() < 5.0, "{ahead} s");
}
