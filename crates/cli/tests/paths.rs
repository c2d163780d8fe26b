//! Interfaces that disappear and return while data flows, in namespaces. Needs Linux, root and /dev/net/tun;
//! otherwise says so and passes.
#![cfg(target_os = "linux")]

use std::fs;

use crate::support::{TestDir, can_emulate};
use serde_json::Value;

const LINKS: &str = r#"
[[path]]
name = "wifi"
rate = "10 Mbit/s"
rtt = "20 ms"

[[path]]
name = "lte"
rate = "2 Mbit/s"
rtt = "40 ms"
"#;
/// Prints the number of bytes sent through the first device.
const SENT: &str =
    "sent() { grep '{device1}:' /proc/net/dev | tr -s ' ' | sed 's/^ //' | cut -d ' ' -f 10; };";
/// Bytes that a path in use carries quickly. Heartbeats and probes of an unused path never reach this
/// number.
const USED: u64 = 60_000;

/// Measures for this many seconds while `meanwhile` runs at the sender. Returns the document, the bytes sent
/// through the first device afterwards, and the notes.
fn bench(
    name: &str,
    options: &str,
    seconds: u32,
    before: &str,
    meanwhile: &str,
) -> (Value, u64, String) {
    let dir = TestDir::new(name);
    fs::write(dir.file("s.toml"), LINKS).expect("a file");
    let (near, far) = (dir.key("near.key"), dir.key("far.key"));
    let own = env!("CARGO_BIN_EXE_ropewalk");
    let far_line = format!(
        "exec {own} bench serve --once --listen {{local1}} --listen {{local2}} --key far.key --allow {near}"
    );
    let near_line = format!(
        "{SENT} {before} {own} bench run --to {{remote1}},{{remote2}} {options} --key near.key --peer {far} \
         --warmup 0s --time {seconds}s --json > out.json 2> notes & bench=$!; {meanwhile} sent > then; \
         wait $bench && sent > end"
    );
    let words = ["emulate", "s.toml", "--far", &far_line, "--", "sh", "-c", &near_line];
    dir.ropewalk(&words).good();
    let read = |name: &str| fs::read_to_string(dir.file(name)).expect("the figures");
    let [then, end] = ["then", "end"].map(|name| read(name).trim().parse::<u64>().expect(name));
    (serde_json::from_str(&read("out.json")).expect("JSON"), end - then, read("notes"))
}

/// Bytes delivered on each path.
fn delivered(document: &Value) -> Vec<u64> {
    let paths = document["paths"].as_array().expect("a list");
    paths.iter().map(|path| path["delivered_bytes"].as_u64().expect("a number")).collect()
}

#[test]
fn a_path_carries_again_after_its_address_or_its_interface_was_away() {
    if !can_emulate() {
        return;
    }
    let own = "address=$(ip -4 -o address show dev {device1} | tr -s ' ' | cut -d ' ' -f 4);";
    let away = [
        format!(
            "{own} sleep 1; ip address del $address dev {{device1}}; sleep 2; ip address add $address dev {{device1}};"
        ),
        "sleep 1; ip link set {device1} down; sleep 2; ip link set {device1} up;".to_owned(),
    ];
    for (number, meanwhile) in away.iter().enumerate() {
        let name = format!("paths-return-{number}");
        let (document, since, notes) = bench(&name, "--from {device1},{device2}", 8, "", meanwhile);
        assert!(since > USED, "{meanwhile}: {since} B since it is back: {document}");
        assert!(delivered(&document).iter().all(|bytes| *bytes > 0), "{meanwhile}: {document}");
        // The notes name the link and say when it was away and why.
        let after = notes.split_once("down: the interface is down");
        let (_, rest) = after.unwrap_or_else(|| panic!("no note of the failure: {notes}"));
        assert!(rest.contains(" up\n"), "{notes}");
    }
}

#[test]
fn without_from_every_interface_is_a_path() {
    if !can_emulate() {
        return;
    }
    let (document, ..) = bench("paths-automatic", "", 3, "", "");
    let delivered = delivered(&document);
    assert_eq!(delivered.len(), 2, "{document}");
    assert!(delivered.iter().all(|bytes| *bytes > 0), "{document}");
}

#[test]
fn an_interface_that_comes_later_is_a_path_more() {
    if !can_emulate() {
        return;
    }
    let before = "ip link set {device2} down;";
    let (document, ..) = bench("paths-later", "", 6, before, "sleep 2; ip link set {device2} up;");
    let paths = document["paths"].as_array().expect("a list");
    let second = |path: &&Value| path["remote"].as_str().is_some_and(|to| to.contains("10.77.2.2"));
    let bytes: Vec<_> = paths.iter().filter(second).map(|p| p["delivered_bytes"].clone()).collect();
    assert!(bytes.iter().any(|bytes| bytes.as_u64() > Some(0)), "{document}");
}

#[test]
fn a_file_is_whole_though_an_interface_went_down_and_up_twice() {
    if !can_emulate() {
        return;
    }
    let dir = TestDir::new("paths-file");
    fs::write(dir.file("s.toml"), LINKS).expect("a file");
    let data: Vec<u8> = (0..5_000_000_u32)
        .flat_map(|i| (i.wrapping_mul(i) >> 7).to_le_bytes())
        .take(5_000_000)
        .collect();
    fs::write(dir.file("data"), &data).expect("a file");
    let (near, far) = (dir.key("near.key"), dir.key("far.key"));
    let own = env!("CARGO_BIN_EXE_ropewalk");
    let far_line = format!(
        "exec {own} recv inbox --listen {{local1}} --listen {{local2}} --key far.key --allow {near}"
    );
    let near_line = format!(
        "{own} send data --to {{remote1}},{{remote2}} --key near.key --peer {far} & sending=$!; \
         for i in 1 2; do sleep 0.6; ip link set {{device1}} down; sleep 0.6; ip link set {{device1}} up; done; \
         wait $sending"
    );
    let words = ["emulate", "s.toml", "--far", &far_line, "--", "sh", "-c", &near_line];
    dir.ropewalk(&words).good();
    assert!(fs::read(dir.file("inbox/data")).expect("it came") == data);
}
