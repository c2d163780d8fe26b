//! Third-party programs that speak SCTP: ncat, lksctp-tools, Python, Erlang.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::UdpSocket;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ropewalk_interop::or_skip;

use crate::support::{Running, await_udp_port, free_udp_ports, installed, preload, preloaded};

#[test]
fn ncat_carries_lines_both_ways() {
    or_skip!(installed("ncat", "ncat"));
    let [udp, _] = free_udp_ports();
    let mut server = preloaded("ncat", udp, udp);
    server.args(["--sctp", "-l", "127.0.0.1", "5400"]).stdin(Stdio::piped());
    let mut server = Running::start(&mut server);
    let mut far_in = server.child().stdin.take().expect("piped");
    await_udp_port(udp);
    let mut client = preloaded("ncat", udp, udp);
    client.args(["--sctp", "127.0.0.1", "5400"]).stdin(Stdio::piped());
    let mut client = Running::start(&mut client);
    let mut near_in = client.child().stdin.take().expect("piped");
    let mut near_out = BufReader::new(client.stdout());
    let mut far_out = BufReader::new(server.stdout());
    let mut line = String::new();
    near_in.write_all(b"from the client\n").expect("ncat reads");
    far_out.read_line(&mut line).expect("a line");
    far_in.write_all(b"from the server\n").expect("ncat reads");
    near_out.read_line(&mut line).expect("a line");
    assert_eq!(line, "from the client\nfrom the server\n");
    drop(near_in);
    client.end();
    drop(far_in);
    server.end();
}

/// Without an address, ncat listens with one socket per family at the same port.
#[test]
fn ncat_listens_without_an_address_for_both_families() {
    or_skip!(installed("ncat", "ncat"));
    let [udp, _] = free_udp_ports();
    let mut server = preloaded("ncat", udp, udp);
    // By default it ends with its first connection, and ends connections at the end of its input.
    server.args(["-v", "--sctp", "--keep-open", "-l", "5401"]).stdin(Stdio::piped());
    let mut server = Running::start(&mut server);
    let _open = server.child().stdin.take();
    let mut shown = BufReader::new(server.stdout());
    let mut says = BufReader::new(server.child().stderr.take().expect("piped")).lines();
    let listens = |line: std::io::Result<String>| line.is_ok_and(|l| l.contains("0.0.0.0:5401"));
    assert!(says.any(listens), "the second socket does not listen");
    for (address, text) in [("127.0.0.1", "over IPv4\n"), ("::1", "over IPv6\n")] {
        let mut client = preloaded("ncat", udp, udp);
        client.args(["--sctp", "--send-only", address, "5401"]).stdin(Stdio::piped());
        let mut client = Running::start(&mut client);
        let mut input = client.child().stdin.take().expect("piped");
        input.write_all(text.as_bytes()).expect("ncat reads");
        drop(input);
        let ended = client.end();
        assert!(ended.status.success() && ended.stderr.is_empty(), "{address}: {ended:?}");
        let mut line = String::new();
        shown.read_line(&mut line).expect("a line");
        assert_eq!(line, text);
    }
}

#[test]
fn sctp_test_sends_messages_of_all_sizes() {
    or_skip!(installed("sctp_test", "lksctp-tools"));
    let [udp, own] = free_udp_ports();
    let mut server = preloaded("sctp_test", udp, udp);
    server.args(["-H", "127.0.0.1", "-P", "6000", "-l"]);
    let mut server = Running::start(&mut server);
    let mut lines = BufReader::new(server.stdout()).lines();
    await_udp_port(udp);
    let mut client = preloaded("sctp_test", own, udp);
    client.args(["-H", "127.0.0.1", "-P", "6001", "-h", "127.0.0.1", "-p", "6000", "-s"]);
    // Sizes from 1 to 32768 bytes, unordered.
    let sent = Running::start(client.args(["-x", "1", "-c", "4"])).end().good();
    let sizes: Vec<&str> = sent.lines().filter_map(|line| line.split("assoc=0)").nth(1)).collect();
    let sizes: Vec<&str> = sizes.iter().filter_map(|rest| rest.split_whitespace().next()).collect();
    assert!(sizes.len() > 5, "{sent}");
    let mut arrived = Vec::new();
    while arrived.len() < sizes.len() {
        let line = lines.next().expect("more messages").expect("text");
        let size = line.split(" Data ").nth(1).and_then(|rest| rest.split_whitespace().next());
        arrived.extend(size.map(str::to_owned));
    }
    let sorted = |mut sizes: Vec<usize>| {
        sizes.sort_unstable();
        sizes
    };
    let numbers = |texts: Vec<&str>| texts.iter().filter_map(|text| text.parse().ok()).collect();
    assert_eq!(
        sorted(numbers(arrived.iter().map(String::as_str).collect())),
        sorted(numbers(sizes))
    );
}

