//! Every command on every ready example.

use std::process::Command;

use crate::support::{Done, TestDir, scenario_names};
use ropewalk_scenario::{Named, SchedulerName};
use serde_json::Value;

/// Two seconds, or less for the scenario with a thousand associations.
fn short(name: &str) -> [&'static str; 2] {
    let duration = match name {
        "thousand.toml" => "transfer.duration=1.2 s",
        _ => "transfer.duration=2 s",
    };
    ["--set", duration]
}

/// Arguments of a command on an example, with a short duration and no warm-up.
fn words<'a>(command: &'a str, path: &'a str, name: &str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec![command, path, "--set", "transfer.warmup=0 s"];
    words.extend(short(name));
    words.extend(more);
    words
}

fn number(document: &Value, key: &str) -> f64 {
    document[key].as_f64().unwrap_or_else(|| panic!("`{key}` is {}", document[key]))
}

#[test]
fn run_shows_every_example_as_a_table_and_as_one_document() {
    let dir = TestDir::new("run");
    for name in scenario_names() {
        let path = format!("scenarios/{name}");
        let table = dir.ropewalk(&words("run", &path, &name, &[])).good();
        for part in ["goodput", "receive buffer", "blocking time", "delay", "throughput"] {
            assert!(table.stdout().contains(part), "{name}: no {part} in {}", table.stdout());
        }
        assert!(table.stderr().contains("packets per second"), "{}", table.stderr());
        let done = dir.ropewalk(&words("run", &path, &name, &["--json"])).good();
        let document = done.json("ropewalk.run/1");
        assert!(number(&document, "goodput_bps") > 0.0, "{name}");
        assert!(!document["paths"].as_array().expect("paths").is_empty(), "{name}");
        assert_eq!(done.stderr(), "", "{name}: silence beside JSON");
    }
    assert_eq!(dir.left_behind(), [""; 0]);
}

#[test]
fn predict_answers_for_every_example() {
    let dir = TestDir::new("predict");
    for name in scenario_names() {
        let path = format!("scenarios/{name}");
        dir.ropewalk(&["predict", &path]).good();
        let document =
            dir.ropewalk(&["predict", &path, "--json"]).good().json("ropewalk.predict/1");
        if name == "thousand.toml" || name == "l4s.toml" {
            assert!(document["flow_control_bound_bps"].is_null(), "its paths share a link");
            assert!(document["notes"][0].as_str().expect("a reason").contains("shared"));
        } else if name == "two-wifi.toml" {
            assert!(document["flow_control_bound_bps"].is_null(), "stations share the air");
            assert!(!document["notes"].as_array().expect("reasons").is_empty());
        } else {
            for key in ["receive_buffer_min_bytes", "flow_control_bound_bps"] {
                assert!(number(&document, key) > 0.0, "{name}: {key}");
            }
            // Without another path, nothing waits.
            let waits = number(&document, "blocking_time_max_s") > 0.0;
            let paths = document["paths"].as_array().expect("paths");
            assert_eq!(waits, paths.len() > 1, "{name}");
            let bundle = number(&document["bundle"]["markov_bps"], "independent");
            // In the models, a window that just exceeds rate times delay fills the path (Eq 8): up to one
            // packet per round trip and path more than the flow-control bound permits.
            let slack: f64 = paths.iter().map(|path| 12_000.0 / number(path, "round_trip_s")).sum();
            let limit = number(&document, "flow_control_bound_bps");
            assert!(bundle <= limit + slack, "{name}: {bundle} of {limit}");
            for path in paths {
                for key in ["renewal_bps", "pftk_bps", "mathis_bps"] {
                    assert!(number(path, key) > 0.0, "{name}: {key}");
                }
                assert!(path["validity"]["markov"].is_string(), "{name}");
            }
        }
    }
}

