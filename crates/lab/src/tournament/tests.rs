use ropewalk_scenario::{Loss, SchedulerName};

use super::*;
use crate::custom_schedulers::CustomSchedulers;

const SCHEDULERS: [SchedulerName; 3] =
    [SchedulerName::Lay, SchedulerName::MinRtt, SchedulerName::RoundRobin];

/// Wi-Fi and a slower path for three seconds, with each scheduler.
fn match_config(name: &str, protocol: Protocol, slow: &str) -> MatchConfig {
    let entrant = |scheduler: &SchedulerName| {
        let text = format!(
            "[transfer]\nduration = '3 s'\nprotocol = '{protocol}'\nscheduler = '{scheduler}'\n\
             receive_buffer = '45 kB'\n\
             [[path]]\nname = 'wifi'\nrate = '2 Mbit/s'\nrtt = '20 ms'\nloss = 0.01\n\
             [[path]]\nname = 'slow'\n{slow}\n"
        );
        let scenario = Scenario::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
        (scheduler.to_string(), scenario)
    };
    MatchConfig {
        scenario: name.to_owned(),
        setting: protocol.to_string(),
        protocol,
        participants: SCHEDULERS.iter().map(entrant).collect(),
    }
}

fn match_configs() -> Vec<MatchConfig> {
    let places =
        [("lte", "rate = '3 Mbit/s'\nrtt = '150 ms'"), ("dsl", "rate = '2 Mbit/s'\nrtt = '30 ms'")];
    let both = [Protocol::CmtSctp, Protocol::Mptcp].into_iter();
    both.flat_map(|protocol| places.map(|(name, slow)| match_config(name, protocol, slow)))
        .collect()
}

fn play(match_configs: &[MatchConfig], seeds: u64, threads: usize) -> Tournament {
    tournament(
        match_configs,
        &TournamentOptions { seeds, threads, custom_schedulers: CustomSchedulers::default() },
        &|_| (),
    )
}

#[test]
fn every_scheduler_meets_every_other_on_every_scenario_and_protocol() {
    let play = play(&match_configs(), 2, 2);
    let names: Vec<(&str, &str, &str)> = play
        .matches
        .iter()
        .map(|m| (m.scenario.as_str(), m.protocol.as_str(), m.preset.as_str()))
        .collect();
    let (sctp, mptcp) = (("cmt-sctp", "rfc9260"), ("mptcp", "rfc8684"));
    let of = |name, (protocol, preset)| (name, protocol, preset);
    assert_eq!(names, [of("lte", sctp), of("dsl", sctp), of("lte", mptcp), of("dsl", mptcp)]);
    for one in &play.matches {
        let schedulers: Vec<&str> = one.entries.iter().map(|e| e.scheduler.as_str()).collect();
        assert_eq!(schedulers, SCHEDULERS.map(|name| name.to_string()));
        for entry in &one.entries {
            let seeds: Vec<&str> = entry.runs.iter().map(|run| run.seed.as_str()).collect();
            assert_eq!((seeds, entry.failures.len()), (vec!["1", "2"], 0));
            let mean = |column: &str| entry.figures.get(column).expect("good runs").mean;
            assert!(mean("share_of_bound") <= 1.0);
            assert!(mean("app_delay_p50_s") <= mean("app_delay_p99_s"), "{entry:?}");
            let run = &entry.runs[0];
            let best = run.best_path.as_ref().expect("two paths");
            let goodput = run.figures.get("goodput_bps").as_f64().expect("a number");
            assert!(goodput > 5e5 && best.goodput_bps > 5e5, "{run:?}");
        }
    }
}

#[test]
fn the_best_of_a_match_has_the_ratio_one_and_the_others_stand_below() {
    for one in play(&match_configs(), 1, 2).matches {
        for ratio in [|e: &MatchEntry| e.goodput_ratio, |e: &MatchEntry| e.delay_ratio] {
            let all: Vec<f64> = one.entries.iter().map(ratio).collect();
            assert!(all.iter().all(|r| (0.0..=1.0).contains(r)) && all.contains(&1.0), "{all:?}");
        }
        let goodput = |e: &MatchEntry| e.figures.get("goodput_bps").expect("a good run").mean;
        let [lay, other] = [&one.entries[0], &one.entries[2]];
        let expected = goodput(other) / goodput(lay);
        assert!((other.goodput_ratio / lay.goodput_ratio - expected).abs() < 1e-12);
    }
}

