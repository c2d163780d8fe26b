//! Detects listening sockets in a network namespace.

use std::fs;

/// Number of listening (TCP) or bound (UDP, UDP-Lite, SCTP) sockets in the network namespace of a process; 0 if it
/// cannot be read.
pub fn sockets(process: u32) -> usize {
    let read = |name: &str| fs::read_to_string(format!("/proc/{process}/net/{name}"));
    let count = |name: &str, wanted: fn(&str) -> bool| {
        read(name).map_or(0, |text| text.lines().skip(1).filter(|line| wanted(line)).count())
    };
    // Column 4 of a TCP socket is its state; 0A means LISTEN.
    let listens = |line: &str| line.split_whitespace().nth(3) == Some("0A");
    ["tcp", "tcp6"].iter().map(|name| count(name, listens)).sum::<usize>()
        + ["udp", "udp6", "sctp/eps"].iter().map(|name| count(name, |_| true)).sum::<usize>()
}