#[test]
fn predict_shows_the_formulas_as_printed_and_says_so() {
    let dir = TestDir::new("predict-paper");
    let file = "scenarios/sarwar.toml";
    for (option, word, formulas) in [
        (None, "closed forms, nothing", "on-the-wire"),
        (Some("--paper"), "as the papers print them", "as-printed"),
    ] {
        let words: Vec<&str> = ["predict", file].into_iter().chain(option).collect();
        assert!(dir.ropewalk(&words).good().stdout().contains(word), "{option:?}");
        let words = [words.as_slice(), &["--json"]].concat();
        let document = dir.ropewalk(&words).good().json("ropewalk.predict/1");
        assert_eq!(document["formulas"], formulas);
    }
}

#[test]
fn predict_runs_the_slot_model_and_shows_its_tables() {
    let dir = TestDir::new("predict-slot");
    let slot = ["predict", "scenarios/sarwar.toml", "--model", "slot"];
    let text = dir.ropewalk(&slot).good();
    for word in ["round-robin     1.360", "delay-aware     2.000", "Mbit/s", "21-25", "3-17"] {
        assert!(text.stdout().contains(word), "{word}: {}", text.stdout());
    }
    let wrong = ["--set", "path.slow.delay_error=0.6", "--planned", "per-rate", "--json"];
    let document = dir.ropewalk(&[&slot[..], &wrong].concat()).good().json("ropewalk.slot/1");
    let bps = number(&document["schedulers"][1], "goodput_bps");
    assert!((bps / 1.6e6 - 1.0).abs() < 0.01, "{bps}");
    dir.ropewalk(&[&slot[..], &["--paper"]].concat()).refused(&["--paper", "closed forms"]);
    let closed = ["predict", "scenarios/sarwar.toml", "--planned", "per-rate"];
    dir.ropewalk(&closed).refused(&["--planned", "--model slot"]);
    let shared = ["predict", "scenarios/thousand.toml", "--model", "slot"];
    dir.ropewalk(&shared).refused(&["shared links", "without --model slot"]);
}

#[test]
fn explain_gives_reasons_in_every_example() {
    let dir = TestDir::new("explain");
    for name in scenario_names().into_iter().filter(|name| name != "thousand.toml") {
        let path = format!("scenarios/{name}");
        let text = dir.ropewalk(&words("explain", &path, &name, &["--chunk", "30"])).good();
        assert!(text.stdout().contains("chunk 30"), "{name}: {}", text.stdout());
        let json = words("explain", &path, &name, &["--json", "--first", "4"]);
        let document = dir.ropewalk(&json).good().json("ropewalk.explain/1");
        assert_eq!(document["decisions"].as_array().expect("decisions").len(), 4, "{name}");
        assert!(document["omitted"].as_u64().expect("a count") > 0, "{name}");
        assert!(document["summary"][0]["count"].as_u64().expect("a count") > 0, "{name}");
    }
}

#[test]
fn explain_answers_about_a_time_and_a_path() {
    let dir = TestDir::new("explain-at");
    let words = [
        "explain",
        "scenarios/wifi-lte.toml",
        "--set",
        "transfer.duration=4 s",
        "--set",
        "transfer.warmup=0 s",
        "--at",
        "1.5 s",
        "--path",
        "lte",
        "--json",
    ];
    let document = dir.ropewalk(&words).good().json("ropewalk.explain/1");
    let decisions = document["decisions"].as_array().expect("decisions");
    assert_eq!(decisions.len(), 20, "the default of --first");
    for decision in decisions {
        assert!(number(decision, "at_s") >= 1.5 && decision["sent_on"][0] == "lte", "{decision}");
    }
}

#[test]
fn compare_runs_two_schedulers_on_every_example() {
    let dir = TestDir::new("compare");
    for name in scenario_names() {
        let path = format!("scenarios/{name}");
        let json = words("compare", &path, &name, &["--schedulers", "min-rtt,daps", "--json"]);
        let document = dir.ropewalk(&json).good().json("ropewalk.compare/1");
        let labels: Vec<&Value> =
            document["runs"].as_array().expect("runs").iter().map(|run| &run["label"]).collect();
        assert_eq!(labels, ["min-rtt", "daps"], "{name}");
        for run in document["runs"].as_array().expect("runs") {
            assert_eq!(run["result"]["schema"], "ropewalk.run/1", "{name}");
            assert_eq!(run["result"]["scheduler"], run["label"], "{name}");
        }
    }
}

