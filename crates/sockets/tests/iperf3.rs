//! `iperf3 --sctp`, which uses one-to-one sockets with `select`.

use std::path::PathBuf;
use std::process::Command;

use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::{Missing, or_skip};
use ropewalk_runtime::endpoint::RawError;
use serde_json::Value;

use crate::support::{Running, await_udp_port, free_udp_ports, installed, preloaded};

fn iperf3() -> Result<(), Missing> {
    installed("iperf3", "iperf3")?;
    let help = Command::new("iperf3").arg("--help").output();
    let help = help.map_err(|error| Missing(error.to_string()))?.stdout;
    match String::from_utf8_lossy(&help).contains("--sctp") {
        true => Ok(()),
        false => Err(Missing("iperf3 with SCTP".to_owned())),
    }
}

/// Bytes that the receiver reports.
fn received(json: &str) -> u64 {
    let report: Value = serde_json::from_str(json).expect("JSON");
    report["end"]["sum_received"]["bytes"].as_u64().unwrap_or_else(|| panic!("{report}"))
}

#[test]
fn iperf3_sends_and_receives_over_loopback_with_several_streams() {
    or_skip!(iperf3());
    // With `--nstreams`, iperf3 sends at 1 Mbit/s by default, also over TCP.
    let several = ["--nstreams", "4", "-b", "0", "-N"];
    for extra in [&[][..], &["-R"], &["-P", "3"], &several, &["-6"]] {
        let [udp, tcp] = free_udp_ports();
        let host = if extra == ["-6"] { "::1" } else { "127.0.0.1" };
        let port = tcp.to_string();
        let mut server = preloaded("iperf3", udp, udp);
        let server = Running::start(server.args(["-s", "-1", "-p", &port, "-B", host]));
        wait_for_tcp(tcp);
        let mut client = preloaded("iperf3", udp, udp);
        client.args(["--sctp", "-c", host, "-p", &port, "-n", "64M", "--json"]).args(extra);
        let report = Running::start(&mut client).end().good();
        // The sender's last data may still be in flight, and is not counted.
        assert!(received(&report) > 1 << 20, "{extra:?}: {report}");
        server.end().good();
    }
}

/// The server's control connection is TCP.
fn wait_for_tcp(port: u16) {
    let listens = || {
        ["tcp", "tcp6"].iter().any(|table| {
            let text = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
            let wanted = format!(":{port:04X}");
            text.lines()
                .any(|line| line.split_whitespace().nth(1).is_some_and(|a| a.ends_with(&wanted)))
        })
    };
    while !listens() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn iperf3_uses_both_links_though_it_knows_one_address() {
    or_skip!(iperf3());
    both_links(&or_skip!(Hosts::new(2)), "udp");
}

#[test]
fn iperf3_uses_both_links_without_udp_encapsulation() {
    or_skip!(iperf3());
    or_skip!(RawError::check().map_err(|error| Missing(error.to_string())));
    both_links(&or_skip!(Hosts::new(2)), "none");
}

/// iperf3 with the library preloaded, on one of two hosts.
fn on_host(encapsulation: &str) -> Command {
    let mut program = preloaded("iperf3", 9899, 9899);
    program.env("ROPEWALK_ENCAPSULATION", encapsulation);
    program
}

fn both_links(hosts: &Hosts, encapsulation: &str) {
    for link in ["v1", "v2"] {
        let shape = format!("qdisc add dev {link} root tbf rate 50mbit burst 64k latency 50ms");
        let mut tc = Command::new("tc");
        tc.args(shape.split(' ')).stderr(std::process::Stdio::null());
        let shaped = hosts.spawn(Side::Ours, &mut tc).and_then(|mut child| child.wait());
        if !shaped.is_ok_and(|status| status.success()) {
            eprintln!("skipped: `tc` cannot limit the rate of a link");
            return;
        }
    }
    let mut server = on_host(encapsulation);
    let server = hosts.spawn(Side::Theirs, server.args(["-s", "-1"])).expect("it starts");
    let server = Running::of(server);
    // The server opens its endpoint when the client requests SCTP. The client retries the control connection
    // until then.
    let to = hosts.addresses(Side::Theirs)[0].to_string();
    let before = [1, 2].map(|link| hosts.carried(link));
    let mut report = None;
    for _ in 0..100 {
        let mut client = on_host(encapsulation);
        client.args(["--sctp", "-c", &to, "-n", "16M", "--json"]);
        let client = Running::of(hosts.spawn(Side::Ours, &mut client).expect("it starts")).end();
        // With `--json`, iperf3 ends with status 0 even after errors.
        if client.status.success() && !client.stdout.contains("\"error\"") {
            report = Some(client.stdout);
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let report = report.expect("the server listens");
    assert!(received(&report) > 8 << 20, "{report}");
    server.end().good();
    for (link, before) in [1, 2].into_iter().zip(before) {
        let carried = hosts.carried(link) - before;
        assert!(carried > 2 << 20, "link {link} has carried {carried} B");
    }
}

#[test]
fn an_interrupted_iperf3_ends_and_reports() {
    or_skip!(iperf3());
    let [udp, tcp] = free_udp_ports();
    let port = tcp.to_string();
    let mut server = preloaded("iperf3", udp, udp);
    let server = Running::start(server.args(["-s", "-1", "-p", &port, "-B", "127.0.0.1"]));
    wait_for_tcp(tcp);
    let mut client = preloaded("iperf3", udp, udp);
    client.args(["--sctp", "-c", "127.0.0.1", "-p", &port, "-t", "60"]);
    let mut client = Running::start(&mut client);
    await_udp_port(udp);
    std::thread::sleep(std::time::Duration::from_millis(500));
    let process = PathBuf::from(format!("/proc/{}", client.child().id()));
    assert!(process.exists());
    // Its handler leaves the interrupted call by `longjmp`.
    let killed = Command::new("kill").args(["-INT", &client.child().id().to_string()]).status();
    assert!(killed.expect("kill").success());
    let ended = client.end();
    assert!(ended.stdout.contains("sender"), "{ended:?}");
    server.end();
}
