//! Reproduces all statements of `papers/` once.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use ropewalk_lab::reproduce::{
    ITEMS, Options, Reproduction, Row, Seeds, Style, Value, Verdict, find, reproduce,
    unused_reasons,
};

fn everything() -> &'static Reproduction {
    static DONE: OnceLock<Reproduction> = OnceLock::new();
    DONE.get_or_init(|| reproduce(&ITEMS, &Options::default()).unwrap())
}

fn rows_of(paper: &str, item: &str) -> impl Iterator<Item = &'static Row> {
    let (paper, item) = (paper.to_owned(), item.to_owned());
    everything().rows.iter().filter(move |row| row.paper == paper && row.item == item)
}

fn number(value: Option<&Value>) -> f64 {
    match value {
        Some(Value::Number(number)) => *number,
        other => panic!("{other:?} is no number"),
    }
}

#[test]
fn no_simulation_fails_and_every_item_has_rows() {
    let done = everything();
    assert_eq!(done.failures, Vec::<String>::new());
    for item in ITEMS {
        assert!(rows_of(item.paper, item.name).count() > 0, "{}", item.full_name());
    }
}

#[test]
fn tables_i_and_ii_come_out_row_by_row() {
    for (item, printed) in [("table1", 7), ("table2", 5)] {
        let rows: Vec<&Row> = rows_of("sarwar2013", item).collect();
        let table: Vec<&&Row> = rows.iter().filter(|r| r.quantity == "slot.table").collect();
        assert_eq!(table.len(), printed, "{item}");
        for row in &rows {
            assert_eq!(row.verdict, Verdict::Agrees, "{row:?}");
            assert_eq!(row.paper_value, row.model_value);
        }
    }
}

#[test]
fn twelve_blocking_times_agree_with_the_closed_form_to_a_millisecond() {
    let rows = rows_of("slides2013", "tmaxblock").filter(|r| r.quantity == "blocking_time_max_s");
    let rows: Vec<&Row> = rows.collect();
    assert_eq!(rows.len(), 12);
    for row in rows {
        let off = number(row.model_value.as_ref()) - number(row.paper_value.as_ref());
        assert!(off.abs() < 1e-3 && row.verdict == Verdict::Agrees, "{row:?}");
        assert!(number(row.simulated_value.as_ref()) > 0.0);
    }
}

#[test]
fn least_buffers_are_exact() {
    let kuhn = rows_of("kuhn2014", "receive-buffer-min");
    let rows: Vec<&Row> = kuhn.chain(rows_of("sarwar2013", "receive-buffer-min")).collect();
    assert_eq!(rows.len(), 5);
    for row in rows {
        let (model, paper) = (number(row.model_value.as_ref()), number(row.paper_value.as_ref()));
        assert!((model - paper).abs() < 1e-6 && row.verdict == Verdict::Agrees, "{row:?}");
    }
}

#[test]
fn one_path_delivers_what_ns_2_delivers_at_every_loss() {
    let rows: Vec<&Row> = rows_of("wallace2014", "ns2").collect();
    assert_eq!(rows.len(), 7);
    for row in rows {
        let (ours, peer) = (number(row.simulated_value.as_ref()), number(row.peer_value.as_ref()));
        assert!((ours / peer - 1.0).abs() < 0.05 && !row.verdict.is_off(), "{row:?}");
    }
}

#[test]
fn static_windows_gain_where_the_paper_says_and_lose_where_it_says() {
    for (item, case, least, most) in [
        ("figure-10", "best, our aim", 0.08, 0.20),
        ("figure-12", "d_2 = 20 ms", 0.0, 0.08),
        ("figure-12", "d_2 at least 80 ms, p_1 below 1e-3", -0.08, 0.0),
    ] {
        let row = rows_of("wallace2014", item).find(|row| row.case == case).unwrap();
        let gain = number(row.simulated_value.as_ref());
        // Ten pairs of runs may leave a claim undecided, but refute none of these.
        assert!(least < gain && gain < most && !row.verdict.is_off(), "{row:?}");
    }
}