#[test]
fn compare_tries_every_scheduler_unless_told_otherwise() {
    let dir = TestDir::new("compare-all");
    let words = words("compare", "scenarios/two-dsl.toml", "", &[]);
    let table = dir.ropewalk(&words).good();
    for name in SchedulerName::ALL.iter().map(|name| name.as_str()) {
        let found = table.stdout().lines().any(|line| line.split(' ').next() == Some(name));
        assert!(found, "no {name} in {}", table.stdout());
    }
}

#[test]
fn compare_pairs_the_runs_of_each_seed() {
    let dir = TestDir::new("compare-paired");
    let short = ["--set", "transfer.duration=3 s", "--set", "transfer.warmup=1 s"];
    let of = |more: &[&'static str]| {
        let all: Vec<&'static str> = short.iter().chain(more).copied().collect();
        words("compare", "scenarios/lossy-wifi.toml", "", &all)
    };
    let few = ["--schedulers", "round-robin,lay,min-rtt", "--seeds", "3"];
    let paired = of(&[&few[..], &["--paired=lay", "--json", "--report", "c.html"]].concat());
    let document = dir.ropewalk(&paired).good().json("ropewalk.compare/1");
    let pairs = document["paired"].as_array().expect("a list");
    assert_eq!(pairs.len(), 2);
    let goodput = |label: &str| -> Vec<f64> {
        let runs = document["runs"].as_array().expect("a list").iter();
        let own = runs.filter(|run| run["label"] == label);
        own.map(|run| run["result"]["goodput_bps"].as_f64().expect("a number")).collect()
    };
    for pair in pairs {
        assert_eq!((&pair["reference"], &pair["pairs"]), (&Value::from("lay"), &Value::from(3)));
        let own = goodput(pair["label"].as_str().expect("text"));
        let ratios = own.iter().zip(goodput("lay")).map(|(own, lay)| own / lay);
        let mean = ratios.product::<f64>().powf(1.0 / 3.0) - 1.0;
        let told = pair["goodput"]["mean"].as_f64().expect("a number");
        assert!((told - mean).abs() < 1e-9, "{pair}");
        assert!(pair["goodput"]["low"].as_f64() < Some(told), "{pair}");
    }
    let page = std::fs::read_to_string(dir.file("c.html")).expect("a report");
    assert!(page.contains("\"reference\":\"lay\""));
    let text = of(&[&few[..], &["--paired"]].concat());
    let done = dir.ropewalk(&text).good();
    assert!(done.stdout().contains("beside round-robin"), "{}", done.stdout());
    let alone = of(&["--schedulers", "lay,min-rtt", "--paired"]);
    dir.ropewalk(&alone).refused(&["--paired", "--seeds"]);
    let unknown = of(&[&few[..], &["--paired=daps"]].concat());
    dir.ropewalk(&unknown).refused(&["`daps`", "round-robin; lay; min-rtt"]);
}

