//! `ropewalk validate` and `ropewalk bench compare`: the kernel's transports over emulated links, with real
//! transfers if the machine permits them.

use std::fs;
use std::path::Path;

use crate::support::{Done, TestDir, can_emulate};
use serde_json::Value;

const LINKS: &str = "[transfer]\nreceive_buffer = '256 KiB'\n\
    [[path]]\nname = 'dsl'\nrate = '8 Mbit/s'\nrtt = '20 ms'\nqueue = '30 packets'\n\
    [[path]]\nname = 'lte'\nrate = '4 Mbit/s'\nrtt = '30 ms'\nqueue = '30 packets'\n";

#[test]
fn wrong_input_is_refused_before_anything_runs() {
    let dir = TestDir::new("validate-refusals");
    fs::write(dir.file("two.toml"), LINKS).expect("a scenario");
    for (words, hints) in [
        (&["--transport", "tcp-vegas"][..], &["tcp-reno, tcp-cubic, tcp-bbr, mptcp"][..]),
        (&["no-such-scenario"], &["no-such-scenario"]),
        (&["--time", "1 s", "--warmup", "2 s"], &["is not shorter than"]),
        (&["--runs", "0"], &["--runs"]),
        (&["two.toml", "--path", "wlan"], &["--path wlan", "its paths are dsl, lte"]),
        (&["--recorded", "none.json"], &["--recorded none.json"]),
        (&["--recorded", "two.toml"], &["`ropewalk validate --json`"]),
        (&["--report", "no/such/folder.html"], &["no/such/folder.html"]),
    ] {
        // Without root, the machine is refused first.
        if words[0] == "--report" && !can_emulate() {
            continue;
        }
        dir.ropewalk(&[&["validate"], words].concat()).refused(hints);
    }
    for (words, hints) in [
        (&["--transport", "tcp-vegas"][..], &["tcp-cubic, tcp-bbr, mptcp-cubic"][..]),
        (&["--time", "1 s", "--warmup", "2 s"], &["is not shorter than"]),
        (&["--report", "no/such/folder.html"], &["no/such/folder.html"]),
        (&["--set", "path.lte.rate=fast"], &["path.lte.rate"]),
    ] {
        let all = [&["bench", "compare", "--emulate", "two.toml"], words].concat();
        dir.ropewalk(&all).refused(hints);
    }
    dir.ropewalk(&["bench", "compare"]).refused(&["--emulate"]);
    let both = ["bench", "compare", "--access", "--emulate", "two.toml"];
    dir.ropewalk(&both).refused(&["--access", "--emulate"]);
    assert_eq!(dir.left_behind(), ["two.toml"]);
}

#[test]
fn the_scenarios_are_listed_and_cover_the_ranges() {
    let dir = TestDir::new("validate-list");
    let list = dir.ropewalk(&["validate", "--list", "--json"]).good();
    let list: Vec<Value> = serde_json::from_str(list.stdout()).expect("a list");
    assert_eq!(list.len(), 30 + 5);
    for entry in &list {
        let name = entry["scenario"].as_str().expect("a name");
        dir.ropewalk(&["predict", name, "--json"]).good();
    }
}

#[test]
fn the_simulator_agrees_with_the_recorded_kernel_in_as_many_cells_as_the_docs_say() {
    let dir = TestDir::new("validate-recorded");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let record = root.join("scenarios/validation/linux-6.18.json").display().to_string();
    let done = dir.ropewalk(&["validate", "--recorded", &record, "--json"]).good();
    let document: Value = serde_json::from_str(done.stdout()).expect("a document");
    let count = |figure: &str| document["summary"][figure].as_u64().expect("a count");
    let share =
        |figure: &str| format!("**{} ({:.0} %)**", count(figure), count(figure) as f64 / 1.2);
    let [goodput, rtt, again] = ["goodput", "rtt", "retransmitted"].map(share);
    let row = format!("| **all** | 120 | {goodput} | {rtt} | {again} |");
    let page = fs::read_to_string(root.join("docs/validation.md")).expect("a page");
    assert!(count("cells") == 120 && page.contains(&row), "{row}");
}

