//! Messages of a client while its hub does not answer. Needs Linux and root; otherwise says so and
//! passes.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use ropewalk_runtime::seal::{Initiator, PublicKey, SecretKey, Timestamp};
use socket2::SockRef;

use crate::tunnel::{BINARY, HOST, HUB, Hosts, echo};

/// A network that answers in place of the hub on the first link, as captive portals do.
fn captive_portal(hosts: &Hosts) {
    let listener = hosts.inside("h", || {
        let listener = TcpListener::bind((HUB[0], 80)).expect("a free port");
        SockRef::from(&listener).bind_device(Some(b"l1")).expect("root may");
        listener
    });
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // A request may be truncated.
            let _ = stream.read(&mut [0; 1024]);
            let answer = "HTTP/1.1 302 Found\r\nLocation: http://login.example/\r\nContent-Length: 0\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes());
        }
    });
}

#[test]
fn a_hub_that_does_not_answer_is_told_soon_and_once_with_what_may_be_wrong() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    let up = hosts.connect(&hub, &[]);
    let hint = "no answer from the hub yet";
    hosts.wait_for("told", || up.said().contains(hint));
    assert!(!up.said().contains("no connection to the hub"), "{}", up.said());
    let serve = hosts.serve(&[&client], &[]);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    let said = up.said();
    assert_eq!([said.matches(hint).count(), said.matches("hub answers again").count()], [1, 1]);
}

#[test]
fn a_client_whose_clock_was_set_back_names_both_clocks() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    // Each shard remembers the dates of the handshakes that it has received.
    let serve = hosts.serve(&[&client], &["--shards", "1"]);
    // The client's clock was more than two days ahead.
    let date = Timestamp::now().as_unix_nanos() + 5 * 43_200_000_000_000;
    let secret = SecretKey::read_file(&hosts.dir.file("client.key")).expect("a key");
    let peer: PublicKey = hub.parse().expect("a key");
    let date = Timestamp::from_unix_nanos(date);
    let (_, first) = Initiator::new(&secret, peer, date, 1, &[1, 1]).expect("a datagram");
    // The hub may not listen yet.
    hosts.wait_for("answered", || {
        hosts.inside("c", || {
            let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
            socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a timeout");
            socket.send_to(&first, (HUB[0], 9899)).expect("sent");
            socket.recv(&mut [0; 2048]).is_ok()
        })
    });
    let up = hosts.connect(&hub, &[]);
    let told = "no connection to the hub: the peer refused the handshake: its date, ";
    hosts.wait_for_words(&up, told);
    hosts.wait_for_words(&up, "the peer's clock says ");
    hosts.wait_for_words(&serve, "the clock of this peer is 2 days behind");
}

#[test]
fn a_hub_that_becomes_silent_and_answers_again_is_told_once_each() {
    let Some(hosts) = Hosts::new() else { return };
    let (serve, up) = hosts.bring_up(&[]);
    serve.signal(Signal::SIGSTOP);
    // Data must be sent, and the old association ends after some seconds.
    hosts.wait_for("silent", || {
        let _ = hosts.answers("c", HOST);
        up.said().contains("hub silent")
    });
    serve.signal(Signal::SIGCONT);
    hosts.wait_for("answered", || up.said().contains("hub answers again"));
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    let said = up.said();
    for event in ["hub silent", "hub answers again"] {
        assert_eq!(said.matches(event).count(), 1, "{event}: {said}");
    }
    // At most the old association. Abandoned attempts are not associations.
    assert!(said.matches("association closed").count() <= 1, "{said}");
}

#[test]
fn a_link_whose_network_asks_for_a_login_is_named() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    captive_portal(&hosts);
    echo(&hosts, "i");
    let portal = "link l1: HTTP requests are redirected to http://login.example/, as captive portals do; help: ";
    for (words, help) in [(&[][..], "log in"), (&["--kill-switch"], "the kill switch keeps")] {
        let up = hosts.connect(&hub, words);
        hosts.wait_for("told", || up.said().contains(&format!("{portal}{help}")));
        assert!(!up.said().contains("link l2: HTTP"), "{}", up.said());
        if words.is_empty() {
            // A network that requests a login later.
            let serve = hosts.serve(&[&client], &[]);
            hosts.wait_for_answer(HOST, &[&serve, &up]);
            serve.signal(Signal::SIGSTOP);
            hosts.wait_for("told again", || {
                let _ = hosts.answers("c", HOST);
                up.said().matches(portal).count() == 2
            });
        }
    }
    let output = hosts.inside("c", || {
        let words = ["doctor", "--key", "client.key", "--peer", &hub, "--to", &HUB.join(",")];
        let mut doctor = std::process::Command::new(BINARY);
        doctor.current_dir(hosts.dir.file(".")).args(words).output().expect("a command")
    });
    let said =
        String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("redirected to http://login.example/"), "{said}");
}