#[test]
fn compare_says_what_was_run_and_beats_the_best_path_and_explains_its_headings() {
    let dir = TestDir::new("compare-text");
    let more = ["--schedulers", "daps,backup", "--vary", "path.lte.rtt=60ms,200ms"];
    let words = words("compare", "scenarios/wifi-lte.toml", "", &more);
    let text = dir.ropewalk(&words).good();
    let text = text.stdout();
    assert!(text.starts_with("wifi-lte: cmt-sctp, seed 1; 2 s with a warm-up of 0 s\n"), "{text}");
    let words: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for start in ["scheduler path.lte.rtt", "daps 60ms", "backup 200ms", "spurious ", "blocked "] {
        assert!(words.iter().any(|line| line.starts_with(start)), "no {start:?} in {text}");
    }
    assert!(text.contains("best path"), "{text}");
    let wide = text.lines().filter(|line| line.chars().count() > 100);
    assert_eq!(wide.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn run_says_which_path_the_receive_buffer_leaves_idle_and_what_helps() {
    let dir = TestDir::new("idle");
    let text = "[transfer]\nduration = '5 s'\n\
        [[path]]\nname = 'dsl'\nrate = '50 Mbit/s'\nrtt = '20 ms'\n\
        [[path]]\nname = 'lte'\nrate = '10 Mbit/s'\nrtt = '100 ms'\n";
    std::fs::write(dir.file("idle.toml"), text).expect("a scenario");
    let shown = dir.ropewalk(&["run", "idle.toml"]).good();
    let note = shown.stderr().split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["hint: lte carries", "131.1 kB is too small", "the simulation", "instead of"] {
        assert!(note.contains(part), "no {part} in {note}");
    }
    assert!(!shown.stdout().contains("hint:"));
    let ample = ["run", "idle.toml", "--set", "transfer.receive_buffer=1MB"];
    assert!(!dir.ropewalk(&ample).good().stderr().contains("hint:"));
    assert!(dir.ropewalk(&["run", "idle.toml", "--quiet"]).good().stderr().is_empty());
}

#[test]
fn quiet_leaves_nothing_beside_the_data() {
    let dir = TestDir::new("quiet");
    let words = words("run", "scenarios/wifi-lte.toml", "", &["--quiet", "--report", "r.html"]);
    let done = dir.ropewalk(&words).good();
    assert_eq!(done.stderr(), "");
    assert!(done.stdout().contains("goodput"));
    assert_eq!(dir.left_behind(), ["r.html"]);
}

#[test]
fn explain_counts_reasons_only_when_asked_and_of_the_association_asked_about() {
    let dir = TestDir::new("explain-summary");
    let three = ["--first", "2", "--set", "world.associations=3", "--association", "2"];
    let asked = [&three[..], &["--summary"]].concat();
    for (more, summed) in [(&three[..], false), (&asked, true)] {
        let words = words("explain", "scenarios/wifi-lte.toml", "", more);
        let done = dir.ropewalk(&words).good();
        let text = done.stdout();
        assert!(text.contains("association 2 of 0 to 2"), "{text}");
        assert_eq!(text.contains("All decisions of the run"), summed, "{text}");
    }
}

#[test]
fn compare_varies_any_key_and_repeats_with_seeds() {
    let dir = TestDir::new("compare-vary");
    let more = ["--vary", "transfer.receive_buffer=30kB,\"60 kB\"", "--seeds", "3", "--json"];
    let words = words("compare", "scenarios/lossy-wifi.toml", "", &more);
    let document = dir.ropewalk(&words).good().json("ropewalk.compare/1");
    let runs = document["runs"].as_array().expect("runs");
    let seeds: Vec<&str> = runs.iter().filter_map(|run| run["seed"].as_str()).collect();
    assert_eq!(seeds, ["1", "2", "3", "1", "2", "3"]);
    let summary = document["summary"].as_array().expect("a summary");
    let labels: Vec<&Value> = summary.iter().map(|one| &one["label"]).collect();
    assert_eq!(labels, ["transfer.receive_buffer 30kB", "transfer.receive_buffer 60 kB"]);
    for one in summary {
        assert!(number(&one["goodput_bps"], "half_width") > 0.0, "{one}");
    }
}

#[test]
fn compare_takes_several_scenarios_and_keys_and_names_each_in_columns_of_its_own() {
    let dir = TestDir::new("compare-several");
    let short = ["--set", "transfer.duration=2 s", "--set", "transfer.warmup=0 s"];
    let files = ["compare", "wifi-lte", "scenarios/two-dsl.toml"];
    let csv = [&files[..], &short, &["--schedulers", "lay,blest", "--csv"]].concat();
    let done = dir.ropewalk(&csv).good();
    let rows: Vec<&str> = done.stdout().lines().collect();
    assert!(
        rows[0].starts_with("scenario,scheduler,goodput_bps,share_of_bound,gain,"),
        "{}",
        rows[0]
    );
    let names: Vec<String> =
        rows[1..].iter().map(|row| row.split(',').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(names, ["wifi-lte lay", "wifi-lte blest", "two-dsl lay", "two-dsl blest"]);
    assert_eq!(done.stderr(), "");

    let grid = ["--vary", "path.lte.rtt=40ms,80ms", "--vary", "path.lte.loss=0.0,0.01", "--json"];
    let words = [&["compare", "wifi-lte"][..], &short, &grid].concat();
    let document = dir.ropewalk(&words).good().json("ropewalk.compare/1");
    let runs = document["runs"].as_array().expect("runs");
    let labels: Vec<&str> = runs.iter().filter_map(|run| run["label"].as_str()).collect();
    assert_eq!(labels.len(), 4);
    assert_eq!(labels[1], "path.lte.rtt 40ms, path.lte.loss 0.01");

    let unlike = ["compare", "wifi-lte", "two-dsl", "--out", "s.csv"];
    dir.ropewalk(&unlike).refused(&["--out s.csv", "different paths"]);
    let twice = ["compare", "wifi-lte", "wifi-lte"];
    dir.ropewalk(&twice).refused(&["`wifi-lte`", "once"]);
    let same = ["compare", "wifi-lte", "--vary", "path.lte.rtt=4ms", "--vary", "path.lte.rtt=5ms"];
    dir.ropewalk(&same).refused(&["the key is given twice"]);
    dir.ropewalk(&["compare", "wifi-lte", "--sort", "speed"]).refused(&["--sort speed", "gain"]);
}

#[test]
fn compare_sorts_schedulers_by_goodput_or_by_the_figure_asked_for() {
    let dir = TestDir::new("compare-sorted");
    let of = |more: &[&'static str]| {
        let words = words("compare", "scenarios/wifi-lte.toml", "", more);
        let done = dir.ropewalk(&words).good();
        let column =
            if more.contains(&"app_delay_p99_s") { "app_delay_p99_s" } else { "goodput_bps" };
        let mut lines = done.stdout().lines();
        let place = lines.next().and_then(|head| head.split(',').position(|name| name == column));
        let place = place.unwrap_or_else(|| panic!("no {column}"));
        let value = |line: &str| line.split(',').nth(place)?.parse::<f64>().ok();
        lines.map(|line| value(line).expect("a number")).collect::<Vec<f64>>()
    };
    let names = ["--schedulers", "round-robin,lay,blest", "--csv"];
    let by_goodput = of(&names);
    assert!(by_goodput.is_sorted_by(|a, b| a >= b), "{by_goodput:?}");
    let by_delay = of(&[&names[..], &["--sort", "app_delay_p99_s"]].concat());
    assert!(by_delay.is_sorted(), "{by_delay:?}");
}

#[test]
fn run_repeats_with_seeds_and_every_figure_has_an_interval() {
    let dir = TestDir::new("run-seeds");
    let of = |more: &[&'static str]| words("run", "scenarios/lossy-wifi.toml", "", more);
    let done = dir.ropewalk(&of(&["--seeds", "3", "--json", "--report", "r.html"])).good();
    let document = done.json("ropewalk.runs/1");
    assert_eq!(document["succeeded"], 3);
    let runs = document["runs"].as_array().expect("runs");
    let goodputs = runs.iter().map(|run| number(&run["result"], "goodput_bps"));
    let mean = goodputs.sum::<f64>() / 3.0;
    let goodput = &document["figures"]["goodput_bps"];
    assert!((number(goodput, "mean") / mean - 1.0).abs() < 1e-12, "{goodput}");
    assert!(number(goodput, "half_width") > 0.0);
    assert!(number(&document["paths"][0]["utilisation"], "mean") > 0.0);
    assert_eq!(dir.left_behind(), ["r.html"]);
    let text = dir.ropewalk(&of(&["--seeds", "2"])).good();
    assert!(text.stdout().contains("seeds 1 to 2;"), "{}", text.stdout());
    assert!(text.stdout().contains("±  half of a 95 % confidence interval"), "{}", text.stdout());
}

#[test]
fn tables_are_printed_as_csv_in_base_units_or_as_markdown() {
    let dir = TestDir::new("formats");
    let short = ["--set", "transfer.duration=2 s", "--set", "transfer.warmup=0 s"];
    let file = "scenarios/wifi-lte.toml";
    let cases: [(&[&str], &str, &str); 5] = [
        (&["run", file], "path,figure,unit,value", "| path |"),
        (
            &["compare", file, "--schedulers", "lay,blest"],
            "scheduler,goodput_bps,",
            "| scheduler |",
        ),
        (&["predict", file], "path,rate_bps,round_trip_s,", "| path |"),
        (&["tune", file], "path,rate_bps,", "| path |"),
        (
            &["sweep", file, "--vary", "path.lte.rtt=40ms,80ms"],
            "point,path.lte.rtt_s,",
            "| path.lte.rtt, ms |",
        ),
    ];
    for (command, heading, markdown) in cases {
        for (format, expected) in [("--csv", heading), ("--markdown", markdown)] {
            let words = [command, &short, &[format, "--quiet"]].concat();
            let done = dir.ropewalk(&words).good();
            assert!(done.stdout().contains(expected), "{command:?} {format}: {}", done.stdout());
        }
        let columns = |line: &str| line.split(',').count();
        let csv = dir.ropewalk(&[command, &short, &["--csv", "--quiet"]].concat()).good();
        let mut lines = csv.stdout().lines();
        let head = columns(lines.next().expect("a heading"));
        assert!(
            lines.clone().count() > 0 && lines.all(|line| columns(line) == head),
            "{command:?}"
        );
    }
    let both = ["run", file, "--csv", "--json"];
    dir.ropewalk(&both).refused(&["--csv", "--json"]);
    let rows = dir.ropewalk(&["reproduce", "sarwar2013/table1", "--csv"]).good();
    assert!(
        rows.stdout().starts_with("paper,item,case,quantity,unit,paper_value,"),
        "{}",
        rows.stdout()
    );
}

#[test]
fn figures_that_seem_to_contradict_the_scenario_are_explained_below_them() {
    let dir = TestDir::new("run-notes");
    let done = dir.ropewalk(&["run", "scenarios/wifi-lte.toml", "--quiet"]).good();
    let text = done.stdout().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("note: lte shows an RTT of") && text.contains("a faster path"), "{text}");
    assert!(text.contains("the bound assumes that every acknowledgement returns"), "{text}");
}

#[test]
fn the_verdict_of_a_row_with_a_model_and_a_simulation_says_whose_it_is() {
    let dir = TestDir::new("reproduce-model");
    let done = dir.ropewalk(&["reproduce", "slides2013/tmaxblock"]).good();
    assert_eq!(done.stdout().matches("agrees, model").count(), 12, "{}", done.stdout());
    assert!(done.stdout().contains("the verdict compares the model"), "{}", done.stdout());
}

#[test]
fn colours_are_shown_on_request_only_and_no_color_is_respected() {
    let dir = TestDir::new("colours");
    let escape = '\u{1b}';
    let run = ["run", "scenarios/wifi-lte.toml", "--set", "transfer.duration=2 s"];
    let run = [&run[..], &["--set", "transfer.warmup=0 s"]].concat();
    let plain = dir.ropewalk(&run).good();
    assert!(!plain.stdout().contains(escape) && !plain.stderr().contains(escape));
    let always = dir.ropewalk(&[&run[..], &["--color", "always"]].concat()).good();
    assert!(always.stdout().contains(escape), "{}", always.stdout());
    for words in
        [&["run", "none.toml", "--color=always"][..], &["run", "--nothing", "--color=always"]]
    {
        let done = dir.ropewalk(words);
        assert_eq!(done.status(), 2);
        assert!(done.stderr().contains(escape), "{}", done.stderr());
    }
    let never = dir.ropewalk(&["run", "none.toml", "--color", "never"]);
    assert!(never.stderr().starts_with("error: "), "{}", never.stderr());
    dir.ropewalk(&["run", "none.toml", "--color", "sometimes"]).refused(&["sometimes"]);
}

#[test]
fn the_number_of_threads_never_shows() {
    let dir = TestDir::new("threads");
    let of = |threads| {
        let more = ["--json", "--threads", threads, "--seeds", "2"];
        let words = words("compare", "scenarios/lossy-wifi.toml", "", &more);
        without_timing(&dir.ropewalk(&words).good().json("ropewalk.compare/1"))
    };
    assert_eq!(of("1"), of("3"));
}

/// The document without the fields that depend on the speed of the machine.
fn without_timing(document: &Value) -> String {
    let mut document = document.clone();
    let clear = |engine: &mut Value| {
        for key in ["cpu_s", "packets_per_cpu_s"] {
            assert!(engine.as_object_mut().expect("figures").remove(key).is_some());
        }
    };
    if document["engine"].is_object() {
        clear(&mut document["engine"]);
    }
    for run in document["runs"].as_array_mut().into_iter().flatten() {
        clear(&mut run["result"]["engine"]);
    }
    document.to_string()
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let dir = TestDir::new("seed");
    for name in ["lossy-wifi.toml", "lte-satellite.toml", "trace-driven.toml"] {
        let path = format!("scenarios/{name}");
        let of = |seed| {
            let words = words("run", &path, name, &["--json", "--seed", seed]);
            without_timing(&dir.ropewalk(&words).good().json("ropewalk.run/1"))
        };
        assert_eq!(of("7"), of("7"), "{name}");
        assert_ne!(of("7"), of("8"), "{name}");
    }
    let largest = u64::MAX.to_string();
    let words = words("run", "scenarios/sarwar.toml", "", &["--json", "--seed", &largest]);
    assert_eq!(dir.ropewalk(&words).good().json("ropewalk.run/1")["seed"], largest);
}

#[test]
fn overrides_and_the_scheduler_reach_the_run() {
    let dir = TestDir::new("overrides");
    let more = ["--json", "--set", "path.wifi.rate=3 Mbit/s", "--scheduler", "backup"];
    let words = words("run", "scenarios/wifi-lte.toml", "", &more);
    let document = dir.ropewalk(&words).good().json("ropewalk.run/1");
    assert_eq!(document["scheduler"], "backup");
    assert!(number(&document["paths"][0], "throughput_bps") > 1.5e6, "{document}");
}

#[test]
fn reproduce_prints_rows_of_a_table_that_needs_no_simulation() {
    let dir = TestDir::new("reproduce");
    let done = dir.ropewalk(&["reproduce", "sarwar2013/table1", "--json"]).good();
    let rows: Value = serde_json::from_str(done.stdout()).expect("one JSON document");
    let rows = rows.as_array().expect("a list of rows");
    assert!(!rows.is_empty() && rows.iter().all(|row| row["verdict"] == "agrees"), "{rows:?}");
    dir.ropewalk(&["reproduce", "nobody2099"]).refused(&["nobody2099", "--list"]);
    let several = ["more than one", "kuhn2014/occupancy-small", "kuhn2014/occupancy-large"];
    dir.ropewalk(&["reproduce", "kuhn2014/occ"]).refused(&several);
    let text = dir.ropewalk(&["reproduce", "sarwar/table1"]).good();
    assert!(text.stdout().starts_with("sarwar2013: "), "{}", text.stdout());
}

#[test]
fn completions_offer_the_names_of_schedulers() {
    let dir = TestDir::new("completions");
    for shell in ["bash", "zsh", "fish"] {
        let script = dir.ropewalk(&["completions", shell]).good();
        assert!(script.stdout().contains("reception-index"), "{shell}");
    }
}

#[test]
fn schema_new_and_completions_print_what_they_promise() {
    let dir = TestDir::new("rest");
    let schema = dir.ropewalk(&["schema"]).good();
    let schema: Value = serde_json::from_str(schema.stdout()).expect("JSON");
    assert!(schema["properties"]["path"].is_object());
    dir.ropewalk(&["new", "mine.toml"]).good();
    std::fs::create_dir(dir.file("it's here")).expect("a directory");
    let made = dir.ropewalk(&["new", "it's here"]).good();
    let next = "next: ropewalk run 'it'\\''s here/scenario.toml'";
    assert!(made.stderr().contains(next), "{}", made.stderr());
    dir.ropewalk(&["run", "mine.toml", "--set", "transfer.duration=2 s"]).good();
    assert!(dir.ropewalk(&["new"]).good().stdout().contains("[[path]]"));
    assert!(dir.ropewalk(&["completions", "bash"]).good().stdout().contains("complete"));
}

#[test]
fn ready_scenarios_are_found_by_name_and_a_scenario_may_come_from_standard_input() {
    let dir = TestDir::new("ready");
    std::fs::remove_dir_all(dir.file("scenarios")).expect("the examples");
    let listed = dir.ropewalk(&["new", "--list"]).good();
    assert!(listed.stdout().lines().all(|line| line.len() <= 100), "{}", listed.stdout());
    for name in scenario_names() {
        let name = name.trim_end_matches(".toml");
        assert!(listed.stdout().contains(name), "{name}: {}", listed.stdout());
    }
    let short = ["--set", "transfer.duration=21 s", "--json"];
    let ready = dir.ropewalk(&[&["run", "trace-driven"], &short[..]].concat()).good();
    dir.ropewalk(&["new", "wifi.toml", "--from", "wifi-lte"]).good();
    let named = dir.ropewalk(&[&["run", "wifi-lte"], &short[..]].concat()).good();
    let copied = dir.ropewalk(&[&["run", "wifi.toml"], &short[..]].concat()).good();
    let text = std::fs::File::open(dir.file("wifi.toml")).expect("the copy");
    let piped = Command::new(env!("CARGO_BIN_EXE_ropewalk"))
        .args([&["run", "-"], &short[..]].concat())
        .stdin(text)
        .output()
        .expect("the command");
    let piped: Value = serde_json::from_slice(&piped.stdout).expect("JSON");
    let goodput = |done: &Done| done.json("ropewalk.run/1")["goodput_bps"].clone();
    assert_eq!(goodput(&named), goodput(&copied));
    assert_eq!(goodput(&named), piped["goodput_bps"]);
    assert!(goodput(&ready).as_f64() > Some(1e6));
    dir.ropewalk(&["new", "drive.toml", "--from", "trace-driven"]).good();
    let written = dir.ropewalk(&[&["run", "drive.toml"], &short[..]].concat()).good();
    assert_eq!(goodput(&written), goodput(&ready));
    let vary = ["--vary", "transfer.scheduler=lay,daps"];
    dir.ropewalk(&[&["sweep", "wifi-lte"], &vary[..], &short[..2]].concat()).good();
    let checked = dir.ropewalk(&["tune", "wifi-lte", "--write", "tuned.toml"]).good();
    assert!(checked.stderr().contains("tuned.toml"), "{}", checked.stderr());
    let few = ["--set", "transfer.warmup=0 s", "--set", "transfer.duration=2 s", "--json"];
    let two = ["tournament", "--schedulers", "lay,daps"];
    let ranked = dir.ropewalk(&[&two[..], &few[..]].concat()).good();
    assert!(ranked.stdout().contains("trace-driven"), "{}", ranked.stdout());
    dir.ropewalk(&["run", "wifi-lt"]).refused(&["did you mean the ready scenario `wifi-lte`?"]);
    dir.ropewalk(&["new", "--from", "wifi"]).refused(&["--from", "wifi-lte"]);
}
