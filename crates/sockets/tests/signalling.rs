//! Programs of telephone networks: a signal transfer point, and a generator of SIP calls.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use ropewalk_interop::or_skip;

use crate::support::{Running, await_udp_port, free_udp_ports, installed, preloaded};

/// A file of the test, which is removed when this is dropped.
struct File(PathBuf);

impl File {
    fn with(text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("osmo-stp-{}.cfg", std::process::id()));
        std::fs::write(&path, text).expect("a file");
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Three application servers. The third one connects after the first has left. Each sends ASP UP over M3UA (RFC 4666, 3.5.1)
/// and prints the header of the answer.
const APPLICATION_SERVERS: &str = "
import socket, struct
SCTP_DEFAULT_SEND_PARAM, M3UA = 10, socket.htonl(3)
def server():
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)
    s.setsockopt(132, SCTP_DEFAULT_SEND_PARAM, struct.pack('=4H5Ii', 0, 0, 0, 0, M3UA, 0, 0, 0, 0, 0))
    s.connect(('127.0.0.1', 2905))
    s.sendall(bytes([1, 0, 3, 1, 0, 0, 0, 8]))
    print(s.recv(100)[:4].hex())
    return s
first, second = server(), server()
first.close()
server()
";

#[test]
fn osmo_stp_answers_application_servers_and_stops() {
    or_skip!(installed("osmo-stp", "osmo-stp"));
    or_skip!(installed("python3", "python3"));
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let terminal = free.local_addr().expect("bound").port();
    drop(free);
    let file = File::with(&format!(
        "line vty\n bind 127.0.0.1 {terminal}\ncs7 instance 0\n \
         xua rkm routing-key-allocation dynamic-permitted\n listen m3ua 2905\n  \
         accept-asp-connections dynamic-permitted\n  local-ip 127.0.0.1\n"
    ));
    let [own, clients] = free_udp_ports();
    let server = Running::start(preloaded("osmo-stp", own, own).arg("-c").arg(&file.0));
    await_udp_port(own);
    let mut client = preloaded("python3", clients, own);
    let ended = Running::start(client.args(["-c", APPLICATION_SERVERS])).end();
    // ASP UP ACK.
    assert_eq!(ended.good(), "01000304\n".repeat(3));
    let stopped = Command::new("kill").arg(server.id().to_string()).status().expect("kill");
    assert!(stopped.success());
    let ended = server.end();
    assert!(ended.stderr.contains("xUA SRV SHUTDOWN_EVENT"), "{ended:?}");
}

/// The command of one end of five calls over one SCTP association.
fn sipp(scenario: &str, port: &str, own: u16, peer: u16) -> Command {
    let mut command = preloaded("sipp", own, peer);
    command.args(["-sn", scenario, "-t", "s1", "-i", "127.0.0.1", "-p", port]);
    command.args(["-m", "5", "-nostdin", "-timeout", "30"]);
    command
}

#[test]
fn sipp_makes_calls_over_an_association() {
    or_skip!(installed("sipp", "sip-tester"));
    let [server, client] = free_udp_ports();
    let answering = Running::start(&mut sipp("uas", "5060", server, client));
    await_udp_port(server);
    let calling = Running::start(sipp("uac", "5061", client, server).arg("127.0.0.1:5060"));
    for ended in [calling.end(), answering.end()] {
        let said = ended.good();
        let mut counts = said.lines().rev().filter(|line| line.contains("Successful call"));
        let count = counts.next().and_then(|line| line.rsplit('|').next()).map(str::trim);
        assert_eq!(count, Some("5"), "{said}");
    }
}
