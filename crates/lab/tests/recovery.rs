//! Recovery if the network reorders: each rule compared with the plain sender, and RACK-TLP with all
//! of them.

use ropewalk_lab::{RunOptions, RunResult, run};
use ropewalk_scenario::Scenario;

const RULES: [&str; 6] = ["none", "d-sack", "eifel", "tcp-door", "f-rto", "rack-tlp"];

/// One path of 20 Mbit/s and 40 ms. `side` configures the direction to the receiver.
fn result(rule: &str, side: &str) -> RunResult {
    let text = format!(
        "[transfer]\nprotocol = 'tcp'\nduration = '30 s'\nreceive_buffer = '4 MB'\n\
         [tcp]\nrecovery = '{rule}'\n\
         [[path]]\nname = 'a'\nrate = '20 Mbit/s'\nrtt = '40 ms'\nqueue = '100 packets'\n{side}\n"
    );
    let scenario = Scenario::parse(&text, "recovery.toml").unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{rule}: {e}")).result
}

fn goodputs(side: &str) -> [f64; 6] {
    let found = RULES.map(|rule| result(rule, side));
    for (rule, r) in RULES.iter().zip(&found) {
        println!(
            "{side:60} {rule:9} {:6.2} again {} undone {} rto {} needless {}",
            r.goodput_bps / 1e6,
            r.paths[0].retransmitted_packets,
            r.paths[0].undone_reductions,
            r.paths[0].timeouts,
            r.spurious_retransmissions
        );
    }
    found.map(|r| r.goodput_bps)
}

#[test]
fn where_packets_fall_behind_by_less_than_a_round_trip_rules_help_and_rack_is_the_best() {
    for side in [
        "reorder = { probability = 0.01, delay = '5 ms' }",
        "reorder = { probability = 0.01, delay = '20 ms' }",
        "reorder = { probability = 0.05, delay = '10 ms' }",
    ] {
        let [none, d_sack, eifel, door, f_rto, rack] = goodputs(side);
        for (rule, found) in [("d-sack", d_sack), ("eifel", eifel), ("tcp-door", door)] {
            assert!(found > 2.0 * none, "{side}: {rule} {found} against {none}");
            assert!(rack >= 0.98 * found, "{side}: rack {rack} against {rule} {found}");
        }
        assert!(rack > 4.0 * none && rack > 4.0 * f_rto, "{side}: {rack}, {none}, {f_rto}");
    }
}

/// The retransmission then overtakes the original, so only a duplicate report reveals the error.
#[test]
fn where_they_fall_behind_by_more_duplicate_reports_help_and_rack_has_them_too() {
    for side in [
        "reorder = { probability = 0.01, delay = '60 ms' }",
        "reorder = { probability = 0.002, delay = '80 ms' }",
    ] {
        let [none, d_sack, eifel, door, f_rto, rack] = goodputs(side);
        assert!(d_sack > 1.5 * none, "{side}: {d_sack} against {none}");
        for (rule, found) in
            [("none", none), ("eifel", eifel), ("tcp-door", door), ("f-rto", f_rto)]
        {
            assert!(rack >= found, "{side}: rack {rack} against {rule} {found}");
        }
        assert!(rack >= 0.98 * d_sack, "{side}: rack {rack} against d-sack {d_sack}");
    }
}

#[test]
fn without_reordering_none_of_them_costs_anything() {
    for side in ["", "loss = 0.002"] {
        let found = goodputs(side);
        for (rule, goodput) in RULES.iter().zip(found) {
            assert!(goodput > 0.9 * found[0], "{side}: {rule} {goodput} against {}", found[0]);
        }
    }
}

/// Nothing is lost. From time to time, the delay to the receiver grows by 0.6 s, in order.
#[test]
fn where_the_timer_is_too_quick_f_rto_and_eifel_find_it_out() {
    let spike = |at: u32| {
        format!(
            "{{ at = '{at} s', delay_up = '620 ms' }}, {{ at = '{at}.7 s', delay_up = '20 ms' }}"
        )
    };
    let steps: Vec<_> = [5, 10, 15, 20, 25].map(spike).into();
    let side = format!("steps = [{}]", steps.join(", "));
    let [none, _, eifel, _, f_rto, _] = goodputs(&side);
    assert!(result("f-rto", &side).paths[0].undone_reductions > 0);
    for rule in ["eifel", "rack-tlp"] {
        // Data that had been declared lost counts as in flight again and is not sent another time.
        let found = result(rule, &side);
        assert!(found.paths[0].undone_reductions >= 5, "{rule}");
        let needless = [found, result("none", &side)].map(|r| r.spurious_retransmissions);
        assert!(needless[0] * 10 < needless[1], "{rule}: {needless:?}");
    }
    assert!(f_rto >= none && eifel >= none, "{none}, {f_rto}, {eifel}");
}
