//! `ropewalk tournament`: two short scenarios, three schedulers, both protocols.

use std::fs;

use crate::support::TestDir;
use serde_json::Value;

const FILES: [&str; 2] = ["scenarios/wifi-lte.toml", "scenarios/kuhn-2-200-45.toml"];

/// Arguments of a small tournament, and further ones.
fn words(more: &[&'static str]) -> Vec<&'static str> {
    let cut = ["--set", "transfer.duration=4 s", "--set", "transfer.warmup=1 s"];
    let few = ["--schedulers", "min-rtt,lay,round-robin"];
    let words = std::iter::once("tournament").chain(FILES).chain(few).chain(cut);
    words.chain(more.iter().copied()).collect()
}

fn list<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    let items = value.as_array().expect("a list").iter();
    items.map(|item| item[key].as_str().expect("text")).collect()
}

#[test]
fn a_tournament_plays_every_match_and_ranks_all_on_any_number_of_threads() {
    let dir = TestDir::new("tournament-json");
    let of =
        |more: &[&'static str]| dir.ropewalk(&words(more)).good().json("ropewalk.tournament/1");
    let played = of(&["--json", "--seeds", "2", "--threads", "1"]);
    assert_eq!(played, of(&["--json", "--seeds", "2", "--threads", "3"]));
    let matches = &played["matches"];
    assert_eq!(
        list(matches, "scenario"),
        ["wifi-lte", "wifi-lte", "kuhn-2-200-45", "kuhn-2-200-45"]
    );
    assert_eq!(list(matches, "protocol"), ["cmt-sctp", "mptcp", "cmt-sctp", "mptcp"]);
    // The papers' presets do not include TCP, so TCP's default preset replaces them.
    assert_eq!(list(matches, "preset"), ["rfc9260", "rfc8684", "paper-2013", "rfc8684"]);
    for one in matches.as_array().expect("a list") {
        assert_eq!(list(&one["entries"], "scheduler"), ["min-rtt", "lay", "round-robin"]);
        for entry in one["entries"].as_array().expect("a list") {
            assert_eq!(list(&entry["runs"], "seed"), ["1", "2"], "{entry}");
            assert!(entry["share_of_bound"]["mean"].as_f64().expect("plain paths") > 0.1);
            assert!(entry["runs"][0]["best_path"]["goodput_bps"].as_f64().expect("paths") > 5e5);
        }
    }
    assert_eq!(played["rankings"].as_array().expect("a list").len(), 3);
    for ranking in played["rankings"].as_array().expect("a list") {
        assert_eq!(ranking["ranks"].as_array().expect("a list").len(), 3);
    }
}

#[test]
fn a_tournament_shows_a_table_for_each_match_then_the_ranking() {
    let dir = TestDir::new("tournament-text");
    let done = dir.ropewalk(&words(&["--protocols", "mptcp"])).good();
    let text = done.stdout();
    let parts = [
        "wifi-lte: mptcp, preset rfc8684, 1 seed\n",
        "kuhn-2-200-45: mptcp, preset rfc8684, 1 seed\n",
        "Ranking over 2 matches\n",
        "of best path",
    ];
    let places = parts.map(|part| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}")));
    assert!(places[..3].is_sorted(), "{text}");
    assert!(!text.contains("cmt-sctp"), "{text}");
    let rows = text.lines().filter(|line| line.starts_with("lay ")).count();
    assert!(rows >= 3, "a row in each table: {text}");
}

#[test]
fn drawn_scenarios_are_the_same_ones_for_everybody_and_ranked_by_their_paths() {
    let dir = TestDir::new("tournament-draws");
    let words = [
        "tournament",
        "--draws",
        "2",
        "--family",
        "extreme",
        "--paths",
        "2,3",
        "--seeds",
        "1",
        "--schedulers",
        "lay",
        "--protocols",
        "cmt-sctp",
        "--set",
        "transfer.duration=3 s",
        "--set",
        "transfer.warmup=1 s",
    ];
    let json: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
    let played = dir.ropewalk(&json).good().json("ropewalk.tournament/1");
    let matches = &played["matches"];
    let names = ["2-0", "2-1", "3-0", "3-1"].map(|name| format!("extreme-test-{name}"));
    assert_eq!(list(matches, "scenario"), names);
    let entrants = list(&matches[0]["entries"], "scheduler");
    assert_eq!(entrants, ["lay"]);
    let training: Vec<&str> = json.iter().copied().chain(["--training"]).collect();
    let other = dir.ropewalk(&training).good().json("ropewalk.tournament/1");
    assert_eq!(list(&other["matches"], "scenario")[0], "extreme-training-2-0");
    assert_ne!(matches[0]["entries"][0]["runs"], other["matches"][0]["entries"][0]["runs"]);
    let done = dir.ropewalk(&words).good();
    let text = done.stdout();
    for part in ["Ranking over 4 matches\n", "over 3 paths", "keeps"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(!text.contains("test-2-0: "), "no table for each match: {text}");
    // Each scenario can be run separately, with the same result as in the tournament.
    let saved: Vec<&str> = json.iter().copied().chain(["--save", "drawn"]).collect();
    dir.ropewalk(&saved).good();
    for (i, name) in names.iter().enumerate() {
        let file = format!("drawn/{name}.toml");
        let alone = dir.ropewalk(&["run", &file, "--json"]).good().json("ropewalk.run/1");
        assert_eq!(
            alone["goodput_bps"], matches[i]["entries"][0]["runs"][0]["goodput_bps"],
            "{name}"
        );
    }
}

/// A short tournament on one drawn bundle of two access links.
const ACCESS: [&str; 14] = [
    "tournament",
    "--draws",
    "1",
    "--training",
    "--paths",
    "2",
    "--schedulers",
    "lay",
    "--seeds",
    "2",
    "--set",
    "transfer.duration=3 s",
    "--set",
    "transfer.warmup=1 s",
];

#[test]
fn a_bundle_of_access_links_is_compared_with_each_link_alone_under_five_settings() {
    let dir = TestDir::new("tournament-access");
    let json: Vec<&str> = ACCESS.iter().copied().chain(["--family", "access", "--json"]).collect();
    let played = dir.ropewalk(&json).good().json("ropewalk.tournament/1");
    let matches = &played["matches"];
    let settings = ["live", "live-unordered", "rfc9260", "rfc8684", "linux-6"];
    assert_eq!(list(matches, "setting"), settings);
    assert_eq!(list(matches, "preset"), ["live", "live", "rfc9260", "rfc8684", "linux-6"]);
    assert_eq!(list(matches, "scenario"), ["access-training-2-0"; 5]);
    let mean = |value: &Value| value["mean"].as_f64().unwrap_or_else(|| panic!("{value}"));
    for one in matches.as_array().expect("a list") {
        let entry = &one["entries"][0];
        let alone = entry["single_paths"].as_array().expect("a list");
        let alone: Vec<f64> = alone.iter().map(|path| mean(&path["goodput_bps"])).collect();
        let (goodput, best) = (mean(&entry["goodput_bps"]), alone[0].max(alone[1]));
        assert!((mean(&entry["gain"]) - goodput / best).abs() < 1e-9, "{entry}");
        let of_sum = entry["of_sum"].as_f64().expect("a number");
        assert!((of_sum - goodput / (alone[0] + alone[1])).abs() < 1e-9, "{entry}");
        let returned = mean(&entry["return_share"]);
        assert!(returned > 0.001 && returned < 0.2, "{returned}");
        // A packet that began before the interval counts in full.
        assert!(mean(&entry["return_utilisation"]) <= 1.01, "{entry}");
        assert!(one["bandwidth_delay_bytes"].as_u64().expect("a number") > 1000);
    }
    let rankings = played["rankings"].as_array().expect("a list");
    assert_eq!(rankings.len(), 6, "one over all matches, and one for each setting");
    for (ranking, matches) in rankings.iter().zip([5, 1, 1, 1, 1, 1]) {
        let rank = &ranking["ranks"][0];
        let (aggregation, kept) = (&rank["aggregation"], &rank["aggregation"]["kept"]);
        assert_eq!((&kept["of"], &kept["count"]), (&Value::from(matches), &rank["kept"]));
        assert_eq!(aggregation["worst"], rank["worst_gain"]);
        assert!(
            rank["return_traffic"]["share_max"].as_f64()
                >= rank["return_traffic"]["share"].as_f64()
        );
    }
}

#[test]
fn the_comparison_with_single_paths_is_shown_in_every_form() {
    let dir = TestDir::new("tournament-access-text");
    let of = |more: &[&'static str]| {
        let words: Vec<&str> = ACCESS.iter().chain(more).copied().collect();
        dir.ropewalk(&words).good().stdout().to_owned()
    };
    let text = of(&["--settings", "live-unordered,linux-6"]);
    for part in ["Compared with the paths alone\n", "live-unordered", "Return paths\n", "ample"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let csv = of(&["--settings", "live", "--csv"]);
    let (matches, compared) = csv.split_once("\n\n").expect("two tables");
    assert!(matches.starts_with("scenario,setting,protocol,preset,scheduler,"), "{csv}");
    assert!(matches.contains(",of_sum,return_share,return_utilisation\n"), "{csv}");
    assert!(compared.starts_with("under,scheduler,buffers,matches,kept,kept_share,"), "{csv}");
    assert!(compared.contains("\nall,lay,all,1,"), "{csv}");
    let markdown = of(&["--settings", "live", "--markdown"]);
    assert!(markdown.contains("| under | scheduler | buffers |"), "{markdown}");
}

#[test]
fn a_report_of_a_tournament_holds_its_document() {
    let dir = TestDir::new("tournament-report");
    let played = dir.ropewalk(&words(&["--json", "--report", "t.html"])).good();
    let page = fs::read_to_string(dir.file("t.html")).expect("a report");
    let (_, from) = page.split_once("id=\"report-data\">").expect("the element of the document");
    let (data, _) = from.split_once("</script>").expect("its end");
    let report: Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(report["kind"], "tournament");
    assert_eq!(report["title"], "Tournament of schedulers, 2 scenarios");
    assert_eq!(report["tournament"], played.json("ropewalk.tournament/1"));
}

#[test]
fn a_tournament_needs_protocols_with_several_paths_and_scenarios_that_are_there() {
    let dir = TestDir::new("tournament-refused");
    let file = "scenarios/two-dsl.toml";
    for (words, hints) in [
        (vec!["tournament", file, "--protocols", "tcp"], ["tcp", "mptcp"]),
        (vec!["tournament", file, "--protocols", "quic"], ["quic", "cmt-sctp"]),
        (vec!["tournament", file, "--settings", "liv"], ["liv", "live, live-unordered"]),
        (
            vec!["tournament", file, "--settings", "live", "--protocols", "mptcp"],
            ["--settings", "--protocols"],
        ),
        (vec!["tournament", "--draws", "1", "--family", "acces"], ["acces", "access, extreme"]),
        (vec!["tournament", "none.toml"], ["none.toml", "No such file"]),
        (vec!["tournament", file, "--draws", "3"], ["--draws", "SCENARIO"]),
        (vec!["tournament", "--draws", "3", "--paths", "0"], ["--paths", "1..=64"]),
        (vec!["tournament", file, "--report", "r.pdf"], ["r.pdf", ".html"]),
    ] {
        dir.ropewalk(&words).refused(&hints);
    }
}
