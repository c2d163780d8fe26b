//! `ropewalk validate` and `bench compare`: transports over emulated links, for real where the machine permits it.

use std::fs;

use crate::support::{TestDir, can_emulate};

const LINKS: &str = "[transfer]\nreceive_buffer = '256 KiB'\n\
    [[path]]\nname = 'dsl'\nrate = '8 Mbit/s'\nrtt = '20 ms'\nqueue = '30 packets'\n\
    [[path]]\nname = 'lte'\nrate = '4 Mbit/s'\nrtt = '30 ms'\nqueue = '30 packets'\n";

#[test]
fn wrong_input_is_refused_before_anything_runs() {
    let dir = TestDir::new("validate-refusals");
    for (words, hints) in [
        (&["--transport", "tcp-vegas"][..], &["tcp-reno, tcp-cubic, tcp-bbr, mptcp"][..]),
        (&["no-such-scenario"], &["no-such-scenario"]),
        (&["--time", "1 s", "--warmup", "2 s"], &["is not shorter than"]),
        (&["--runs", "0"], &["--runs"]),
        (&["--report", "no/such/folder.html"], &["no/such/folder.html"]),
    ] {
        // Without root, the machine is refused first.
        if words[0] == "--report" && !can_emulate() {
            continue;
        }
        dir.ropewalk(&[&["validate"], words].concat()).refused(hints);
    }
    assert_eq!(dir.left_behind(), [""; 0]);
}

#[test]
fn the_kernel_and_the_simulator_carry_the_same_over_the_same_links() {
    if !can_emulate() {
        return;
    }
    let dir = TestDir::new("validate");
    fs::write(dir.file("two.toml"), LINKS).expect("a scenario");
    let words = ["validate", "two.toml", "--transport", "tcp-cubic,mptcp", "--time", "4 s"];
    let words = [&words[..], &["--warmup", "2 s", "--report", "both.html", "--json"]].concat();
    let done = dir.ropewalk(&words);
    // A kernel without Multipath TCP, a machine without `ss`, or one that stands still.
    if done.status() != 0 {
        let known = ["no Multipath TCP", "no program `ss`", "emulator was late"];
        assert!(known.iter().any(|part| done.stderr().contains(part)), "{}", done.stderr());
        eprintln!("skipped: {}", done.stderr());
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
            assert!((0.5..1.0).contains(&(goodput / rate)), "{side}: {cell}");
            let paths = cell[side][0]["paths"].as_array().expect("paths");
            let share: f64 =
                paths.iter().map(|path| path["share"].as_f64().expect("a share")).sum();
            assert!((share - 1.0).abs() < 1e-6, "{side}: {cell}");
        }
        let rtt = cell["verdict"]["rtt_s"]["kernel"].as_f64().expect("samples");
        assert!((0.019..0.2).contains(&rtt), "{cell}");
    }
    let page = fs::read_to_string(dir.file("both.html")).expect("a report");
    assert!(page.contains("mptcp: smoothed RTT"));
}

#[test]
fn all_transports_that_are_there_run_over_the_same_links() {
    if !can_emulate() {
        return;
    }
    let dir = TestDir::new("bench-compare");
    fs::write(dir.file("two.toml"), LINKS).expect("a scenario");
    let words = ["bench", "compare", "--emulate", "two.toml", "--time", "3 s", "--warmup", "1 s"];
    let done = dir.ropewalk(&[&words[..], &["--report", "all.html", "--json"]].concat());
    if done.status() != 0 {
        assert!(done.stderr().contains("emulator was late"), "{}", done.stderr());
        eprintln!("skipped: {}", done.stderr());
        return;
    }
    let document = done.json("ropewalk.bench-compare/1");
    let rows = document["rows"].as_array().expect("rows");
    assert!(rows.len() >= 4, "{document}");
    for row in rows {
        let several = row["paths"].as_array().expect("paths").len() == 2;
        let rate = if several { 12e6 } else { 8e6 };
        let goodput = row["goodput_bps"].as_f64().expect("bit/s");
        assert!((0.3..1.0).contains(&(goodput / rate)), "{row}");
        let simulated = row["simulated_bps"].as_f64();
        assert_eq!(
            simulated.is_some(),
            row["transport"].as_str().expect("a name").starts_with("Ropewalk")
        );
    }
    assert!(
        fs::read_to_string(dir.file("all.html")).expect("a report").contains("Goodput, median")
    );
}