/// Whether the command succeeded. A test is skipped if the kernel lacks Multipath TCP, if `ss` is missing, or if
/// the machine stalls.
fn has_run(done: &Done) -> bool {
    if done.status() == 0 {
        return true;
    }
    let known = ["no Multipath TCP", "no program `ss`", "short of CPU"];
    assert!(known.iter().any(|part| done.stderr().contains(part)), "{}", done.stderr());
    eprintln!("skipped: {}", done.stderr());
    false
}

#[test]
fn transports_over_the_same_links_are_compared_in_one_table() {
    if !can_emulate() {
        return;
    }
    let dir = TestDir::new("bench-compare");
    fs::write(dir.file("two.toml"), LINKS).expect("a scenario");
    let words = ["bench", "compare", "--emulate", "two.toml", "--time", "3 s", "--warmup", "1 s"];
    let more = ["--transport", "ropewalk,mptcp-cubic", "--json", "--report", "all.html"];
    let done = dir.ropewalk(&[&words[..], &more].concat());
    if !has_run(&done) {
        return;
    }
    let document = done.json("ropewalk.bench-compare/1");
    let rows = document["rows"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["transport"].as_str()).collect();
    assert_eq!(names, ["Ropewalk", "Linux Multipath TCP, cubic"]);
    for row in rows {
        assert_eq!(row["paths"], serde_json::json!(["dsl", "lte"]));
        let goodput = row["goodput_bps"].as_f64().expect("bit/s");
        // Data from before the interval may be read in it.
        assert!((0.4..1.3).contains(&(goodput / 12e6)), "{row}");
        assert!(row["rtt_s"].as_f64().is_some_and(|rtt| rtt > 0.019), "{row}");
    }
    assert!(rows[0]["simulated_bps"].as_f64().is_some() && rows[1]["simulated_bps"].is_null());
    let page = fs::read_to_string(dir.file("all.html")).expect("a report");
    assert!(page.contains("Round trip of the busiest path"));
}

#[test]
fn the_kernel_and_the_simulator_carry_the_same_over_the_same_links() {
    if !can_emulate() {
        return;
    }
    let dir = TestDir::new("validate");
    fs::write(dir.file("two.toml"), LINKS).expect("a scenario");
    let words = ["validate", "two.toml", "--transport", "tcp-cubic,mptcp", "--time", "4 s"];
    let words =
        [&words[..], &["--warmup", "2 s", "--report", "both.html", "--out", "samples", "--json"]]
            .concat();
    let done = dir.ropewalk(&words);
    if !has_run(&done) {
        return;
    }
    let document = done.json("ropewalk.validate/1");
    let cells = document["cells"].as_array().expect("cells");
    let rates = [("tcp-cubic", 8e6), ("mptcp", 12e6)];
    assert_eq!(cells.len(), rates.len());
    for (cell, (transport, rate)) in cells.iter().zip(rates) {
        assert_eq!(cell["transport"], transport);
        for side in ["kernel", "simulated"] {
            let goodput = cell["verdict"]["goodput_bps"][side].as_f64().expect("bit/s");
            // Data from before the interval may be read in it.
            assert!((0.5..1.3).contains(&(goodput / rate)), "{side}: {cell}");
            let paths = cell[side][0]["paths"].as_array().expect("paths");
            let share: f64 =
                paths.iter().map(|path| path["share"].as_f64().expect("a share")).sum();
            assert!((share - 1.0).abs() < 1e-6, "{side}: {cell}");
        }
        assert!(cell["receive_window_bytes"]["kernel"].as_f64().is_some_and(|bytes| bytes > 1e4));
        kept(&dir, transport);
        let rtt = cell["verdict"]["rtt_s"]["kernel"].as_f64().expect("samples");
        assert!((0.019..0.2).contains(&rtt), "{cell}");
    }
    let page = fs::read_to_string(dir.file("both.html")).expect("a report");
    assert!(page.contains("mptcp: smoothed RTT"));
    // Its runs of the kernel can be used for another comparison.
    fs::write(dir.file("both.json"), done.stdout()).expect("written");
    let words = ["validate", "two.toml", "--recorded", "both.json"];
    let times = ["--time", "4 s", "--warmup", "2 s"];
    let transports = ["--transport", "tcp-cubic,mptcp", "--json"];
    let again = dir.ropewalk(&[&words[..], &times, &transports].concat());
    assert_eq!(again.json("ropewalk.validate/1"), document);
    dir.ropewalk(&words).refused(&["give --time 4s --warmup 2s"]);
}