#[test]
fn random_claims_have_seeds_and_an_interval_that_their_verdict_goes_by() {
    let rows = everything().rows.iter().filter(|row| row.paper == "wallace2014");
    let drawn: Vec<&Row> = rows.filter(|row| row.seeds.is_some()).collect();
    assert!(drawn.len() > 30, "{}", drawn.len());
    for row in drawn {
        let [low, high] = row.interval.expect("an interval");
        let mean = row.difference.unwrap_or_else(|| number(row.simulated_value.as_ref()));
        assert!(low <= mean && mean <= high && low < high, "{row:?}");
        assert!(matches!(row.seeds, Some(Seeds::Drawn(10..))), "{row:?}");
    }
}

#[test]
fn sixty_cells_over_wifi_come_in_the_printed_order_and_tcp_door_and_nopr_are_at_the_ends() {
    for item in ["scenario-1", "scenario-2", "scenario-3", "scenario-4"] {
        let rows: Vec<&Row> = rows_of("alheid2016", item).collect();
        assert_eq!(rows.len(), 45, "{item}");
        for row in rows {
            assert!(row.model_value.is_some() && row.simulated_value.is_some(), "{row:?}");
        }
    }
    let mean = |quantity: &str| {
        let mut rows = rows_of("alheid2016", "rank-correlation");
        let row = rows.find(|r| r.quantity == quantity && r.case.starts_with("mean")).unwrap();
        number(row.model_value.as_ref())
    };
    assert!(mean("rank_correlation.ratio") >= 0.9 && mean("rank_correlation.max_bytes") >= 0.7);
    for (case, sign) in [("TCP-DOOR reorders most", 1.0), ("NoPR stores least", -1.0)] {
        let row = rows_of("alheid2016", "claims").find(|row| row.case == case).unwrap();
        // Simultaneous intervals of 48 comparisons are wide, but the estimate nearest to zero has
        // the expected sign.
        assert!(row.difference.unwrap() * sign > 0.0 && !row.verdict.is_off(), "{row:?}");
    }
}

#[test]
fn cells_over_wifi_have_ten_seeds_an_interval_and_the_settings_of_their_runs() {
    let rows = everything().rows.iter().filter(|row| row.paper == "alheid2016");
    let (mut met, mut off, mut cells) = (0, 0, 0);
    for row in rows {
        assert_eq!(row.seeds, Some(Seeds::Drawn(10)), "{row:?}");
        let [low, high] = row.interval.expect("an interval");
        // Peaks of ten runs may be equal.
        assert!(low <= high, "{row:?}");
        assert!(row.readings.iter().any(|set| set == "path.wlan1.wifi.end=sender"), "{row:?}");
        if matches!(row.paper_value, Some(Value::Number(_))) {
            let burst = row.readings.iter().any(|set| set.starts_with("tcp.ack_burst_loss_max"));
            assert_eq!(burst, row.case.starts_with("F-RTO"), "{row:?}");
            cells += 1;
            met += usize::from(row.verdict == Verdict::Agrees);
            off += usize::from(row.verdict == Verdict::Differs);
        }
    }
    assert_eq!((cells, met, off), (120, 50, 23));
}

#[test]
fn recoveries_collapse_where_acknowledgements_wait_for_nothing() {
    let rows: Vec<&Row> = rows_of("alheid2016", "collapse").collect();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let (gated, free) =
            (number(row.model_value.as_ref()), number(row.simulated_value.as_ref()));
        assert!(gated > 0.3 && free < 0.05, "{row:?}");
    }
    for row in rows_of("alheid2016", "rack-tlp") {
        // A tie with the best of the others, at worst; and nine tenths of both links, as it says.
        let both = row.case.ends_with("of both links");
        let off = row.difference.unwrap();
        assert!(off > if both { -0.1 } else { -0.01 }, "{row:?}");
    }
}

