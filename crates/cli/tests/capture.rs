//! `--capture` with a real transfer. tshark, if installed, must understand every packet.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Server, TestDir};

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
            // 1 means a good checksum.
            assert_eq!((row[4], row[5]), ("1", ""), "{row:?}");
        }
        // INIT, INIT ACK, COOKIE ECHO, COOKIE ACK, DATA or I-DATA, SACK or requested SACK.
        for kinds in [&["1"][..], &["2"], &["10"], &["11"], &["0", "64"], &["3", "181"]] {
            let is = |row: &Vec<&str>| row[3].split(',').any(|kind| kinds.contains(&kind));
            assert!(rows.iter().any(is), "{file} has no chunk of type {kinds:?}");
        }
    }
}

#[test]
fn a_capture_that_cannot_be_written_is_refused_at_once() {
    let dir = TestDir::new("capture-refused");
    fs::write(dir.file("data"), "x").expect("a file");
    let words = ["send", "data", "--to", "127.0.0.1:9", "--plain"];
    let with = |more: &[&str]| dir.ropewalk(&[&words[..], more].concat());
    let capture = ["--capture", "none/such.pcapng"];
    with(&capture).refused(&["none/such.pcapng", "packets.pcapng"]);
    with(&["--qlog", "none/such"]).refused(&["--qlog none/such", "packets.sqlog"]);
    with(&["--qlog", "one", "--capture", "one"]).refused(&["the same file"]);
}

/// Counts the chunks that carry user data, and their bytes, in the packets of this name.
fn data_chunks(records: &[Value], name: &str) -> [u64; 3] {
    let mut counts = [0; 3];
    for packet in records.iter().filter(|record| record["name"] == name) {
        let chunks = packet["data"]["chunks"].as_array().expect("a list").iter();
        let is_data =
            |chunk: &&Value| ["DATA", "I_DATA"].contains(&chunk["type"].as_str().expect("a type"));
        let lengths: Vec<u64> =
            chunks.filter(is_data).map(|c| c["length"].as_u64().expect("bytes")).collect();
        counts[0] += u64::from(!lengths.is_empty());
        counts[1] += lengths.len() as u64;
        counts[2] += lengths.iter().sum::<u64>();
    }
    counts
}

#[test]
fn the_qlog_of_a_real_transfer_agrees_with_its_json_document() {
    let dir = TestDir::new("qlog-live");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ropewalk"));
    command.args(["bench", "serve", "--once", "--listen", "127.0.0.1:0", "--key", "far.key"]);
    let near = dir.key("near.key");
    let far = dir.key("far.key");
    command.args(["--allow", &near, "--qlog", "far.sqlog", "--capture", "far.pcapng"]);
    let mut serving = Server::start(command.current_dir(dir.file(".")), "bench run");
    let words = [&serving.line[..], &[]].concat();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert!(words.contains(&far.as_str()), "{words:?}");
    let more = ["--key", "near.key", "--time", "200ms", "--warmup", "0s", "--json"];
    let files = ["--qlog", "near.sqlog"];
    let measured = dir.ropewalk(&[&words[..], &more, &files].concat()).good();
    assert!(serving.child.wait().expect("it ends").success());
    let document = measured.json("ropewalk.bench/1");
    let [near, far] = ["near.sqlog", "far.sqlog"].map(|file| qlog(&dir.file(file)));
    for (records, kind) in [(&near, "client"), (&far, "server")] {
        let trace = &records[0]["trace"];
        assert_eq!(trace["vantage_point"]["type"], kind);
        let began = &trace["common_fields"]["reference_time"]["wall_clock_time"];
        assert!(began.as_str().is_some_and(|text| text.starts_with("20") && text.ends_with('Z')));
        let mut last = 0.0;
        for record in &records[1..] {
            assert_eq!((&record["tuple"], &record["group_id"]), (&json!("127.0.0.1"), &json!("1")));
            let time = record["time"].as_f64().expect("a time");
            assert!(time >= last, "{time} after {last}");
            last = time;
        }
        assert!(records.iter().any(|record| record["name"] == "path:metrics_updated"));
    }
    let path = &document["paths"][0];
    let [packets, chunks, bytes] = data_chunks(&near, "sctp:packet_sent");
    // The document was written before the last packets.
    let of = |key: &str| path[key].as_u64().expect("a count");
    assert!(packets >= of("sent_packets") && of("sent_packets") > 10, "{packets} {path}");
    assert!(chunks >= packets && bytes >= of("delivered_bytes"), "{bytes} {path}");
    let [arrived, ..] = data_chunks(&far, "sctp:packet_received");
    assert!(arrived <= packets && arrived >= of("sent_packets") * 9 / 10, "{arrived} {path}");
    let last = near.iter().rfind(|record| record["name"] == "path:metrics_updated");
    let last = &last.expect("a record")["data"];
    assert!(last["lost_packets"].as_u64() >= path["lost_packets"].as_u64(), "{last} {path}");
    assert!(last["smoothed_rtt"].as_f64().is_some_and(|ms| ms > 0.0), "{last}");
}