#[test]
fn several_scenarios_have_a_row_each_and_a_summary() {
    if !can_emulate() {
        return;
    }
    let dir = TestDir::new("bench-compare-set");
    fs::write(dir.file("two.toml"), LINKS).expect("a scenario");
    let words = ["bench", "compare", "--emulate", "two.toml", "--emulate", "access/two-lte"];
    let times = ["--time", "2 s", "--warmup", "1 s"];
    let more = ["--transport", "ropewalk,tcp-cubic", "--json", "--report", "all.html"];
    let done = dir.ropewalk(&[&words[..], &times, &more].concat());
    // A machine that is busy with other tests still prints the document, without the figures that do not count.
    let document: Value = serde_json::from_str(done.stdout()).expect("a document");
    assert_eq!(document["schema"], "ropewalk.bench-compare-set/1");
    let scenarios = document["scenarios"].as_array().expect("scenarios");
    let names: Vec<&str> = scenarios.iter().filter_map(|one| one["scenario"].as_str()).collect();
    assert_eq!(names, ["two.toml", "access/two-lte"]);
    let rows: Vec<&Value> =
        scenarios.iter().flat_map(|one| one["rows"].as_array().expect("rows")).collect();
    assert_eq!(rows.len(), 4);
    for row in &rows {
        let is_short = row["goodput_bps"].is_null();
        assert_eq!(is_short, row["reason"].is_string(), "{row}");
        assert!(!is_short || done.stderr().contains("short of CPU"), "{}", done.stderr());
        if !is_short && row["name"] == "tcp-cubic" {
            let each = row["each_path"].as_array().expect("each path");
            let best =
                each.iter().filter_map(|one| one["goodput_bps"].as_f64()).fold(0.0, f64::max);
            assert_eq!((each.len(), row["goodput_bps"].as_f64()), (2, Some(best)), "{row}");
        }
    }
    let any_short = rows.iter().any(|row| row["goodput_bps"].is_null());
    assert_eq!(done.status(), i32::from(any_short), "{}", done.stderr());
    let of = document["summary"][0]["tcp"]["of"].as_u64().expect("a count");
    assert!(if any_short { of < 2 } else { of == 2 }, "{document}");
    let page = fs::read_to_string(dir.file("all.html")).expect("a report");
    assert!(page.contains("Round trip of the busiest path"));
}

/// Checks that the samples of a run exist, and that its scenario can be simulated again.
fn kept(dir: &TestDir, transport: &str) {
    let folder = format!("samples/two/{transport}-1");
    let read = |name: &str| -> Value {
        let text = fs::read_to_string(dir.file(&format!("{folder}/{name}"))).expect("kept");
        serde_json::from_str(&text).expect("JSON")
    };
    let (sender, receiver) = (read("sender.json"), read("receiver.json"));
    let last = |of: &Value, key: &str| of[key].as_array().and_then(|all| all.last()).cloned();
    let sent = last(&sender, "samples").expect("samples of the sender");
    assert!(sent["sockets"][0]["bytes_sent"].as_u64().is_some_and(|bytes| bytes > 100_000));
    let received = last(&receiver, "sockets").expect("samples of the receiver");
    // The kernel reserves twice the value of SO_RCVBUF (socket(7)).
    assert_eq!(received["sockets"][0]["receive_buffer"], 2 * 256 * 1024);
    assert_eq!(read("emulator.json")["schema"], "ropewalk.emulate/1");
    dir.ropewalk(&["run", &format!("{folder}/simulated.toml"), "--json"]).good();
}
