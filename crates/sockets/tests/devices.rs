//! Sockets that are bound to an interface.

use std::process::Command;

use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;

use crate::support::{Running, await_udp_port, installed, preloaded};

/// Two servers at one port, on one interface each. They send the name of their interface to connecting peers.
const SERVERS: &str = r#"
import socket, threading
def serve(device):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    s.bind(("0.0.0.0", 5000))
    s.listen(5)
    while True:
        peer, _ = s.accept()
        peer.sendall(device.encode())
        while peer.recv(65536):
            pass
for device in ["v1", "v2"]:
    threading.Thread(target=serve, args=[device]).start()
"#;

/// Sends a megabyte to each address over the interface that precedes it, and prints the answers.
const CLIENT: &str = r#"
import errno, socket, sys
for device, host in zip(sys.argv[1::2], sys.argv[2::2]):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode() + b"\0")
    s.connect((host, 5000))
    print(device, s.recv(10).decode(), s.getsockname()[0])
    for _ in range(20):
        s.sendall(bytes(50000))
    s.close()
"#;

/// Values that the option accepts and returns.
const OPTION: &str = r#"
import errno, socket
BINDTOIFINDEX = 62
s = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, 132)
def device():
    return s.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16)
def bind(value, option=socket.SO_BINDTODEVICE):
    try:
        s.setsockopt(socket.SOL_SOCKET, option, value)
    except OSError as error:
        return errno.errorcode[error.errno]
index = socket.if_nametoindex("v2")
print(device(), bind(b"nosuch0"), device())
print(bind(b"v2"), device(), s.getsockopt(socket.SOL_SOCKET, BINDTOIFINDEX) == index)
try:
    s.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 4)
except OSError as error:
    print(errno.errorcode[error.errno])
print(bind(b""), device(), s.getsockopt(socket.SOL_SOCKET, BINDTOIFINDEX))
print(bind(index, BINDTOIFINDEX), device())
s.bind(("0.0.0.0", 5000))
s.listen(5)
print(bind(b"v1"), device())
"#;

fn python(script: &str) -> Command {
    let mut python = preloaded("python3", 9899, 9899);
    python.args(["-u", "-c", script]);
    python
}

#[test]
fn a_socket_uses_only_the_interface_that_it_is_bound_to() {
    or_skip!(installed("python3", "python3"));
    let hosts = or_skip!(Hosts::new(2));
    let servers = hosts.spawn(Side::Theirs, &mut python(SERVERS)).expect("it starts");
    let _servers = Running::of(servers);
    hosts.inside(Side::Theirs, || await_udp_port(9899));
    let [to, own] = [Side::Theirs, Side::Ours].map(|side| hosts.addresses(side));
    for (link, other, device) in [(1, 2, "v1"), (2, 1, "v2")] {
        let index = usize::from(link) - 1;
        let (to, own) = (to[index].to_string(), own[index]);
        let before = [link, other].map(|link| hosts.carried(link));
        let mut client = python(CLIENT);
        client.args([device, &to]);
        let client = hosts.spawn(Side::Ours, &mut client).expect("it starts");
        let ended = Running::of(client).end();
        // The server of this interface has answered.
        assert_eq!(ended.stdout, format!("{device} {device} {own}\n"), "{ended:?}");
        let after = [link, other].map(|link| hosts.carried(link));
        assert!(after[0] - before[0] > 1_000_000, "{before:?} {after:?}");
        assert!(after[1] - before[1] < 10_000, "{before:?} {after:?}");
    }
}

#[test]
fn the_option_names_interfaces_as_the_kernels_does() {
    or_skip!(installed("python3", "python3"));
    let hosts = or_skip!(Hosts::new(2));
    let run = hosts.spawn(Side::Ours, &mut python(OPTION)).expect("it starts");
    let ended = Running::of(run).end();
    let expected = "b'' ENODEV b''\n\
                    None b'v2\\x00' True\n\
                    EINVAL\n\
                    None b'' 0\n\
                    None b'v2\\x00'\n\
                    ENOTSUP b'v2\\x00'\n";
    assert_eq!(ended.stdout, expected, "{ended:?}");
}
