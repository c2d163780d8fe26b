use ropewalk_scenario::{Capacity, Loss};

use super::extreme::trace;
use super::*;

fn draws(count: u64) -> Vec<Scenario> {
    Draw::first(Family::Extreme, DrawSet::Training, &PATHS, count)
        .iter()
        .map(Draw::scenario)
        .collect()
}

/// FNV-1a, to pin a text.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn the_sets_are_frozen() {
    let pinned = |set: DrawSet| {
        let text = |draw: &Draw| {
            let scenario = draw.scenario();
            let capacities = scenario.paths.iter().map(|path| &path.up.capacity);
            let traces = capacities.filter_map(|c| match c {
                Capacity::Trace(trace) => Some(trace.to_text()),
                Capacity::Rate(_) => None,
            });
            extreme::text(draw.seed(), &extreme::paths(draw, draw.seed()))
                + &traces.collect::<String>()
        };
        fingerprint(
            &Draw::first(Family::Extreme, set, &PATHS, 10).iter().map(text).collect::<String>(),
        )
    };
    assert_eq!(
        [pinned(DrawSet::Training), pinned(DrawSet::Test)],
        [7451698797166412255, 4507775505790959129],
        "all published figures of drawn scenarios must be made again"
    );
    let pinned = |set: DrawSet| {
        let text = |draw: &Draw| access::text(draw.seed(), draw.paths);
        fingerprint(
            &Draw::first(Family::Access, set, &PATHS, 10).iter().map(text).collect::<String>(),
        )
    };
    assert_eq!(
        [pinned(DrawSet::Training), pinned(DrawSet::Test)],
        [14037322347224175151, 10015016776290148965],
        "all published figures of access links must be made again"
    );
}

#[test]
fn the_sets_have_nothing_in_common() {
    for family in [Family::Access, Family::Extreme] {
        let of = |set| Draw { family, set, paths: 2, number: 0 }.scenario();
        let (training, test) = (of(DrawSet::Training), of(DrawSet::Test));
        assert_ne!(training.paths, test.paths);
        assert_ne!(training.transfer.seed, test.transfer.seed);
    }
}

#[test]
fn every_kind_of_trouble_is_drawn_in_the_extreme_family() {
    let all = draws(60);
    let paths = || all.iter().flat_map(|scenario| &scenario.paths);
    let has = |what: &str, is: bool| assert!(is, "{what}");
    has("a trace", paths().any(|p| matches!(p.up.capacity, Capacity::Trace(_))));
    has("handovers", paths().any(|p| p.up.steps.len() >= 4 && p.outages.len() >= 4));
    has("bursts", paths().any(|p| matches!(p.up.loss, Loss::GilbertElliott { .. })));
    has("rounds", paths().any(|p| matches!(p.up.loss, Loss::Round { .. })));
    has("single losses", paths().any(|p| matches!(p.up.loss, Loss::Bernoulli { .. })));
    has("lost acknowledgements", paths().any(|p| p.down.loss != Loss::None));
    let thin = |p: &ropewalk_scenario::Path| {
        p.down.capacity.mean_rate().as_bps() * 10 < p.up.capacity.mean_rate().as_bps()
    };
    has("a thin return path", paths().any(thin));
    has("a shared bottleneck", all.iter().any(|s| !s.links.is_empty()));
    has("cross traffic", all.iter().any(|s| !s.cross.is_empty()));
    has("order that does not matter", all.iter().any(|s| s.transfer.unordered));
    let buffers = || all.iter().map(|s| s.transfer.receive_buffer);
    has(
        "small and large buffers",
        buffers().any(|b| b < 40_000) && buffers().any(|b| b > 8_000_000),
    );
}

#[test]
fn a_cellular_trace_has_the_mean_that_was_drawn_and_varies() {
    for number in 0..20 {
        let mean = 10e6;
        let trace = trace::cellular("x", mean, Seed::root(number).rng());
        let got = trace.mean_rate().as_bps() as f64;
        assert!((got / mean - 1.0).abs() < 0.05, "{number}: {got}");
        let mut per_second = [0.0_f64; 60];
        for at in &trace.opportunities {
            per_second[(at.as_nanos() as usize / 1_000_000 / 1000).min(59)] += 1504.0 * 8.0;
        }
        let (least, most) =
            per_second.iter().fold((f64::MAX, 0.0_f64), |(l, m), r| (l.min(*r), m.max(*r)));
        assert!(most > 1.3 * mean && least < 0.7 * mean, "{number}: {least} to {most}");
    }
}
