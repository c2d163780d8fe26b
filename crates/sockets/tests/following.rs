//! Programs whose associations follow networks that appear and disappear (`ropewalk preload --follow-addresses`).

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;

use crate::support::{LIMIT, Running, await_udp_port, installed, preloaded};

/// Bytes of each part of the transfer.
const PART: usize = 4 << 20;

/// ncat on one of two hosts, following networks.
fn ncat(hosts: &Hosts, side: Side, arguments: &[&str]) -> Running {
    let mut program: Command = preloaded("ncat", 9899, 9899);
    program.env("ROPEWALK_FOLLOW_ADDRESSES", "true").args(arguments).stdin(Stdio::piped());
    Running::of(hosts.spawn(side, &mut program).expect("it starts"))
}

/// The bytes of a part, which differ from those of other parts.
fn part(number: u8) -> Vec<u8> {
    (0..PART).map(|at| (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0] ^ number).collect()
}

#[test]
fn ncat_uses_a_second_network_when_it_appears_and_survives_the_loss_of_the_first() {
    or_skip!(installed("ncat", "ncat"));
    let hosts = or_skip!(Hosts::new(2));
    hosts.unplug(2);
    let mut server = ncat(&hosts, Side::Theirs, &["--sctp", "-l", "0.0.0.0", "5400"]);
    hosts.inside(Side::Theirs, || await_udp_port(9899));
    let to = hosts.addresses(Side::Theirs)[0].to_string();
    let mut client = ncat(&hosts, Side::Ours, &["--sctp", &to, "5400"]);
    let mut input = client.child().stdin.take().expect("piped");
    let mut output = server.stdout();
    let reading = thread::spawn(move || {
        let mut parts = Vec::new();
        for _ in 0..3 {
            let mut bytes = vec![0; PART];
            output.read_exact(&mut bytes).expect("the transfer goes on");
            parts.push(bytes);
        }
        parts
    });
    input.write_all(&part(0)).expect("ncat reads");
    let before = hosts.carried(2);
    hosts.plug_in(2);
    // Sent in pieces until the second network is a path with a probed MTU; then the rest is sent.
    let (begun, second) = (Instant::now(), part(1));
    let mut pieces = second.chunks(PART / 4096);
    while hosts.carried(2) - before < 3000 {
        assert!(begun.elapsed() < LIMIT, "the second network carries nothing");
        pieces.next().into_iter().for_each(|piece| input.write_all(piece).expect("ncat reads"));
        thread::sleep(Duration::from_millis(5));
    }
    pieces.for_each(|piece| input.write_all(piece).expect("ncat reads"));
    hosts.unplug(1);
    let carried = hosts.carried(2);
    input.write_all(&part(2)).expect("ncat reads");
    drop(input);
    let parts = reading.join().expect("all parts");
    for (number, bytes) in (0..).zip(parts) {
        assert!(bytes == part(number), "part {number} is another one");
    }
    assert!(hosts.carried(2) - carried > PART as u64, "all of it came over the second network");
    client.end().good();
    server.end();
}