#[test]
fn the_ranking_is_the_geometric_mean_of_what_the_matches_say() {
    let play = play(&match_configs(), 1, 2);
    let protocols: Vec<(Option<&str>, usize)> =
        play.rankings.iter().map(|r| (r.protocol.as_deref(), r.matches)).collect();
    assert_eq!(protocols, [(None, 4), (Some("cmt-sctp"), 2), (Some("mptcp"), 2)]);
    for ranking in &play.rankings {
        assert!(ranking.ranks.is_sorted_by(|a, b| a.score >= b.score));
        for rank in &ranking.ranks {
            let spread = rank.spread.as_ref().expect("two scenarios");
            let [from, to] = spread.score;
            assert!(from <= rank.score && rank.score <= to && (0.0..=1.0).contains(&spread.first));
            let of = |m: &Match| ranking.protocol.as_ref().is_none_or(|p| *p == m.protocol);
            let entries: Vec<&MatchEntry> = play
                .matches
                .iter()
                .filter(|m| of(m))
                .flat_map(|m| m.entries.iter().filter(|e| e.scheduler == rank.scheduler))
                .collect();
            let product: f64 = entries.iter().map(|e| e.goodput_ratio * e.delay_ratio).product();
            assert!((rank.score - product.powf(1.0 / entries.len() as f64)).abs() < 1e-12);
            assert!((rank.score - rank.goodput * rank.delay).abs() < 1e-12, "{rank:?}");
            let near = entries.iter().filter(|e| e.goodput_ratio >= 0.95).count();
            assert_eq!((rank.near_goodput, rank.failed), (near, 0));
            let gains: Vec<f64> = entries.iter().map(|e| e.gain.expect("two paths").mean).collect();
            assert_eq!(rank.kept, Some(gains.iter().filter(|gain| **gain >= 0.98).count()));
            let least_gain = gains.into_iter().fold(f64::MAX, f64::min);
            assert_eq!(rank.worst_gain.as_ref().map(|worst| worst.ratio), Some(least_gain));
            let least = entries.iter().map(|e| e.delay_ratio).fold(1.0, f64::min);
            assert_eq!(rank.worst_delay.ratio, least);
        }
        let fair: usize = ranking.ranks.iter().map(|rank| rank.near_both).sum();
        assert!(fair >= ranking.matches, "among those that carry the most one is the quickest");
        assert!(ranking.ranks.iter().all(|rank| rank.near_both <= rank.near_goodput));
        let wins: usize = ranking.ranks.iter().map(|rank| rank.wins).sum();
        assert!(wins >= ranking.matches, "each match has a winner");
    }
}

/// A match with this number of paths in which the schedulers have these scores.
fn scored(scenario: usize, paths: usize, scores: &[(&str, f64)]) -> Match {
    let entry = |(name, score): &(&str, f64)| MatchEntry {
        goodput_ratio: *score,
        delay_ratio: 1.0,
        ..MatchEntry::new((*name).to_owned(), &[])
    };
    Match {
        scenario: scenario.to_string(),
        setting: "cmt-sctp".into(),
        protocol: "cmt-sctp".into(),
        preset: "rfc9260".into(),
        paths,
        receive_buffer_bytes: 2000,
        bandwidth_delay_bytes: 1000,
        entries: scores.iter().map(entry).collect(),
    }
}

#[test]
fn a_place_is_sure_where_every_scenario_says_the_same_and_open_where_they_differ() {
    let steady = |i| scored(i, 2, &[("a", 0.9), ("b", 0.8)]);
    let swinging = |i| {
        let (a, b) = if i % 2 == 0 { (1.0, 0.5) } else { (0.5, 0.99) };
        scored(i, 3, &[("a", a), ("b", b)])
    };
    let matches: Vec<Match> = (0..20).map(steady).chain((20..40).map(swinging)).collect();
    let rankings = rank::rankings(&matches);
    let of: Vec<(Option<usize>, usize)> = rankings.iter().map(|r| (r.paths, r.matches)).collect();
    assert_eq!(of, [(None, 40), (Some(2), 20), (Some(3), 20)]);
    let spread = |ranking: usize, name: &str| {
        let rank = rankings[ranking].ranks.iter().find(|rank| rank.scheduler == name);
        rank.and_then(|rank| rank.spread.clone()).expect("several scenarios")
    };
    assert_eq!((spread(1, "a").first, spread(1, "a").place), (1.0, [1, 1]));
    assert_eq!((spread(1, "b").first, spread(1, "b").place), (0.0, [2, 2]));
    let [from, to] = spread(1, "a").score;
    assert!((from - 0.9).abs() < 1e-9 && (to - 0.9).abs() < 1e-9);
    let open = spread(2, "a");
    assert!((0.3..0.8).contains(&open.first) && open.place == [1, 2], "{open:?}");
    // The mean of ln(1) and ln(0.5) over twenty scenarios, plus and minus two standard deviations.
    assert!((0.57..0.68).contains(&open.score[0]) && (0.75..0.87).contains(&open.score[1]));
    assert!(
        rank::rankings(&matches[..1])[0].ranks[0].spread.is_none(),
        "one scenario tells nothing of others"
    );
}

#[test]
fn the_number_of_threads_does_not_show() {
    let match_configs = &match_configs()[..1];
    assert_eq!(play(match_configs, 2, 1), play(match_configs, 2, 4));
}

#[test]
fn a_failed_run_is_kept_and_loses_its_match() {
    let mut dead = match_config("dead", Protocol::CmtSctp, "rate = '2 Mbit/s'\nrtt = '30 ms'");
    for path in &mut dead.participants[0].1.paths {
        path.up.loss = Loss::Bernoulli { rate: 1.0 };
    }
    let play = play(&[dead], 1, 2);
    let entry = &play.matches[0].entries[0];
    assert_eq!((entry.runs.len(), entry.failures.len(), entry.score()), (0, 1, 0.0));
    assert_eq!(*entry.figures.get("goodput_bps"), None);
    assert!(!entry.failures[0].error.is_empty());
    let last = play.rankings[0].ranks.last().expect("three schedulers");
    assert_eq!((last.scheduler.as_str(), last.score, last.failed), ("lay", 0.0, 1));
    assert_eq!(play.rankings.len(), 1, "one protocol needs one ranking");
}