#[test]
fn daps_as_published_does_not_gain_where_the_paper_claims_42_percent() {
    let case = rows_of("kuhn2014", "throughput").find(|row| row.unit == "ratio").unwrap();
    assert!(case.seeds.is_some() && case.difference_points.unwrap() < 0.0, "{case:?}");
    assert_eq!(case.verdict, Verdict::ClaimFails);
}

#[test]
fn random_items_have_ten_seeds_and_an_interval_and_others_say_that_nothing_is_random() {
    let papers = ["slides2013", "kuhn2014", "sarwar2013", "ns2"];
    let rows = everything().rows.iter().filter(|row| papers.contains(&row.paper.as_str()));
    let mut drawn = 0;
    for row in rows.filter(|row| row.seeds.is_some()) {
        match row.seeds {
            Some(Seeds::Deterministic) => assert_eq!(row.interval, None, "{row:?}"),
            Some(Seeds::Drawn(count)) => {
                assert_eq!(count, 10, "{row:?}");
                let series = matches!(row.simulated_value, Some(Value::Text(_)));
                assert!(row.interval.is_some() || series, "{row:?}");
                drawn += 1;
            }
            None => {}
        }
    }
    assert!(drawn > 50, "{drawn}");
}

#[test]
fn ns_2_is_compared_in_steady_state_over_the_whole_run_and_by_waits() {
    for (item, cases) in [("sarwar", 10), ("kuhn", 24), ("blocking", 12)] {
        let rows: Vec<&Row> = rows_of("ns2", item).collect();
        assert_eq!(rows.len(), 4 * cases, "{item}");
        let quantities: BTreeSet<&str> = rows.iter().map(|row| row.quantity.as_str()).collect();
        assert_eq!(quantities.len(), 4, "{item}");
    }
}

#[test]
fn a_row_is_named_by_item_case_and_quantity_alone() {
    let mut seen = BTreeSet::new();
    for row in &everything().rows {
        let name = (&row.paper, &row.item, &row.case, &row.quantity);
        assert!(seen.insert(name), "{name:?} stands twice: a reason could not tell them apart");
    }
}

#[test]
fn whatever_differs_has_a_reason() {
    let unexplained: Vec<String> = everything()
        .unexplained()
        .map(|row| format!("{}/{} {} {}", row.paper, row.item, row.case, row.quantity))
        .collect();
    assert!(unexplained.is_empty(), "no reason for:\n{}", unexplained.join("\n"));
}

#[test]
fn no_reason_outlives_its_difference() {
    assert_eq!(unused_reasons(everything()).unwrap(), []);
}

#[test]
fn every_figure_has_finite_points_and_an_id_of_its_own() {
    let figures = &everything().figures;
    let ids: BTreeSet<&str> = figures.iter().map(|f| f.id.as_str()).collect();
    assert_eq!(ids.len(), figures.len());
    for item in ITEMS.iter().filter(|i| !["period", "long-run"].contains(&i.name)) {
        assert!(figures.iter().any(|f| f.paper == item.paper), "{}", item.full_name());
    }
    for figure in figures {
        assert!(!figure.series.is_empty(), "{}", figure.id);
        for series in &figure.series {
            assert_eq!(series.x.len(), series.y.len(), "{}", figure.id);
            let finite = |y: &Option<f64>| y.is_some_and(f64::is_finite);
            assert!(!series.y.is_empty() && series.y.iter().all(finite), "{}", figure.id);
            let words = series.x.iter().all(|x| matches!(x, Value::Text(_)));
            assert_eq!(series.style == Style::Bars, words, "{}", figure.id);
        }
    }
}

#[test]
fn two_reproductions_are_the_same_to_the_byte_on_one_thread_and_on_several() {
    let items = find("kuhn2014/throughput");
    let text = |threads| {
        let options = Options { threads, ..Options::default() };
        serde_json::to_string(&reproduce(&items, &options).unwrap().rows).unwrap()
    };
    assert_eq!(text(1), text(3));
}
