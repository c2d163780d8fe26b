//! `--capture` with a real transfer; tshark, if installed, has to understand every packet.

mod support;

use std::fs;
use std::process::{Command, Stdio};

use support::{Server, TestDir};

/// The output of tshark for a file: one line per packet; `None` without tshark.
fn dissected(file: &std::path::Path) -> Option<String> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-o", "sctp.checksum:CRC-32C", "-T", "fields"]);
    for field in
        ["frame.interface_name", "ip.src", "ip.dst", "sctp.chunk_type", "sctp.checksum.status"]
    {
        command.args(["-e", field]);
    }
    command.args(["-e", "_ws.malformed"]);
    let done = command.stderr(Stdio::null()).output().ok()?;
    assert!(done.status.success(), "tshark reads the whole file");
    Some(String::from_utf8(done.stdout).expect("text"))
}

#[test]
fn both_ends_of_a_sealed_transfer_can_be_read_by_tshark() {
    let dir = TestDir::new("capture");
    fs::write(dir.file("data"), vec![7; 300_000]).expect("a file");
    let (near, far) = (dir.key("near.key"), dir.key("far.key"));
    let command = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ropewalk"));
        command.args(words).current_dir(dir.file(".")).stdout(Stdio::null());
        command
    };
    let words = ["recv", "inbox", "--once", "--listen", "127.0.0.1:0", "--key", "far.key"];
    let more = ["--allow", &near, "--capture", "far.pcapng"];
    let mut serving = Server::start(&mut command(&[&words[..], &more].concat()), "send");
    let words = [&serving.line_for(&["data"])[..], &["--key", "near.key"]].concat();
    assert!(words.contains(&far.as_str()), "{words:?}");
    dir.ropewalk(&[&words[..], &["--capture", "near.pcapng"]].concat()).good();
    assert!(serving.child.wait().expect("it ends").success());
    for file in ["near.pcapng", "far.pcapng"] {
        let out = format!("{file}.toml");
        dir.ropewalk(&["measure", "--from-pcap", file, "--out", &out]).good();
        let text = fs::read_to_string(dir.file(&out)).expect("written");
        let [rate, rtt, data] = ["\nrate = ", "\nrtt = ", "largest transfer, SCTP"];
        assert!([rate, rtt, data].iter().all(|part| text.contains(part)), "{text}");
        let Some(text) = dissected(&dir.file(file)) else {
            eprintln!("skipped: no tshark");
            return;
        };
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
        assert!(rows.len() > 300_000 / 65_000, "{} packets", rows.len());
        for row in &rows {
            assert_eq!(row[1..3], ["127.0.0.1"; 2], "{row:?}");
            assert!(!row[0].is_empty() && !row[3].is_empty(), "{row:?}");
            // 1 means that the checksum is right.
            assert_eq!((row[4], row[5]), ("1", ""), "{row:?}");
        }
        // INIT, INIT ACK, COOKIE ECHO, COOKIE ACK, DATA or I-DATA, SACK or NR-SACK.
        for kinds in [&["1"][..], &["2"], &["10"], &["11"], &["0", "64"], &["3", "16"]] {
            let is = |row: &Vec<&str>| row[3].split(',').any(|kind| kinds.contains(&kind));
            assert!(rows.iter().any(is), "{file} has no chunk of type {kinds:?}");
        }
    }
}

#[test]
fn a_capture_that_cannot_be_written_is_refused_at_once() {
    let dir = TestDir::new("capture-refused");
    fs::write(dir.file("data"), "x").expect("a file");
    let words = ["send", "data", "--to", "127.0.0.1:9", "--plain", "--capture", "none/such.pcapng"];
    dir.ropewalk(&words).refused(&["none/such.pcapng", "packets.pcapng"]);
}