#[test]
fn sctp_darn_shows_what_another_one_sends() {
    or_skip!(installed("sctp_darn", "lksctp-tools"));
    or_skip!(installed("script", "bsdutils"));
    let [udp, own] = free_udp_ports();
    // On a terminal, its output is line-buffered.
    let on_terminal = |line: &str, own, peer| {
        let mut command = preloaded("script", own, peer);
        let line = format!("env LD_PRELOAD={} sctp_darn {line}", preload().display());
        command.env_remove("LD_PRELOAD").args(["-qc", &line, "/dev/null"]).stdin(Stdio::piped());
        Running::start(&mut command)
    };
    let mut server = on_terminal("-H 127.0.0.1 -P 6010 -l", udp, udp);
    let shown = BufReader::new(server.stdout());
    await_udp_port(udp);
    let mut client = on_terminal("-H 127.0.0.1 -P 6011 -h 127.0.0.1 -p 6010 -s", own, udp);
    let mut near_in = client.child().stdin.take().expect("piped");
    near_in.write_all(b"a line of text\n").expect("sctp_darn reads");
    let mut lines = shown.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("COMM_UP") || line.contains("a line of text")));
    assert!(lines.any(|line| line.contains("a line of text")));
}

#[test]
fn sockets_of_python_speak_sctp() {
    or_skip!(installed("python3", "python3"));
    const SCRIPT: &str = r#"
import asyncio, socket, subprocess, threading
for family, host in [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]:
    listener = socket.socket(family, socket.SOCK_STREAM, 132)
    listener.bind((host, 0))
    listener.listen(5)
    def echo():
        with listener.accept()[0] as end:
            while data := end.recv(65536):
                end.sendall(data)
    thread = threading.Thread(target=echo)
    thread.start()
    with socket.socket(family, socket.SOCK_STREAM, 132) as near:
        near.settimeout(20)
        near.connect(listener.getsockname()[:2])
        assert near.getpeername()[:2] == listener.getsockname()[:2]
        # The child of vfork closes all descriptors.
        subprocess.run(["true"], check=True)
        near.sendall(b"x" * 300000)
        got = 0
        while got < 300000:
            got += len(near.recv(100000))
    thread.join()
    listener.close()
async def main():
    async def serve(reader, writer):
        writer.write((await reader.readline()).upper())
        await writer.drain()
        writer.close()
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)
    listener.bind(("127.0.0.1", 0))
    server = await asyncio.start_server(serve, sock=listener)
    near = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)
    near.setblocking(False)
    await asyncio.get_running_loop().sock_connect(near, listener.getsockname())
    reader, writer = await asyncio.open_connection(sock=near)
    writer.write(b"asyncio\n")
    assert await reader.readline() == b"ASYNCIO\n"
    assert await reader.read() == b""
    writer.close()
    server.close()
asyncio.run(asyncio.wait_for(main(), 20))
print("done")
"#;
    let [udp, _] = free_udp_ports();
    let ended = Running::start(preloaded("python3", udp, udp).args(["-c", SCRIPT])).end();
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("done\n", ""));
}

/// Erlang loads `libsctp.so.1`, whose functions call those of the preloaded library.
#[test]
fn gen_sctp_of_erlang_uses_two_addresses() {
    or_skip!(installed("escript", "erlang-base"));
    or_skip!(installed("sctp_test", "lksctp-tools, for libsctp.so.1"));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/gen_sctp.escript");
    let [udp, _] = free_udp_ports();
    let mut erlang = preloaded("escript", udp, udp);
    // Prevents the Erlang machine from writing a crash dump to this directory.
    erlang.arg(script).env("ERL_CRASH_DUMP_SECONDS", "0");
    let ended = Running::start(&mut erlang).end();
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("done\n", ""));
}

