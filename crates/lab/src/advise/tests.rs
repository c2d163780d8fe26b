//! Advice on links whose best choice is known.

use super::*;

fn advice(text: &str, goal: Goal, threads: usize) -> (Scenario, Advice) {
    let scenario = Scenario::parse(text, "a.toml").unwrap_or_else(|e| panic!("{e}"));
    let options = AdviseOptions { goal, seeds: 3, threads };
    let found = advise(&scenario, &options, &|_| ()).unwrap_or_else(|e| panic!("{e}"));
    (scenario, found)
}

const UNEQUAL: &str = "# mine\n[transfer]\nduration = '4 s' # short\nwarmup = '1 s'\n\
    [[path]]\nname = 'dsl'\nrate = '5 Mbit/s'\nrtt = '20 ms'\n\
    [[path]]\nname = 'lte'\nrate = '2 Mbit/s'\nrtt = '60 ms'\n";

#[test]
fn two_clean_links_are_both_used_with_a_buffer_that_lets_them() {
    let (scenario, found) = advice(UNEQUAL, Goal::Throughput, 2);
    assert_eq!(found.advice.paths, ["dsl", "lte"]);
    assert!(found.advice.goodput_bps.mean > 0.9 * 7e6, "{found:?}");
    assert!(found.best_single.goodput_bps.mean < 5e6 && found.best_single.paths == ["dsl"]);
    assert_eq!(found.advice.ratio, Estimate { mean: 1.0, half_width: Some(0.0) });
    let bound = found.flow_control_bound_bps.expect("no shared link");
    assert!(bound <= 7e6 && bound > found.advice.goodput_bps.mean, "{bound}");
    let adds: Vec<f64> = found.paths.iter().map(|link| link.adds_bps.expect("two").mean).collect();
    assert!(adds[0] > 2.0 * adds[1] && adds[1] > 1.5e6, "{adds:?}");
    // Two links, two quantities, two factors.
    assert_eq!(found.sensitivity.len(), 8);
    let slower = &found.sensitivity[0];
    assert_eq!(
        (slower.path.as_str(), slower.quantity, slower.factor),
        ("dsl", Quantity::Rate, 0.8)
    );
    assert!((0.75..0.95).contains(&slower.goodput_ratio), "{slower:?}");
    assert!(found.reason.contains("lte adds"), "{}", found.reason);
    // The figures are those of the written scenario.
    let text = written(UNEQUAL, &scenario, &found).unwrap_or_else(|e| panic!("{e}"));
    assert!(text.contains("# mine") && text.contains("# short"), "{text}");
    let mut again = Scenario::parse(&text, "a.toml").unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(again, found.applied_to(&scenario));
    again.transfer.seed += FRESH;
    let run = crate::run(&again, &crate::RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let estimate = found.advice.goodput_bps;
    let half = estimate.half_width.expect("three seeds").max(1e-3 * estimate.mean);
    assert!((run.result.goodput_bps - estimate.mean).abs() < 3.0 * half, "{estimate:?}");
}

#[test]
fn a_link_that_only_delays_is_left_alone_for_calls_and_the_answer_has_one_value() {
    let text = UNEQUAL.replace("'60 ms'", "'600 ms'\nloss = 0.1");
    let (scenario, found) = advice(&text, Goal::Calls, 2);
    assert_eq!(found.advice.paths, ["dsl"], "{found:?}");
    assert!(found.reason.contains("dsl is best alone"), "{}", found.reason);
    assert_eq!((found.paths[0].used, found.paths[1].used), (true, false));
    let delay = found.advice.app_delay_p99_s.expect("no run failed").mean;
    assert!(delay < 0.1, "{delay}");
    let text = written(&text, &scenario, &found).unwrap_or_else(|e| panic!("{e}"));
    let again = Scenario::parse(&text, "a.toml").unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(again.paths.len(), 1);
    let (_, one_thread) =
        advice(&UNEQUAL.replace("'60 ms'", "'600 ms'\nloss = 0.1"), Goal::Calls, 1);
    assert_eq!(one_thread, found);
}

#[test]
fn with_flows_the_goal_calls_is_the_worst_call_through_the_tunnel() {
    let flows = "[[flow]]\nname = 'download'\nkind = 'tcp'\n\
        [[flow]]\nname = 'call'\nkind = 'call'\n[[flow]]\nname = 'late'\nkind = 'call'\nstart = '2 s'\n";
    // Durations equal those of the longest simulation.
    let links = UNEQUAL.replace("'4 s'", "'9 s'").replace("'1 s'", "'3 s'");
    let text = format!("{links}{flows}");
    let (scenario, found) = advice(&text, Goal::Calls, 2);
    let mut again = found.applied_to(&scenario);
    assert_eq!(again.flows, scenario.flows);
    let figures: Vec<f64> = (FRESH..FRESH + 3)
        .map(|seed| {
            again.transfer.seed = scenario.transfer.seed + seed;
            let run = crate::run(&again, &crate::RunOptions::default());
            let flows = run.unwrap_or_else(|e| panic!("{e}")).result.flows;
            let calls = flows.iter().filter(|flow| flow.kind == "call");
            calls.map(|call| call.delay_p99_s.expect("it arrives")).fold(0.0, f64::max)
        })
        .collect();
    let mean = figures.iter().sum::<f64>() / 3.0;
    let delay = found.advice.app_delay_p99_s.expect("no run failed").mean;
    assert!((delay / mean - 1.0).abs() < 1e-9, "{delay} {figures:?}");
    let mos = found.advice.mos.expect("it rates calls").mean;
    assert!(mos > 4.2, "{mos}");
    nothing_shown_beats_the_advice(&found);

    let without = text.replace("kind = 'call'", "kind = 'game'");
    let scenario = Scenario::parse(&without, "a.toml").unwrap_or_else(|e| panic!("{e}"));
    let options = AdviseOptions { goal: Goal::Calls, seeds: 2, threads: 1 };
    assert_eq!(advise(&scenario, &options, &|_| ()), Err(AdviseError::NoCall));
}

/// No choice that the answer shows has audibly better calls, and no choice with equally good calls has more
/// goodput. The figures come from other seeds than those of the search, so calls count as better only if the
/// intervals do not overlap.
fn nothing_shown_beats_the_advice(found: &Advice) {
    let bound = |choice: &Choice, sign: f64| {
        let mos = choice.mos.expect("it rates calls");
        mos.mean + sign * mos.half_width.unwrap_or(0.0)
    };
    let own = found.advice.mos.expect("it rates calls").mean;
    let own_most = bound(&found.advice, 1.0);
    let others = [&found.current, &found.best_single].into_iter().chain(&found.rival);
    for other in others.chain(&found.buffers) {
        let mos = other.mos.expect("it rates calls").mean;
        assert!(bound(other, -1.0) < own_most + AUDIBLE, "{other:?} beside {:?}", found.advice);
        let worse = mos <= own - AUDIBLE;
        assert!(worse || other.ratio.mean < 1.03, "{other:?} beside {:?}", found.advice);
    }
}

const TUNNEL: &str = "[transfer]\nduration = '6 s'\nwarmup = '2 s'\n\
    [[path]]\nname = 'dsl'\nrate = '5 Mbit/s'\nrtt = '20 ms'\n\
    [[path]]\nname = 'lte'\nrate = '5 Mbit/s'\nrtt = '80 ms'\n\
    [[flow]]\nname = 'download'\nkind = 'tcp'\ndirection = 'down'\n\
    [[flow]]\nname = 'call'\nkind = 'call'\n";

#[test]
fn calls_do_not_cost_a_download_what_nobody_hears() {
    let (scenario, mut found) = advice(TUNNEL, Goal::Calls, 2);
    // One link alone has a shorter call delay than both, but the difference is inaudible.
    assert_eq!(found.advice.paths, ["dsl", "lte"], "{found:?}");
    assert!(found.advice.goodput_bps.mean > 1.5 * found.best_single.goodput_bps.mean, "{found:?}");
    assert!(found.paths.iter().all(Link::carries), "{:?}", found.paths);
    nothing_shown_beats_the_advice(&found);
    // Any change of the tunnel is written in the form in which it was simulated.
    found.chosen.tunnel = tunnel::TunnelChoice {
        redundancy: Some(ropewalk_scenario::Redundancy::Always),
        latency_budget: Some(ropewalk_base::Duration::from_millis(100)),
        uses: vec![(1, ropewalk_scenario::PathUse::WhenNeeded)],
    };
    let text = written(TUNNEL, &scenario, &found).unwrap_or_else(|e| panic!("{e}"));
    let again = Scenario::parse(&text, "a.toml").unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(again, found.applied_to(&scenario));
    assert_ne!((again.tunnel, again.paths[1].r#use), (scenario.tunnel, scenario.paths[1].r#use));
}

#[test]
fn a_link_that_carries_nothing_does_not_pay_off() {
    let text = TUNNEL.replace("'80 ms'", "'80 ms'\nuse = 'backup'");
    let scenario = Scenario::parse(&text, "a.toml").unwrap_or_else(|e| panic!("{e}"));
    let options = AdviseOptions { goal: Goal::Calls, seeds: 2, threads: 2 };
    let trials = &mut Trials::new(&scenario, &options, &|_| ());
    let own = Candidate::of(&scenario, 1_000_000);
    let found =
        search::Found { best: own.clone(), finalists: vec![own.clone()], buffers: vec![own] };
    let report = Report::new(trials, &found, 2);
    let links = report.links();
    assert!(links[0].carries() && links[1].used && !links[1].carries(), "{links:?}");
    let advice = report.choice(&found.best);
    let reason = reason::sentence(Goal::Calls, &advice, &report.best_single(), &links, &[]);
    assert!(reason.contains("lte is a reserve and carries nothing"), "{reason}");
}

#[test]
fn settings_of_the_tunnel_are_tried_where_the_scenario_leaves_them_open() {
    let texts = |text: &str, paths: &[usize]| -> Vec<String> {
        let scenario = Scenario::parse(text, "a.toml").unwrap_or_else(|e| panic!("{e}"));
        let choice = Candidate::of(&scenario, 100_000).on(paths.to_vec());
        let all = tunnel::variants(&scenario, &choice);
        all.iter().flat_map(|one| one.tunnel.texts(&scenario)).collect()
    };
    let copies = ["redundancy off", "redundancy always"];
    let budgets = ["latency budget 100 ms", "latency budget 250 ms"];
    let dsl = ["use of dsl when-needed", "use of dsl backup"];
    let lte = ["use of lte when-needed", "use of lte backup"];
    assert_eq!(texts(TUNNEL, &[0, 1]), [copies, budgets, dsl, lte].concat());
    assert_eq!(texts(TUNNEL, &[0]), budgets);
    let given = format!("{TUNNEL}[tunnel]\nredundancy = 'off'\nlatency_budget = '200 ms'\n");
    assert_eq!(texts(&given, &[0, 1]), [dsl, lte].concat());
    // One link always stays in use.
    let reserve = TUNNEL.replace("'80 ms'", "'80 ms'\nuse = 'backup'");
    assert_eq!(texts(&reserve, &[0, 1]), [copies, budgets].concat());
}

#[test]
fn a_transport_of_one_path_gets_no_advice() {
    let text = UNEQUAL.replace("[transfer]", "[transfer]\nprotocol = 'sctp'");
    let scenario = Scenario::parse(&text, "a.toml").unwrap_or_else(|e| panic!("{e}"));
    let options = AdviseOptions { goal: Goal::Throughput, seeds: 2, threads: 1 };
    let refused = advise(&scenario, &options, &|_| ());
    assert_eq!(refused, Err(AdviseError::OneAtATime));
}
