//! `advise` as a command.

use std::fs;

use crate::support::TestDir;

const UNEQUAL: &str = "# mine\n[transfer]\nduration = '3 s' # short\nwarmup = '1 s'\n\n\
    [[path]]\nname = 'dsl'\nrate = '5 Mbit/s'\nrtt = '20 ms'\n\n\
    [[path]]\nname = 'lte'\nrate = '2 Mbit/s'\nrtt = '60 ms'\n";

fn dir(name: &str) -> TestDir {
    let dir = TestDir::new(name);
    fs::write(dir.file("links.toml"), UNEQUAL).expect("a scenario");
    dir
}

#[test]
fn the_advice_is_on_one_screen_and_what_is_written_runs_with_it() {
    let dir = dir("advise");
    let words = ["advise", "links.toml", "--seeds", "2", "--write", "advised.toml"];
    let shown = dir.ropewalk(&words).good();
    for part in
        ["use       dsl + lte", "why ", "how sure", "as it is", "pays off", "flow-control bound"]
    {
        assert!(shown.stdout().contains(part), "no {part} in {}", shown.stdout());
    }
    assert!(shown.stdout().lines().count() <= 30, "{}", shown.stdout());
    assert!(shown.stdout().lines().all(|line| line.chars().count() <= 100), "{}", shown.stdout());
    let text = fs::read_to_string(dir.file("advised.toml")).expect("what was written");
    for part in ["# mine", "# short", "congestion = ", "receive_buffer = "] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let document = dir.ropewalk(&["run", "advised.toml", "--json"]).good().json("ropewalk.run/1");
    assert!(document["goodput_bps"].as_f64().expect("bit/s") > 6e6, "{document}");
    assert_eq!(document["paths"].as_array().expect("paths").len(), 2);
}

#[test]
fn the_document_has_the_choices_the_links_and_what_changes_with_them() {
    let dir = dir("advise-json");
    let words = ["advise", "links.toml", "--goal", "calls", "--seeds", "2", "--json"];
    let document = dir.ropewalk(&words).good().json("ropewalk.advise/1");
    assert_eq!(document["goal"], "calls");
    for choice in ["advice", "current", "best_single"] {
        assert!(document[choice]["goodput_bps"]["mean"].as_f64().expect("bit/s") > 0.0);
    }
    let names: Vec<&str> = document["paths"]
        .as_array()
        .expect("links")
        .iter()
        .map(|link| link["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["dsl", "lte"]);
    assert!(!document["sensitivity"].as_array().expect("cases").is_empty());
}

#[test]
fn what_has_no_advice_is_refused_before_anything_runs() {
    let dir = dir("advise-refused");
    let cases: [(&[&str], &[&str]); 4] = [
        (&["--goal", "speed"], &["`speed` is no goal", "throughput, latency or calls"]),
        (&["--set", "transfer.protocol=sctp"], &["one path at a time", "cmt-sctp"]),
        (&["--seeds", "1"], &["1", "2..=1000"]),
        (&["--write", "no/such/place.toml"], &["no directory `no/such`"]),
    ];
    for (words, hints) in cases {
        dir.ropewalk(&[&["advise", "links.toml"], words].concat()).refused(hints);
    }
    assert_eq!(dir.left_behind(), ["links.toml"]);
}
