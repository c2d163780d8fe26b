//! freeDiameter: its threads wait in `accept`, `connect` and `recvmsg` and are cancelled when it stops.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

use ropewalk_interop::or_skip;

use crate::support::{Running, free_udp_ports, installed, preloaded};

/// Files of the test, which are removed when this is dropped.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A certificate for both ends, which freeDiameter requires even without TLS.
fn make_certificate(directory: &Path) {
    let mut openssl = Command::new("openssl");
    openssl.current_dir(directory).args(["req", "-x509", "-newkey", "rsa:2048", "-nodes"]);
    openssl.args(["-keyout", "key", "-out", "certificate", "-subj", "/CN=*.example"]);
    openssl.args(["-addext", "subjectAltName=DNS:a.example,DNS:b.example"]);
    let made = openssl.output().expect("openssl");
    assert!(made.status.success(), "{made:?}");
}

fn configure(directory: &Path, name: &str, port: u16, peer: &str, peer_port: u16) -> PathBuf {
    let at = directory.display();
    let text = format!(
        "Identity = \"{name}.example\"; Realm = \"example\"; Port = {port}; SecPort = 0;\n\
         No_TCP; No_IPv6; ListenOn = \"127.0.0.1\";\n\
         TLS_Cred = \"{at}/certificate\", \"{at}/key\"; TLS_CA = \"{at}/certificate\";\n\
         ConnectPeer = \"{peer}.example\" {{ ConnectTo = \"127.0.0.1\"; No_TLS; Port = {peer_port}; }};\n"
    );
    let path = directory.join(name);
    std::fs::write(&path, text).expect("a file");
    path
}

#[test]
fn two_servers_reach_each_other_and_stop_in_order() {
    or_skip!(installed("freeDiameterd", "freediameterd"));
    or_skip!(installed("openssl", "openssl"));
    let path = std::env::temp_dir().join(format!("freediameter-{}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a directory");
    let directory = Directory(path);
    make_certificate(&directory.0);
    let [one, other] = free_udp_ports();
    let servers = [("a", 3901, "b", 3902, one, other), ("b", 3902, "a", 3901, other, one)];
    let servers = servers.map(|(name, port, peer, peer_port, own_udp, peer_udp)| {
        let file = configure(&directory.0, name, port, peer, peer_port);
        Running::start(preloaded("freeDiameterd", own_udp, peer_udp).arg("-c").arg(file))
    });
    let mut servers = servers.map(|mut server| {
        let lines = BufReader::new(server.stdout()).lines();
        (server, lines)
    });
    for (_, lines) in &mut servers {
        let mut lines = lines.map_while(Result::ok);
        assert!(lines.any(|line| line.contains("-> 'STATE_OPEN'")), "the peers do not meet");
    }
    for (server, lines) in servers {
        let id = server.id().to_string();
        let stopped = Command::new("kill").arg(id).status().expect("kill");
        assert!(stopped.success());
        // It writes until it ends.
        let said: Vec<String> = lines.map_while(Result::ok).collect();
        let ended = server.end();
        // On a busy machine, freeDiameter aborts if its own threads do not leave a queue within 20 ms (libfdproto,
        // fifo.c).
        let is_too_slow = ended.stderr.contains("fifo.c") && ended.stderr.contains("++loops < 20");
        assert!(ended.status.success() || is_too_slow, "{ended:?} {said:?}");
    }
}
