use ropewalk_scenario::{Limit, LinkSide, Loss as ScenarioLoss, Outage, Path, Scenario};

use super::super::{Draw, DrawSet, Family, PATHS};
use super::kind::{Changes, KINDS, Kind};
use super::kind::{HANDOVER_GAP_S, HANDOVER_S, OUTAGE_S, QUEUE_S, RADIO_INTERVAL_S, RADIO_RATE};
use super::*;

fn draws(count: u64) -> Vec<(String, Scenario)> {
    let sets = [DrawSet::Training, DrawSet::Test];
    let draws = sets.into_iter().flat_map(|set| Draw::first(Family::Access, set, &PATHS, count));
    draws.map(|draw| (draw.to_string(), draw.scenario())).collect()
}

fn kind_of(path: &Path) -> &'static Kind {
    let name = path.name.trim_end_matches(|c: char| c.is_ascii_digit());
    KINDS.iter().find(|kind| kind.name == name).expect("the name begins with the kind")
}

fn rate(side: &LinkSide) -> f64 {
    side.capacity.mean_rate().as_bps() as f64
}

/// Rounding to whole bits, bytes and microseconds.
fn is_within(value: f64, [low, high]: Range) -> bool {
    (low * 0.999..=high * 1.001).contains(&value)
}

#[test]
fn every_drawn_link_is_in_the_ranges_of_its_kind() {
    for (draw, scenario) in draws(100) {
        for path in &scenario.paths {
            let (kind, [up, down]) = (kind_of(path), [&path.up, &path.down]);
            let place = format!("{draw}, {}", path.name);
            assert!(is_within(rate(up) / 1e6, kind.rate_mbps), "{place}: rate");
            let share = rate(down) / rate(up);
            assert!(is_within(share, kind.return_share), "{place}: return share {share}");
            assert!(is_within(share, [1.0 / 40.0, 1.0 / 5.0]), "{place}: return share {share}");
            let rtt = (up.delay + down.delay).as_secs_f64();
            assert!(is_within(rtt * 1e3, kind.rtt_ms), "{place}: rtt {rtt}");
            for side in [up, down] {
                let Limit::Bytes(queue) = side.queue.limit else { panic!("{place}: {side:?}") };
                let queue_s = queue as f64 * 8.0 / rate(side);
                assert!(is_within(queue_s, QUEUE_S), "{place}: a queue of {queue_s} s");
            }
            assert_eq!(down.loss, ScenarioLoss::None, "{place}");
        }
    }
}

#[test]
fn links_change_as_their_kind_does() {
    let length = |outage: &Outage| outage.to.since(outage.from).as_secs_f64();
    for (draw, scenario) in draws(100) {
        let (warmup, duration) = (scenario.transfer.warmup, scenario.transfer.duration);
        for path in &scenario.paths {
            let (kind, place) = (kind_of(path), format!("{draw}, {}", path.name));
            let steps = &path.up.steps;
            let gaps = steps.windows(2).map(|pair| pair[1].at.since(pair[0].at).as_secs_f64());
            let interval = match kind.changes {
                Changes::None => {
                    assert!(steps.is_empty() && path.outages.is_empty(), "{place}");
                    continue;
                }
                Changes::Radio => RADIO_INTERVAL_S,
                Changes::Orbit => [HANDOVER_S; 2],
            };
            let allowed = match kind.changes {
                Changes::Radio => RADIO_RATE,
                _ => kind::HANDOVER_RATE,
            };
            for (gap, step) in gaps.zip(steps) {
                assert!(
                    is_within(gap, [interval[0] - 0.002, interval[1] + 0.002]),
                    "{place}: {gap}"
                );
                let factor = step.rate.expect("a rate").as_bps() as f64 / rate(&path.up);
                assert!(is_within(factor, allowed), "{place}: {factor}");
                let rtt_ms = step.delay.map(|delay| 2e3 * delay.as_secs_f64());
                assert!(rtt_ms.is_none_or(|ms| is_within(ms, kind.rtt_ms)), "{place}: {rtt_ms:?}");
            }
            let mut outages = path.outages.iter().map(length).collect::<Vec<_>>();
            outages.retain(|s| kind.changes == Changes::Radio || *s > HANDOVER_GAP_S[1]);
            assert!(outages.len() <= 1, "{place}: {outages:?}");
            assert!(outages.iter().all(|s| is_within(*s, [OUTAGE_S[0] - 0.002, OUTAGE_S[1]])));
            let measured = |o: &Outage| {
                o.from.as_nanos() >= warmup.as_nanos() && o.to.as_nanos() < duration.as_nanos()
            };
            assert!(kind.changes == Changes::Orbit || path.outages.iter().all(measured), "{place}");
        }
    }
}

#[test]
fn every_kind_and_every_trouble_is_drawn() {
    let all = draws(30);
    let paths = || all.iter().flat_map(|(_, scenario)| &scenario.paths);
    for kind in &KINDS {
        let count = paths().filter(|path| kind_of(path).name == kind.name).count();
        let share = 100.0 * count as f64 / paths().count() as f64;
        assert!((share - kind.weight as f64).abs() < 6.0, "{}: {share} % of the links", kind.name);
    }
    let has = |what: &str, is: bool| assert!(is, "{what}");
    let single = |p: &Path| matches!(p.up.loss, ScenarioLoss::Bernoulli { .. });
    has("single losses", paths().any(single));
    has("bursts", paths().any(|p| matches!(p.up.loss, ScenarioLoss::GilbertElliott { .. })));
    has("jitter", paths().any(|p| p.up.jitter.is_some()));
    let outage = |p: &Path| p.name.starts_with("lte") && !p.outages.is_empty();
    has("an outage of a mobile link", paths().any(outage));
    let product = |p: &Path| rate(&p.up) * (p.up.delay + p.down.delay).as_secs_f64() / 8.0;
    let ample = |s: &Scenario| {
        let least = (AMPLE * s.paths.iter().map(product).sum::<f64>()).max(AMPLE_MIN);
        is_within(s.transfer.receive_buffer as f64, [least; 2])
    };
    let share = all.iter().filter(|(_, s)| ample(s)).count() as f64 / all.len() as f64;
    has("ample buffers, and others", (share - AMPLE_SHARE).abs() < 0.1);
    let small = |s: &Scenario| (256_000..400_000).contains(&s.transfer.receive_buffer);
    has("a small buffer", all.iter().any(|(_, s)| small(s)));
    let in_order = |s: &Scenario| !s.transfer.unordered;
    has("order in every scenario", all.iter().all(|(_, s)| in_order(s)));
}

#[test]
fn the_warm_up_has_twenty_of_the_longest_round_trips() {
    for (draw, scenario) in draws(30) {
        let rtt = |path: &Path| (path.up.delay + path.down.delay).as_secs_f64();
        let longest = scenario.paths.iter().map(rtt).fold(0.0, f64::max);
        let warmup = scenario.transfer.warmup.as_secs_f64();
        assert!(warmup >= 20.0 * longest && warmup >= WARMUP_MIN_S, "{draw}");
    }
}
