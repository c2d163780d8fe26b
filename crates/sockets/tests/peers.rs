//! Other implementations of SCTP as peers of programs that use the kernel's API: usrsctp.

use std::path::Path;

use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;
use ropewalk_interop::peer::{Peer, usrsctp};

use crate::support::{Running, compiled, library, preloaded};

/// Runs the program on our host. Returns the number of the peer's addresses.
fn run(hosts: &Hosts, program: &Path, words: &str) -> usize {
    let mut command = preloaded(program, 9899, 9899);
    let libraries = library().parent().map(Path::to_path_buf).expect("a directory");
    command.args(words.split(' ')).env("LD_LIBRARY_PATH", libraries);
    let child = hosts.spawn(Side::Ours, &mut command).expect("it starts");
    let ended = Running::of(child).end();
    ended.good().trim().parse().expect("a number")
}

#[test]
fn programs_talk_to_usrsctp_on_all_paths() {
    let (usrsctp, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/interop/usrsctp");
    let directory = library().parent().expect("a directory").display().to_string();
    let pattern = format!("{sources}/pattern.c");
    let include = format!("-I{sources}");
    let linked = [&include, &pattern, "-L", &directory, "-lropewalk"];
    let program = or_skip!(compiled("pattern_peer", &linked));
    // Count and length of the messages, and streams.
    for (count, length, streams) in [(3000, 1000, 1), (300, 30_000, 7), (20, 1 << 18, 1)] {
        for bind in ["10.77.1.2", "10.77.1.2,10.77.2.2"] {
            let links = bind.split(',').count();
            let case = format!("{count} {length} {streams}");
            let words = format!("--server --bind {bind} --streams {streams}");
            let peer = Peer::start(&hosts, Side::Theirs, usrsctp, &words);
            let known = run(&hosts, &program, &format!("send 10.77.1.2 9899 {case}"));
            let report = peer.report();
            assert_eq!((report.ended(), known), ("shutdown", links), "{bind}: {case}");
            assert_eq!(report.received(), count * length, "{bind}: {case}");

            let total = count * length;
            let words = format!("{words} --bytes {total} --message {length} --finish wait");
            let peer = Peer::start(&hosts, Side::Theirs, usrsctp, &words);
            let known = run(&hosts, &program, &format!("receive 10.77.1.2 9899 {case}"));
            assert_eq!(known, links, "{bind}: {case}");
            assert_eq!(peer.report().ended(), "shutdown", "{bind}: {case}");
        }
    }
    std::fs::remove_file(&program).expect("it is ours");
}
