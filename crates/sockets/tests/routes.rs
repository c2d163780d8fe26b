//! Unreachable peers, which are detected before a packet is sent.

use std::process::Command;

use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;

use crate::support::{Ended, Running, await_udp_port, installed, preloaded};

/// Connects to each address, blocking and nonblocking, and prints the result.
const SCRIPT: &str = r#"
import errno, socket, sys
for host in sys.argv[1:]:
    for nonblocking in [False, True]:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        s = socket.socket(family, socket.SOCK_STREAM, 132)
        s.setblocking(not nonblocking)
        result = s.connect_ex((host, 5000))
        print(host, errno.errorcode.get(result, result))
    s = socket.socket(family, socket.SOCK_SEQPACKET, 132)
    try:
        print(host, "sent", s.sendto(b"x", (host, 5000)))
    except OSError as error:
        print(host, errno.errorcode[error.errno])
"#;

fn connect(hosts: &Hosts, variables: &[(&str, &str)], to: &[&str]) -> Ended {
    let mut python: Command = preloaded("python3", 9899, 9899);
    python.args(["-c", SCRIPT]).args(to).envs(variables.iter().copied());
    python.env("ROPEWALK_LINGER_S", "0");
    Running::of(hosts.spawn(Side::Ours, &mut python).expect("it starts")).end()
}

#[test]
fn addresses_without_a_route_are_unreachable_at_once_and_those_of_no_peer_invalid() {
    or_skip!(installed("python3", "python3"));
    let hosts = or_skip!(Hosts::new(0));
    for (host, expected) in [
        ("8.8.8.8", "ENETUNREACH"),
        ("2001:db8::1", "ENETUNREACH"),
        ("224.0.0.1", "EINVAL"),
        ("255.255.255.255", "EINVAL"),
        ("ff02::1", "EINVAL"),
        ("fe80::1", "EINVAL"),
    ] {
        let ended = connect(&hosts, &[], &[host]);
        assert_eq!(ended.stdout, format!("{host} {expected}\n").repeat(3), "{ended:?}");
    }
}

/// The peer has a server, so that an association opened in spite of the setting would be established.
#[test]
fn a_peer_behind_avoided_interfaces_only_is_unreachable() {
    or_skip!(installed("python3", "python3"));
    or_skip!(installed("ncat", "ncat"));
    let hosts = or_skip!(Hosts::new(2));
    let mut server = preloaded("ncat", 9899, 9899);
    server.args(["--sctp", "-k", "-l", "0.0.0.0", "5000"]).stdin(std::process::Stdio::piped());
    let _server = Running::of(hosts.spawn(Side::Theirs, &mut server).expect("it starts"));
    hosts.inside(Side::Theirs, || await_udp_port(9899));
    let to = hosts.addresses(Side::Theirs)[0].to_string();
    let ended = connect(&hosts, &[("ROPEWALK_AVOID", "v1,v2")], &[&to]);
    assert_eq!(ended.stdout, format!("{to} ENETUNREACH\n").repeat(3), "{ended:?}");
    let told = format!(
        "libropewalk: ROPEWALK_AVOID=v1,v2 (--avoid) leaves no interface that may reach {to}: avoid fewer\n"
    );
    assert_eq!(ended.stderr, told);
    let ended = connect(&hosts, &[("ROPEWALK_AVOID", "v2,nosuch0")], &[&to]);
    assert_eq!(ended.stdout, format!("{to} 0\n{to} EINPROGRESS\n{to} sent 1\n"), "{ended:?}");
}
