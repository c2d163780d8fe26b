//! A hub that reads its file again, and the names of peers and links in views. Needs Linux and root; otherwise says
//! so and passes.
#![cfg(target_os = "linux")]

use std::fs;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::tunnel::{BINARY, HOST, HUB, Hosts, echo};

#[test]
fn an_empty_list_of_clients_ends_their_associations_says_why_and_admits_nobody() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    let write = |text: &str| fs::write(hosts.dir.file("hub.toml"), text).expect("written");
    write(&format!("allow = [\"{client}\"]\n"));
    let serve = hosts
        .start("h", &["serve", "./hub.toml", "--key", "hub.key", "--state-directory", "state"]);
    let up = hosts.connect(&hub, &[]);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    let reload = |expected: &str| {
        let before = serve.said().matches(expected).count();
        kill(Pid::from_raw(serve.child.id() as i32), Signal::SIGHUP).expect("it runs");
        hosts.wait_for(expected, || serve.said().matches(expected).count() > before);
    };
    write("allow = []\nrouted = true\n");
    reload("changed `allow`");
    let why = "the key is no longer among the allowed ones";
    for (tunnel, end) in [(&serve, "this end"), (&up, "the peer")] {
        let expected = format!("{end} aborted it: {why}");
        hosts.wait_for(&expected, || tunnel.said().contains(&expected));
    }
    hosts.wait_for("refused", || serve.said().contains("association refused"));
    assert!(!hosts.answers("c", HOST), "carried for a client that was removed");
    // Options that need a restart still need it.
    reload("a restart is needed to change `routed`");
    write(&format!("allow = [\"{client}\"]\n"));
    reload("changed `allow`");
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    reload("it has the options that are in force");
    assert!(!serve.said().contains("nothing"), "{}", serve.said());
}

#[test]
fn views_have_the_names_of_paired_peers_and_tell_the_links_of_a_client_apart() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    let settings = hosts.dir.file("ropewalk");
    fs::create_dir_all(&settings).expect("a directory");
    let peer = |name: &str, key: &str| format!("[[peer]]\nname = \"{name}\"\nkey = \"{key}\"\n");
    let peers = peer("laptop", &client) + &peer("office", &hub);
    fs::write(settings.join("peers.toml"), peers).expect("written");
    let start = |host: &str, words: &[&str]| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &hosts.name(host), BINARY, "tunnel"]).args(words);
        command.args(["--run-directory", &format!("run-{host}")]);
        command.env("XDG_CONFIG_HOME", hosts.dir.file("."));
        hosts.spawn(&format!("{host}.log"), &mut command)
    };
    let serve = start(
        "h",
        &["serve", "--key", "hub.key", "--allow", "laptop", "--state-directory", "state"],
    );
    let to = HUB.join(",");
    let up =
        start("c", &["up", "--key", "client.key", "--peer", "office", "--to", &to, "--no-dns"]);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    let shown = |command: &str| {
        let all = hosts.status(command)["links"].as_array().cloned().unwrap_or_default();
        let text = |link: &Value, key: &str| link[key].as_str().unwrap_or_default().to_owned();
        let mut all: Vec<_> = all.iter().map(|it| (text(it, "shown"), text(it, "peer"))).collect();
        all.sort();
        all
    };
    for (command, expected) in [
        ("tunnel up", [("l1", "office"), ("l2", "office")]),
        ("tunnel serve", [("l1 from 198.51.100.1", "laptop"), ("l2 from 203.0.113.1", "laptop")]),
    ] {
        let expected = expected.map(|(link, peer)| (link.to_owned(), peer.to_owned()));
        hosts.wait_for("the names", || shown(command) == expected);
    }
    let events = hosts.status("tunnel up")["events"].to_string();
    assert!(events.contains("\"peer\":\"office\""), "{events}");
    let events = hosts.status("tunnel serve")["events"].to_string();
    // The first link of the association depends on the handshake.
    let ups = ["link l1 from 198.51.100.1 up", "link l2 from 203.0.113.1 up"];
    assert!(ups.iter().any(|up| events.contains(up)), "{events}");
}