/// The value of each field of each packet of a capture; `None` without tshark.
fn fields(file: &std::path::Path, names: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-T", "fields"]);
    for name in names {
        command.args(["-e", name]);
    }
    let done = command.stderr(Stdio::null()).output().ok()?;
    assert!(done.status.success(), "tshark reads the whole file");
    let text = String::from_utf8(done.stdout).expect("text");
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

/// The records of a qlog file.
fn qlog(file: &std::path::Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("a file");
    let records = text.split('\u{1e}').skip(1);
    records.map(|record| serde_json::from_str(record).expect("a JSON text")).collect()
}

/// Arguments of a short run that records its packets.
const SHORT: [&str; 10] = [
    "run",
    "wifi-lte",
    "--set",
    "transfer.duration=2s",
    "--set",
    "transfer.warmup=0s",
    "--capture",
    "run.pcapng",
    "--qlog",
    "run.sqlog",
];

#[test]
fn a_simulated_sctp_run_can_be_read_by_tshark_and_as_qlog() {
    let dir = TestDir::new("capture-run");
    let plain = dir.ropewalk(&[&SHORT[..6], &["--json"]].concat()).good();
    let recorded = dir.ropewalk(&[&SHORT[..], &["--json"]].concat()).good();
    let [plain, recorded] = [plain, recorded].map(|run| run.json("ropewalk.run/1"));
    assert_eq!(plain["paths"], recorded["paths"], "recording changes nothing");
    let records = qlog(&dir.file("run.sqlog"));
    let named = |name: &str| records.iter().filter(|r| r["name"] == name).count();
    let (sent, received) = (named("sctp:packet_sent"), named("sctp:packet_received"));
    assert!(sent > 100 && received > 50 && named("path:metrics_updated") > 50);
    for path in ["wifi", "lte"] {
        assert!(records.iter().any(|r| r["tuple"] == path && r["name"] == "sctp:packet_sent"));
    }
    let names = ["frame.interface_name", "frame.len", "sctp.chunk_type", "_ws.malformed"];
    let Some(rows) = fields(&dir.file("run.pcapng"), &names) else {
        eprintln!("skipped: no tshark");
        return;
    };
    assert_eq!(rows.len(), sent + received);
    assert!(rows.iter().all(|row| ["wifi", "lte"].contains(&&*row[0]) && row[3].is_empty()));
    assert!(rows.iter().any(|row| row[1] == "1500"), "the length is that on the wire");
}

#[test]
fn tshark_finds_the_subflows_of_a_simulated_multipath_tcp_run() {
    let dir = TestDir::new("capture-mptcp");
    let more = ["--set", "transfer.protocol=mptcp", "--vantage", "receiver", "--quiet"];
    dir.ropewalk(&[&SHORT[..], &more].concat()).good();
    let names = ["ip.src", "mptcp.stream", "_ws.malformed"];
    let Some(rows) = fields(&dir.file("run.pcapng"), &names) else {
        eprintln!("skipped: no tshark");
        return;
    };
    // Tokens and keys join both subflows to one session. The first SYN has no key yet.
    for source in ["10.0.0.1", "10.0.1.1"] {
        let own: Vec<_> = rows.iter().skip(1).filter(|row| row[0] == source).collect();
        assert!(own.len() > 10, "{source}: {} packets", own.len());
        assert!(own.iter().all(|row| row[1] == "0"), "{source}: {:?}", own[0]);
        assert!(own.iter().all(|row| row[2].is_empty()), "{source}");
    }
}

#[test]
fn packet_files_of_a_run_that_cannot_be_created_are_refused_before_it_runs() {
    let dir = TestDir::new("capture-run-refused");
    for option in ["--capture", "--qlog"] {
        let words = ["run", "wifi-lte", option, "none/such"];
        dir.ropewalk(&words).refused(&[option, "there is no directory `none`"]);
    }
}

#[test]
fn measuring_a_capture_of_two_unequal_paths_takes_no_late_data_for_lost() {
    let dir = TestDir::new("capture-measured");
    // The receive window is too small to fill a queue, so nothing is lost.
    let clean = ["--set", "path.lte.loss=0", "--scheduler", "lay", "--quiet"];
    for vantage in ["sender", "receiver"] {
        let file = format!("{vantage}.toml");
        dir.ropewalk(&[&SHORT[..], &clean, &["--vantage", vantage]].concat()).good();
        dir.ropewalk(&["measure", "--from-pcap", "run.pcapng", "--out", &file]).good();
        let scenario = fs::read_to_string(dir.file(&file)).expect("a scenario");
        assert_eq!(scenario.matches("[[path]]").count(), 2, "{scenario}");
        assert_eq!(scenario.matches("\n# 0 of ").count(), 2, "{vantage}: {scenario}");
    }
}
