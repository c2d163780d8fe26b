//! `ropewalk measure` over emulated links. Needs Linux, root and /dev/net/tun; otherwise says so and passes.
#![cfg(target_os = "linux")]

use std::fs;

use crate::support::{TestDir, can_emulate, lateness};
use serde_json::Value;

/// Two independent links.
const LINKS: &str = r#"
[[path]]
rate = "8 Mbit/s"
rate_down = "5 Mbit/s"
rtt = "20 ms"
queue = "60 kB"
queue_down = "45 kB"

[[path]]
rate = "3 Mbit/s"
rate_down = "3 Mbit/s"
rtt = "60 ms"
queue = "45 kB"
queue_down = "30 kB"
loss = 0.03
"#;

/// Measures over these links. Returns `None`, with a note, if the emulator was too late for a
/// result.
fn measure(dir: &TestDir, scenario: &str) -> Option<Value> {
    fs::write(dir.file("links.toml"), scenario).expect("written");
    let (near, far) = (dir.key("near"), dir.key("far"));
    let binary = env!("CARGO_BIN_EXE_ropewalk");
    let serve = format!(
        "exec {binary} bench serve --once --listen {{local1}} --listen {{local2}} --key far --allow {near}"
    );
    let line = format!(
        "exec {binary} measure --to {{remote1}},{{remote2}} --from {{local1}},{{local2}} --key near --peer {far} \
         --time '5 s' --out measured.toml --json"
    );
    let words = ["emulate", "links.toml", "--quiet", "--stats", "stats", "--far", &serve, "--"];
    let done = dir.ropewalk(&[&words[..], &["sh", "-c", &line]].concat()).good();
    let stats = fs::read_to_string(dir.file("stats")).expect("written");
    let late = lateness(&serde_json::from_str(&stats).expect("JSON"));
    if late > 0.02 {
        eprintln!("skipped: the emulator was {late} s late");
        return None;
    }
    Some(done.json("ropewalk.measure/1"))
}

#[test]
fn what_is_measured_is_what_is_emulated_and_can_be_simulated() {
    if !can_emulate() {
        return;
    }
    let dir = TestDir::new("measure");
    let Some(found) = measure(&dir, LINKS) else { return };
    assert_eq!(found["shared_bottlenecks"], Value::Array(Vec::new()), "{found:#}");
    for (link, direction, rate, queue) in
        [(0, "up", 8e6, 60e3), (0, "down", 5e6, 45e3), (1, "up", 3e6, 45e3), (1, "down", 3e6, 30e3)]
    {
        let way = &found["links"][link][direction];
        let near = |value: &Value, truth: f64, share: f64| {
            let value = value.as_f64().expect("a number");
            assert!((value / truth - 1.0).abs() < share, "{value}, not {truth}: {way:#}");
        };
        near(&way["capacity"]["rate_bps"], rate, 0.05);
        near(&way["queue"]["bytes"], queue, 0.2);
    }
    for (link, rtt) in [(0, 0.02), (1, 0.06)] {
        let value = found["links"][link]["base_rtt_s"].as_f64().expect("a number");
        assert!((value - rtt).abs() < 4e-3, "{value}, not {rtt}");
    }
    let loss = &found["links"][1]["up"]["loss"];
    assert!(loss["lost_packets"].as_u64().expect("a count") > 0, "{loss:#}");
    let text = fs::read_to_string(dir.file("measured.toml")).expect("written");
    assert_eq!(found["scenario"], text.as_str());
    dir.ropewalk(&["run", "measured.toml", "--set", "transfer.duration=2 s", "--json"]).good();
}

#[test]
fn options_that_would_fail_later_are_refused_before_anything_is_sent() {
    let dir = TestDir::new("measure-options");
    fs::write(dir.file("there.toml"), "").expect("written");
    let key = dir.key("some");
    for (words, said) in [
        (&["--time", "1 s"][..], "--time 1.000 s: too short"),
        (&["--max-bytes", "5 kB"], "--max-bytes 5.000 kB: too little"),
        (&["--out", "there.toml"], "--out there.toml: it exists"),
        (&["--out", "no/links.toml"], "its directory does not exist"),
    ] {
        let all = [&["measure", "--to", "127.0.0.1:9", "--peer", &key], words].concat();
        let done = dir.ropewalk(&all);
        assert_eq!(done.status(), 2, "{words:?}");
        assert!(done.stderr().contains(said), "{words:?}: {}", done.stderr());
    }
    let plain = dir.ropewalk(&["measure", "--to", "127.0.0.1:9", "--plain"]);
    assert_eq!(plain.status(), 2);
}

#[test]
fn records_of_other_programs_give_a_scenario_that_can_be_simulated() {
    let dir = TestDir::new("measure-records");
    let ping = "64 bytes from 192.0.2.7: icmp_seq=1 ttl=57 time=30.5 ms\n\
                64 bytes from 192.0.2.7: icmp_seq=2 ttl=57 time=31.5 ms\n";
    let iperf3 = r#"{"start": {"tcp_mss_default": 1448, "test_start": {"protocol": "TCP", "reverse": 1}},
        "end": {"sum_received": {"seconds": 10.0, "bits_per_second": 9.653e6}}}"#;
    fs::write(dir.file("ping.txt"), ping).expect("written");
    fs::write(dir.file("iperf3.json"), iperf3).expect("written");
    let both = ["measure", "--from-ping", "ping.txt", "--from-iperf3", "iperf3.json"];
    let printed = dir.ropewalk(&both).good();
    dir.ropewalk(&[&both[..], &["--out", "link.toml"]].concat()).good();
    let written = fs::read_to_string(dir.file("link.toml")).expect("written");
    assert_eq!(printed.stdout(), written);
    for expected in ["rtt = \"30.500 ms\"", "rate_down = \"10.000 Mbit/s\""] {
        assert!(written.contains(expected), "{written}");
    }
    dir.ropewalk(&["run", "link.toml", "--set", "transfer.duration=2 s", "--json"]).good();
    for (words, said) in [
        (&["--from-ping", "iperf3.json"][..], "icmp_seq=1"),
        (&["--from-iperf3", "ping.txt"], "--from-iperf3 ping.txt"),
        (&["--from-ping", "missing"], "--from-ping missing"),
        (&["--from-pcap", "missing"], "--from-pcap missing"),
        (&["--from-pcap", "ping.txt"], "neither pcap nor pcapng"),
        (&["--from-ping", "ping.txt", "--to", "127.0.0.1"], "cannot be used with"),
        (&[], "--to"),
    ] {
        let done = dir.ropewalk(&[&["measure"], words].concat());
        assert_eq!(done.status(), 2, "{words:?}");
        assert!(done.stderr().contains(said), "{words:?}: {}", done.stderr());
    }
}
