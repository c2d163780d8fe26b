//! Access to a receiver without options, and refusals of incompatible options.

use std::fs;

use crate::transfer::{HERE, TestHome, failed, good, text};

/// A home whose list of paired peers has this key.
fn paired_with(home: &TestHome, key: &str) {
    let entry = format!("[[peer]]\nname = \"boat\"\nkey = \"{key}\"\n");
    home.write("home/.config/ropewalk/peers.toml", entry.as_bytes());
}

fn new_key(home: &TestHome, file: &str) -> String {
    let made = home.command(&["keygen", file]).output().expect("keygen");
    good(&made);
    text(&made.stdout).lines().next().expect("a key").to_owned()
}

#[test]
fn a_receiver_with_paired_peers_takes_files_from_them_alone() {
    let home = TestHome::new("paired");
    home.write("file", b"1");
    let boat = new_key(&home, "boat.key");
    new_key(&home, "other.key");
    paired_with(&home, &boat);
    let retry = ["--retry", "1s"];
    let from = |key| [&["--key", key][..], &retry].concat();
    let receiver = home.receiver(&[&["in"], &HERE[..]].concat());
    failed(&home.send(&receiver, &["file"], &from("other.key")), 1, &["cannot be reached"]);
    assert!(!home.file("in/file").exists());
    good(&home.send(&receiver, &["file"], &from("boat.key")));
    home.same("file", "in/file");
    drop(receiver);
    for open in [&["--allow-anyone"][..], &["--allow", &new_key(&home, "third.key")]] {
        let receiver = home.receiver(&[&["in"], open, &HERE[..]].concat());
        let sent = home.send(&receiver, &["file"], &from("other.key"));
        match open.len() {
            1 => good(&sent),
            _ => failed(&sent, 1, &["cannot be reached"]),
        }
    }
    // An empty list restricts no one.
    home.write("home/.config/ropewalk/peers.toml", b"");
    fs::remove_file(home.file("in/file")).expect("removed");
    let receiver = home.receiver(&[&["in"], &HERE[..]].concat());
    good(&home.send(&receiver, &["file"], &from("other.key")));
}

#[test]
fn a_port_without_plain_is_refused_with_the_option_that_has_the_port() {
    let home = TestHome::new("port");
    home.write("file", b"1");
    let key = new_key(&home, "r.key");
    let reach = ["--to", "127.0.0.1", "--peer", &key, "--port", "5000"];
    for (words, hint) in [
        (vec!["recv", "in", "--port", "5000"], "--listen 0.0.0.0:5000"),
        (vec!["bench", "serve", "--port", "5000"], "--listen 0.0.0.0:5000"),
        ([&["send", "file"], &reach[..]].concat(), "--to ADDR:5000"),
        ([&["bench", "run"], &reach[..]].concat(), "--to ADDR:5000"),
    ] {
        let refused = home.command(&words).output().expect("the command");
        failed(&refused, 2, &["--port is the SCTP port of --plain", hint]);
        assert!(!text(&refused.stderr).contains("add --plain"));
    }
}

/// A peer that is not listed is refused, its entry is added while the receiver runs, and the next attempt succeeds.
#[cfg(unix)]
#[test]
fn a_peer_that_is_added_while_the_receiver_runs_sends_without_a_hangup() {
    let home = TestHome::new("added-peer");
    home.write("file", b"1");
    let keys = ["friend.key", "other.key"].map(|file| new_key(&home, file));
    let entry = |name: &str, key: &str| format!("[[peer]]\nname = \"{name}\"\nkey = \"{key}\"\n");
    let [friend, other] = &keys;
    home.write("peers.toml", entry("other", other).as_bytes());
    let receiver = home.receiver(&["in", "--allow-file", "peers.toml", "--listen", "127.0.0.1:0"]);
    let options = ["--key", "friend.key", "--retry"];
    let refused = home.send(&receiver, &["file"], &[&options[..], &["1 s"]].concat());
    failed(&refused, 1, &["cannot be reached"]);
    // A file with an error changes nothing.
    home.write("peers.toml", b"nonsense");
    let refused = home.send(&receiver, &["file"], &[&options[..], &["1 s"]].concat());
    failed(&refused, 1, &["cannot be reached"]);
    good(&home.send(&receiver, &["file"], &["--key", "other.key"]));
    home.write("peers.toml", (entry("other", other) + &entry("friend", friend)).as_bytes());
    good(&home.send(&receiver, &["file"], &[&options[..], &["20 s"]].concat()));
    home.same("file", "in/file");
}
