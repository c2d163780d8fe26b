//! `ropewalk doctor` alone, and with a receiver on this machine.

use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::support::{Server, TestDir};
use serde_json::Value;

/// The first check of this name.
fn check<'a>(document: &'a Value, name: &str) -> &'a Value {
    let checks = document["checks"].as_array().expect("checks");
    let check = checks.iter().find(|check| check["name"] == name);
    check.unwrap_or_else(|| panic!("no {name}: {document:#}"))
}

/// Verdict of a check.
fn verdict<'a>(document: &'a Value, name: &str) -> &'a str {
    check(document, name)["verdict"].as_str().expect("a text")
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
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a socket");
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
    // Twice, because the first check must leave the receiver running.
    for _ in 0..2 {
        let document = doctor(&far).good().json("ropewalk.doctor/1");
        assert_eq!(verdict(&document, "reach peer"), "ok", "{document:#}");
        assert_eq!(verdict(&document, "public address"), "ok", "{document:#}");
        assert_eq!(verdict(&document, "peer version"), "ok", "{document:#}");
        let row = &document["peer"][0];
        assert_eq!(
            (&row["remote"], &row["release"]),
            (&to.as_str().into(), &env!("CARGO_PKG_VERSION").into())
        );
        assert!(
            row["public_address"].as_str().expect("an address").starts_with("127.0.0.1:"),
            "{row}"
        );
    }
    assert!(server.child.try_wait().expect("a child").is_none(), "recv has ended");
    let wrong = doctor(&near);
    assert_eq!(wrong.status(), 1, "{}", wrong.stderr());
    assert_eq!(verdict(&wrong.json("ropewalk.doctor/1"), "reach peer"), "failure");
}

/// Origin of a datagram: the inner socket of the NAT, and the client.
type Origin = (Arc<UdpSocket>, SocketAddr);

/// The outer side of a NAT: the server sees this socket's address.
#[derive(Clone)]
struct Outside {
    socket: Arc<UdpSocket>,
    server: SocketAddr,
    latest: Arc<Mutex<Option<Origin>>>,
}

impl Outside {
    fn new(server: SocketAddr) -> Self {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a socket"));
        let outside = Self { socket, server, latest: Arc::default() };
        let own = outside.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while let Ok((length, _)) = own.socket.recv_from(&mut buffer) {
                if let Some((inside, client)) = &*own.latest.lock().expect("no panic") {
                    // The client may be gone. Its answers are then lost.
                    let _ = inside.send_to(&buffer[..length], client);
                }
            }
        });
        outside
    }

    /// An address that leads to the server through this NAT.
    fn inside(&self) -> String {
        let inside = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a socket"));
        let address = inside.local_addr().expect("an address").to_string();
        let own = self.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while let Ok((length, client)) = inside.recv_from(&mut buffer) {
                *own.latest.lock().expect("no panic") = Some((inside.clone(), client));
                let _ = own.socket.send_to(&buffer[..length], own.server);
            }
        });
        address
    }
}

#[test]
fn the_peer_tells_the_kind_of_nat_and_the_public_address() {
    let dir = TestDir::new("doctor-nat");
    let (near, far) = (dir.key("near.key"), dir.key("far.key"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_ropewalk"));
    command.args(["recv", "in", "--listen", "127.0.0.1:0", "--key", "far.key", "--allow", &near]);
    command.current_dir(dir.file(".")).stdout(Stdio::null());
    let server = Server::start(&mut command, "send");
    let at = server.line.iter().skip_while(|word| *word != "--to").nth(1).expect("an address");
    let [one, other] = [(); 2].map(|()| Outside::new(at.parse().expect("an address")));
    let seen = |outside: &Outside| outside.socket.local_addr().expect("an address").to_string();
    for (to, verdict, parts) in [
        (vec![one.inside(), one.inside()], "ok", vec!["endpoint-independent"]),
        (vec![one.inside(), other.inside()], "warning", vec!["depends on the peer's address"]),
    ] {
        let to = to.join(",");
        let words = ["--from", "127.0.0.1", "--to", &to, "--peer", &far, "--json"];
        let done = dir.ropewalk(&[&["doctor", "--key", "near.key"], &words[..]].concat()).good();
        let document = done.json("ropewalk.doctor/1");
        let check = check(&document, "public address");
        assert_eq!(check["verdict"], verdict, "{document:#}");
        let found = check["found"].as_str().expect("a text");
        for part in parts.into_iter().chain([seen(&one).as_str()]) {
            assert!(found.contains(part), "no {part:?} in: {found}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn of_several_links_the_broken_one_is_named() {
    if !crate::support::can_emulate() {
        return;
    }
    let dir = TestDir::new("doctor-links");
    let link = |name: &str, rtt: u32, more: &str| {
        format!("[[path]]\nname = \"{name}\"\nrate = \"10 Mbit/s\"\nrtt = \"{rtt} ms\"\n{more}\n")
    };
    let broken = "loss = { model = \"bernoulli\", rate = 1.0 }";
    let links = [link("wifi", 10, ""), link("lte", 40, ""), link("sat", 100, broken)].concat();
    std::fs::write(dir.file("s.toml"), links).expect("a file");
    let (near, far) = (dir.key("near.key"), dir.key("far.key"));
    let own = env!("CARGO_BIN_EXE_ropewalk");
    let far_line = format!("exec {own} recv in --listen {{local1}} --key far.key --allow {near}");
    let doctor =
        [own, "doctor", "--key", "near.key", "--peer", &far, "--to", "{remote1}", "--json"];
    let words = ["emulate", "s.toml", "--far", &far_line, "--"];
    let from = ["--from", "{local1},{local2},{local3}"];
    let done = dir.ropewalk(&[&words[..], &doctor, &from].concat());
    assert_eq!(done.status(), 1, "{}", done.stderr());
    let document = done.json("ropewalk.doctor/1");
    let reached = |link: &str| {
        let checks = document["checks"].as_array().expect("checks");
        let of = |check: &&Value| check["name"] == "reach peer" && check["link"] == link;
        checks.iter().find(of).unwrap_or_else(|| panic!("no {link}: {document:#}"))["verdict"]
            .clone()
    };
    for (link, verdict) in [("10.77.1.1", "ok"), ("10.77.2.1", "ok"), ("10.77.3.1", "failure")] {
        assert_eq!(reached(link), verdict, "{document:#}");
    }
    let rows = document["peer"].as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    for (row, link) in rows.iter().zip(["10.77.1.1:", "10.77.2.1:"]) {
        let seen = row["public_address"].as_str().expect("an address");
        assert!(seen.starts_with(link), "{row}");
    }
    assert!(rows[2]["error"].as_str().expect("an error").contains("no answer"), "{}", rows[2]);
    assert_eq!(verdict(&document, "public address"), "ok", "{document:#}");
    assert_eq!(verdict(&document, "peer version"), "ok", "{document:#}");
    // The only links in the emulator are TUN devices.
    assert_eq!(verdict(&document, "link"), "ok", "{document:#}");
}
