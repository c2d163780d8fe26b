//! The benefit of message lifetimes in the ready scenario `late-is-lost`. The figures of `docs/data/lifetimes.csv`.

use ropewalk_lab::compare::{Estimate, estimate};
use ropewalk_lab::result::FlowResult;
use ropewalk_lab::{RunOptions, run};
use ropewalk_scenario::Scenario;

const TEXT: &str = include_str!("../../../scenarios/late-is-lost.toml");

/// Seeds that were not used when the scenario was designed.
const SEEDS: std::ops::Range<u64> = 101..121;

/// 100 ms, and the maximum forward delay: propagation, 20 packets of 1500 B in the queue, and the packet itself.
const LATEST_S: f64 = 0.100 + 0.025 + 21.0 * 0.0012;

/// Delivery of the messages: `lifetime`, `retransmissions`, or neither, and their order.
#[derive(Clone, Copy)]
struct Way {
    limit: &'static str,
    unordered: bool,
}

const fn way(limit: &'static str, unordered: bool) -> Way {
    Way { limit, unordered }
}

const RELIABLE: [Way; 2] = [way("", false), way("", true)];
const TIMED: [Way; 2] = [way("lifetime = '100 ms'", false), way("lifetime = '100 ms'", true)];
const ONCE: [Way; 2] = [way("retransmissions = 0", false), way("retransmissions = 0", true)];

/// The results of `control` and of `file` for each seed.
fn play(way: Way, loss: &str) -> Vec<[FlowResult; 2]> {
    let unordered = format!("unordered = {}", way.unordered);
    let text = TEXT
        .replace("lifetime  = \"100 ms\"", way.limit)
        .replace("unordered = true", &unordered)
        .replace("loss  = 0.05", loss);
    assert!(text.contains(way.limit) && text.contains(&unordered), "{text}");
    let one = |seed| {
        let mut scenario = Scenario::parse(&text, "late.toml").unwrap_or_else(|e| panic!("{e}"));
        scenario.transfer.seed = seed;
        let flows = run(&scenario, &RunOptions::default()).expect("it runs").result.flows;
        <[FlowResult; 2]>::try_from(flows).expect("two sources")
    };
    SEEDS.map(one).collect()
}

fn mean(runs: &[[FlowResult; 2]], of: impl Fn(&[FlowResult; 2]) -> f64) -> Estimate {
    estimate(&runs.iter().map(of).collect::<Vec<_>>()).expect("runs")
}

fn show(name: &str, runs: &[[FlowResult; 2]]) {
    let figure = |scale: f64, of: fn(&[FlowResult; 2]) -> Option<f64>| {
        let Estimate { mean, half_width } = mean(runs, |run| scale * of(run).expect("known"));
        format!("{mean:.2} ± {:.2}", half_width.unwrap_or_default())
    };
    println!(
        "{name}: given up {} %, p50 {}, p99 {}, max {} ms; file {} Mbit/s, gap {} ms",
        figure(100.0, |[control, _]| control.lost),
        figure(1e3, |[control, _]| control.delay_p50_s),
        figure(1e3, |[control, _]| control.delay_p99_s),
        figure(1e3, |[control, _]| control.delay_max_s),
        figure(1e-6, |[_, file]| Some(file.goodput_bps)),
        figure(1e3, |[_, file]| file.longest_gap_s),
    );
}

#[test]
fn nothing_is_later_than_its_lifetime_and_a_forward_delay_and_no_other_source_stalls() {
    let [reliable, timed] = [RELIABLE[1], TIMED[1]].map(|way| play(way, "loss  = 0.05"));
    for [control, file] in &timed {
        assert!(control.delay_max_s.is_some_and(|max| max <= LATEST_S), "{control:?}");
        assert!(control.lost.is_some_and(|lost| lost < 0.02), "{control:?}");
        assert!(file.abandoned == 0 && file.longest_gap_s.is_some_and(|gap| gap < 1.0), "{file:?}");
    }
    let late = reliable.iter().filter(|[control, _]| control.delay_max_s > Some(LATEST_S));
    assert!(late.count() > reliable.len() / 2, "a lifetime is worth nothing here");
    let goodput = |runs: &[_]| mean(runs, |[_, file]| file.goodput_bps).mean;
    assert!(goodput(&timed) > 0.98 * goodput(&reliable));
}

/// Ten outages of 300 ms, in addition to the losses.
fn outages() -> String {
    let one =
        |at: u64| format!("{{ from = \"{} ms\", to = \"{} ms\" }}", at * 1000, at * 1000 + 300);
    let all: Vec<_> = (6..66).step_by(6).map(one).collect();
    format!("loss  = 0.05\noutages = [{}]", all.join(", "))
}

#[test]
fn after_an_outage_nothing_late_is_delivered() {
    let changes = outages();
    let [reliable, timed] = [RELIABLE[1], TIMED[1]].map(|way| play(way, &changes));
    for ([before, _], [control, file]) in reliable.iter().zip(&timed) {
        assert!(before.delay_max_s.is_some_and(|max| max > 0.3), "{before:?}");
        assert!(control.delay_max_s.is_some_and(|max| max <= LATEST_S), "{control:?}");
        assert!(file.abandoned == 0, "{file:?}");
    }
}

/// Run it with `--nocapture` for the table. With ordered delivery, a message may also wait for a lost
/// FORWARD-TSN.
#[test]
fn in_order_a_lifetime_shortens_the_wait_for_what_was_lost() {
    let longest = |runs: &[_]| mean(runs, |[control, _]| control.delay_max_s.expect("some")).mean;
    for (title, changes) in [("5 %", "loss  = 0.05".to_owned()), ("outages", outages())] {
        let mut ordered = Vec::new();
        for (name, ways) in [("reliable", RELIABLE), ("100 ms", TIMED), ("once", ONCE)] {
            let [in_order, other] = ways.map(|way| play(way, &changes));
            show(&format!("{title}, {name}, in order"), &in_order);
            show(&format!("{title}, {name}, unordered"), &other);
            ordered.push(longest(&in_order));
        }
        assert!(ordered[1] < ordered[0], "{ordered:?}");
    }
}
