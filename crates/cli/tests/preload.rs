//! `ropewalk preload`: programs with Ropewalk's sockets.

use std::path::Path;

use crate::support::TestDir;

#[test]
fn the_library_is_found_beside_the_command() {
    let dir = TestDir::new("preload-library");
    let shown = dir.ropewalk(&["preload", "--library"]).good();
    let path = shown.stdout().trim_end();
    assert!(path.ends_with("/libropewalk.so") && Path::new(path).is_file(), "{path}");
}

#[test]
fn a_program_gets_the_library_and_the_options() {
    let dir = TestDir::new("preload-options");
    let script = "echo $LD_PRELOAD $ROPEWALK_UDP_PORT $ROPEWALK_PEER_UDP_PORT $ROPEWALK_AVOID \
                  $ROPEWALK_SCHEDULER $ROPEWALK_RECEIVE_BUFFER";
    let options =
        ["--udp-port", "9000", "--peer-udp-port", "9001", "--avoid", "wg0", "--avoid", "eth1"];
    let more = ["--scheduler", "min-rtt", "--receive-buffer", "1 MiB", "--", "sh", "-c", script];
    let words = [&["preload"], &options[..], &more[..]].concat();
    let shown = dir.ropewalk(&words).good();
    let (library, rest) = shown.stdout().split_once(' ').expect("words");
    assert!(library.ends_with("/libropewalk.so"), "{library}");
    assert_eq!(rest, "9000 9001 wg0,eth1 min-rtt 1048576\n");
}

#[test]
fn sockets_of_the_program_speak_sctp() {
    let dir = TestDir::new("preload-sockets");
    let script = "import socket\n\
                  s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)\n\
                  s.bind(('127.0.0.1', 5000))\n\
                  print(s.getsockname(), s.proto)";
    let shown = dir.ropewalk(&["preload", "--", "python3", "-c", script]).good();
    assert_eq!(shown.stdout(), "('127.0.0.1', 5000) 132\n");
}

#[test]
fn a_missing_program_or_a_wrong_port_is_refused() {
    let dir = TestDir::new("preload-refused");
    dir.ropewalk(&["preload"]).refused(&["PROGRAM"]);
    dir.ropewalk(&["preload", "--", "no-such-program"]).refused(&["cannot run `no-such-program`"]);
    dir.ropewalk(&["preload", "--udp-port", "0", "--", "true"]).refused(&["--udp-port"]);
}