/// Blocking sockets, and nonblocking ones that wait with `select`.
#[test]
fn a_connection_to_a_closed_udp_port_is_refused() {
    or_skip!(installed("python3", "python3"));
    let [closed, own] = free_udp_ports();
    let script = "import errno, select, socket\n\
                  s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)\n\
                  print(errno.errorcode[s.connect_ex(('127.0.0.1', 5000))])\n\
                  s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)\n\
                  s.setblocking(False)\n\
                  print(errno.errorcode[s.connect_ex(('127.0.0.1', 5000))])\n\
                  select.select([], [s], [])\n\
                  print(errno.errorcode[s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)])\n";
    let mut python = preloaded("python3", own, closed);
    let said = Running::start(python.args(["-c", script])).end().good();
    assert_eq!(said, "ECONNREFUSED\nEINPROGRESS\nECONNREFUSED\n");
}

/// Programs that abandon a handshake in several ways. The peer receives packets and does not
/// answer.
#[test]
fn a_program_that_gives_up_a_silent_peer_ends_at_once() {
    or_skip!(installed("python3", "python3"));
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let peer = silent.local_addr().expect("bound").port();
    let [own, _] = free_udp_ports();
    for give_up in [
        "s.settimeout(0.2)\ntry: s.connect(to)\nexcept TimeoutError: pass",
        "s.setblocking(False); s.connect_ex(to)",
        "s.setblocking(False); s.connect_ex(to); s.close()",
        "s.setblocking(False); s.connect_ex(to); s.setblocking(True); \
         s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 30)); s.close()",
        "signal.setitimer(signal.ITIMER_REAL, 0.2); \
         signal.signal(signal.SIGALRM, lambda *_: exit(0)); s.connect(to)",
    ] {
        let script = format!(
            "import signal, socket, struct\nto = '127.0.0.1', 5000\n\
             s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)\n{give_up}"
        );
        let mut python = preloaded("python3", own, peer);
        let begun = Instant::now();
        let ended = Running::start(python.args(["-c", &script])).end();
        assert!(ended.status.success() && ended.stderr.is_empty(), "{give_up}: {ended:?}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{give_up}: {:?}", begun.elapsed());
    }
}

#[test]
fn messages_to_a_silent_peer_delay_the_exit_which_says_that_it_has_not_answered() {
    or_skip!(installed("python3", "python3"));
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let peer = silent.local_addr().expect("bound").port();
    let [own, _] = free_udp_ports();
    let script = "import socket\n\
                  s = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, 132)\n\
                  s.sendto(b'waits', ('127.0.0.1', 5000))";
    let mut python = preloaded("python3", own, peer);
    python.env("ROPEWALK_LINGER_S", "1");
    let ended = Running::start(python.args(["-c", script])).end();
    assert!(ended.status.success(), "{ended:?}");
    let expected = "libropewalk: after 1 s, a peer has not answered: what was sent to it is lost\n";
    assert_eq!(ended.stderr, expected);
}

#[test]
fn a_udp_port_in_use_is_reported_with_the_option_that_chooses_another() {
    or_skip!(installed("python3", "python3"));
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port();
    let begin = "import errno, socket\n\
                 s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)\n\
                 s.bind(('127.0.0.1', 5000))\n";
    for (call, option) in [
        ("s.listen()", "(--udp-port of `ropewalk preload`, ROPEWALK_UDP_PORT)"),
        (
            "s.connect(('127.0.0.1', 5001))",
            "(--client-udp-port of `ropewalk preload`, ROPEWALK_CLIENT_UDP_PORT)",
        ),
    ] {
        let script = format!(
            "{begin}try: {call}\nexcept OSError as error: print(errno.errorcode[error.errno])"
        );
        let mut python = preloaded("python3", port, 9);
        python.env("ROPEWALK_CLIENT_UDP_PORT", port.to_string());
        let ended = Running::start(python.args(["-c", &script])).end();
        assert_eq!(ended.stdout, "EADDRINUSE\n", "{ended:?}");
        assert!(ended.stderr.trim_end().ends_with(option), "{ended:?}");
    }
}
