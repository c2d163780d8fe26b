//! A hub that reads its file again. Needs Linux and root; otherwise says so and passes.
#![cfg(target_os = "linux")]

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::tunnel::{HOST, Hosts, echo};

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
    // What needs a restart needs it still.
    reload("a restart is needed to change `routed`");
    write(&format!("allow = [\"{client}\"]\n"));
    reload("changed `allow`");
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    reload("it has the options that are in force");
    assert!(!serve.said().contains("nothing"), "{}", serve.said());
}
