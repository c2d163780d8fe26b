//! `ropewalk new --from` with rate logs: the written scenario runs, and carries the rates of the log.

use std::fmt::Write;
use std::fs;

use crate::support::TestDir;

/// Rates of a drive, kbit/s for each second: waves, with a tunnel.
fn drive(seconds: u32) -> Vec<u32> {
    let rate = |s: u32| if s % 30 < 3 { 0 } else { 2_000 + 1_500 * (s % 7) + 400 * (s % 11) };
    (5..seconds + 5).map(rate).collect()
}

fn mean_bps(rates: &[u32]) -> f64 {
    rates.iter().map(|kbps| f64::from(*kbps) * 1e3).sum::<f64>() / rates.len() as f64
}

fn bus_log(rates: &[u32]) -> String {
    let mut text = String::new();
    for (second, kbps) in rates.iter().enumerate() {
        let at = (second + 1) * 1000;
        let _ = writeln!(text, "{} {at} 51.03 3.73 {} 1000", 1_453_121_790_686 + at, kbps * 125);
    }
    text
}

fn starlink_csv(rates: &[u32]) -> String {
    let mut text = String::from("timestamp,uplink_mbps,downlink_mbps,pop_ping_latency_ms\n");
    for (second, kbps) in rates.iter().enumerate() {
        let _ = writeln!(text, "{},1.5,{},30", 1_700_000_000 + second, f64::from(*kbps) / 500.0);
    }
    text
}

fn goodput(dir: &TestDir, scenario: &str) -> f64 {
    let run = dir.ropewalk(&["run", scenario, "--json", "--quiet"]).good();
    run.json("ropewalk.run/1")["goodput_bps"].as_f64().expect("a number")
}

#[test]
fn the_scenario_of_two_logs_carries_about_their_mean_rates() {
    let dir = TestDir::new("new-logs");
    let rates = drive(90);
    fs::write(dir.file("bus.log"), bus_log(&rates)).expect("written");
    fs::write(dir.file("starlink.csv"), starlink_csv(&rates)).expect("written");
    let made = dir.ropewalk(&["new", "bus.toml", "--from", "bus.log"]).good();
    let said = made.stderr();
    assert!(
        said.contains("bus.log: 4G/LTE bandwidth log") && said.contains("90 s, mean"),
        "{said}"
    );
    // Headers and the time after an outage reduce the goodput.
    let carried = goodput(&dir, "bus.toml") / mean_bps(&rates);
    assert!((0.8..1.0).contains(&carried), "{carried}");
    let both = [
        "new",
        "both.toml",
        "--from",
        "bus.log",
        "--from",
        "starlink.csv",
        "--column",
        "downlink_mbps",
    ];
    dir.ropewalk(&both).refused(&["--column", "columns have no names"]);
    let both = ["new", "both.toml", "--from", "bus.log", "--from", "starlink.csv"];
    let made = dir.ropewalk(&both).good();
    assert!(made.stderr().contains("rate from `downlink_mbps` (Mbit/s)"), "{}", made.stderr());
    let carried = goodput(&dir, "both.toml") / (3.0 * mean_bps(&rates));
    assert!((0.8..1.0).contains(&carried), "{carried}");
}

#[test]
fn a_trace_of_mahimahi_is_found_from_the_folder_of_the_scenario() {
    let dir = TestDir::new("new-mahimahi");
    let trace: String = (1..=10_000).map(|ms| format!("{ms}\n")).collect();
    fs::write(dir.file("one.mahi"), trace).expect("written");
    fs::create_dir(dir.file("folder")).expect("a folder");
    for file in ["beside.toml", "folder/below.toml"] {
        dir.ropewalk(&["new", file, "--from", "one.mahi"]).good();
        let carried = goodput(&dir, file) / 12.032e6;
        assert!((0.8..1.0).contains(&carried), "{file}: {carried}");
    }
}

#[test]
fn what_is_no_log_is_refused_with_its_place_and_the_formats() {
    let dir = TestDir::new("new-refused");
    fs::write(dir.file("other.csv"), "a,b\n1,2\n").expect("written");
    fs::write(dir.file("back.csv"), "time,rate_mbps\n2,1\n1,1\n").expect("written");
    fs::write(dir.file("path.toml"), "[[path]]\ntrace = \"back.csv\"\n").expect("written");
    let refused = |words: &[&str], hints: &[&str]| dir.ropewalk(words).refused(hints);
    refused(
        &["new", "--from", "other.csv"],
        &["other.csv:1", "known formats", "HSDPA", "Mahimahi"],
    );
    refused(&["new", "--from", "back.csv"], &["back.csv:3", "times must ascend"]);
    refused(&["new", "--from", "absent.csv"], &["absent.csv", "not a ready scenario"]);
    refused(&["new", "--from", "."], &["a directory"]);
    refused(&["new", "--from", "wifi-lte", "--from", "back.csv"], &["cannot be combined"]);
    refused(&["new", "--from", "wifi-lte", "--unit", "Mbit/s"], &["--unit", "logs of rates"]);
    refused(&["new", "--from", "back.csv", "--unit", "furlong"], &["furlong", "Mbit/s"]);
    refused(&["new", "--from", "back.csv", "--where", "run"], &["COLUMN=VALUE"]);
    // Options for traces or records of other programs refer to the command for logs.
    refused(&["run", "path.toml"], &["back.csv:1", "ropewalk new --from back.csv"]);
    refused(&["measure", "--from-iperf3", "back.csv"], &["ropewalk new --from"]);
    refused(&["measure", "--from-ping", "back.csv"], &["ropewalk new --from"]);
    refused(&["measure", "--from-pcap", "back.csv"], &["ropewalk new --from"]);
}
