//! Flows through a simulated tunnel.

use ropewalk_lab::{FlowResult, PathResult, RunOptions, RunResult, run};
use ropewalk_scenario::Scenario;

/// Two paths of the same rate in Mbit/s, with their round trips in ms and further lines of the
/// second one.
fn paths(rate: u32, [one, two]: [u32; 2], more: &str) -> String {
    format!(
        "[transfer]\nduration = '12 s'\nwarmup = '4 s'\n\
         [[path]]\nname = 'one'\nrate = '{rate} Mbit/s'\nrtt = '{one} ms'\n\
         [[path]]\nname = 'two'\nrate = '{rate} Mbit/s'\nrtt = '{two} ms'\n{more}\n"
    )
}

/// A flow; `more`: further keys.
fn flow(name: &str, kind: &str, more: &str) -> String {
    format!("[[flow]]\nname = '{name}'\nkind = '{kind}'\n{more}\n")
}

fn result(text: &str) -> RunResult {
    let scenario = Scenario::parse(text, "tunnel.toml").unwrap_or_else(|e| panic!("{text}\n{e}"));
    run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{text}\n{e}")).result
}

fn of<'a>(result: &'a RunResult, name: &str) -> &'a FlowResult {
    result.flows.iter().find(|flow| flow.name == name).expect("the flow has a result")
}

#[test]
fn a_download_uses_both_paths_and_leaves_the_delay_of_a_call_and_a_ping_as_it_is() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/tunnel-call.toml");
    let changes = ["transfer.duration=16 s", "transfer.warmup=6 s"].map(str::to_owned);
    let scenario = Scenario::load_with(file, &changes).unwrap_or_else(|e| panic!("{e}"));
    let result = run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}")).result;
    let [download, call] = ["download", "call"].map(|name| of(&result, name));
    // Goodput of one TCP connection on the faster path alone, without the headers of the tunnel and of
    // TCP.
    assert!(download.goodput_bps > 46.5e6, "{download:?}");
    assert!(call.mos.expect("a call has a score") > 4.2, "{call:?}");
    assert!(call.lost.expect("it sends") < 0.001, "{call:?}");
    for (name, idle) in [("call", 0.01), ("game", 0.01), ("ping", 0.02)] {
        let flow = of(&result, name);
        let delay = flow.delay_p99_s.expect("packets arrive");
        assert!((idle..1.5 * idle + 0.02).contains(&delay), "{flow:?}");
    }
    let sum: f64 = result.flows.iter().map(|flow| flow.goodput_bps).sum();
    assert!((sum / result.goodput_bps - 1.0).abs() < 1e-9, "{sum} {}", result.goodput_bps);
}

#[test]
fn a_link_that_becomes_slower_delays_calls_by_little_more_than_the_other_link_takes() {
    for (rates, trips, to) in [([20, 20], [20, 20], 2), ([50, 10], [20, 100], 5)] {
        let text = format!(
            "[transfer]\nduration = '9 s'\nwarmup = '5 s'\n\
             [[path]]\nname = 'one'\nrate = '{} Mbit/s'\nrtt = '{} ms'\n\
             steps = [{{ at = '5 s', rate = '{to} Mbit/s' }}]\n\
             [[path]]\nname = 'two'\nrate = '{} Mbit/s'\nrtt = '{} ms'\n",
            rates[0], trips[0], rates[1], trips[1],
        );
        let flows = flow("bulk", "tcp", "") + &flow("call", "call", "") + &flow("ping", "ping", "");
        let result = result(&(text + &flows));
        let second_ms = f64::from(trips[1]) / 2.0;
        for (name, others_ms) in [("call", 60.0), ("ping", 75.0)] {
            let flow = of(&result, name);
            let delay_ms = 1e3 * flow.delay_max_s.expect("packets arrive");
            assert!(delay_ms < second_ms + others_ms, "{trips:?}: {flow:?}");
        }
    }
}

/// A download, a call and a ping over paths of (Mbit/s, round trip in ms, loss). Only those in `used` carry data.
fn bundle_text(links: &[(u32, u32, f64)], used: &[usize], seed: u32) -> String {
    let mut text = format!("[transfer]\nduration = '50 s'\nwarmup = '10 s'\nseed = {seed}\n");
    for (i, (rate, trip, loss)) in links.iter().enumerate() {
        let usage = if used.contains(&i) { "always" } else { "never" };
        text += &format!(
            "[[path]]\nname = 'p{i}'\nrate = '{rate} Mbit/s'\nrtt = '{trip} ms'\nloss = {loss}\nuse = '{usage}'\n"
        );
    }
    for kind in ["tcp", "call", "ping"] {
        text += &flow(kind, kind, "");
    }
    text
}

#[test]
fn a_bundle_is_not_slower_than_its_best_link_and_its_calls_are_no_worse() {
    for links in [
        // Both distant, with a queue that is short for such a path.
        [(18, 160, 0.0), (13, 280, 0.0)],
        // The second path adds so much to the round trip that the sender's buffer is full at times.
        [(58, 8, 0.0), (66, 269, 0.01)],
        // A near path that is full, and a distant one of the same rate.
        [(80, 24, 0.0), (80, 200, 0.0)],
        // Repairs take longer than the waits of most paths.
        [(38, 171, 0.02), (4, 253, 0.0)],
    ] {
        // Means over seeds: random losses affect a single run more than the second link does.
        let mean = |used: &[usize]| {
            let runs = (1..=4).map(|seed| {
                let result = result(&bundle_text(&links, used, seed));
                let mos = of(&result, "call").mos.expect("a call has a score");
                [of(&result, "tcp").goodput_bps, mos]
            });
            runs.fold([0.0; 2], |sum, run| [sum[0] + run[0] / 4.0, sum[1] + run[1] / 4.0])
        };
        let [goodput, mos] = mean(&[0, 1]);
        let alone = [mean(&[0]), mean(&[1])];
        let best = |figure: usize| f64::max(alone[0][figure], alone[1][figure]);
        assert!(goodput > 0.95 * best(0), "{links:?}: {goodput}, {} over one link", best(0));
        assert!(mos > best(1) - 0.15, "{links:?}: {mos} instead of {}", best(1));
    }
}

#[test]
fn tcp_arrives_in_order_over_paths_of_unequal_delay_and_quic_as_it_comes() {
    let base = paths(10, [20, 120], "");
    let tcp = result(&(base.clone() + &flow("a", "tcp", "")));
    let quic = result(&(base + &flow("a", "quic", "")));
    let [tcp, quic] = [&tcp, &quic].map(|result| of(result, "a").clone());
    assert!(tcp.out_of_order < 0.005 && tcp.goodput_bps > 12e6, "{tcp:?}");
    assert!(quic.out_of_order > 0.05, "{quic:?}");
}

#[test]
fn copies_save_a_call_from_the_losses_of_the_path_on_which_it_arrives_first() {
    let lossy = "loss = 0.05\nduplicate = 0.01";
    let with = |redundancy: &str| {
        let text = paths(10, [60, 20], lossy) + &flow("call", "call", "");
        let result = result(&format!("{text}[tunnel]\nredundancy = '{redundancy}'\n"));
        of(&result, "call").clone()
    };
    let [off, auto, always] = ["off", "auto", "always"].map(with);
    let lost = |flow: &FlowResult| flow.lost.expect("a call sends");
    assert!(lost(&auto) < 0.002 && lost(&always) < 0.002, "{auto:?} {always:?}");
    let [off_score, auto_score] = [&off, &auto].map(|flow| flow.mos.expect("a score"));
    assert!(auto_score > 4.3 && auto_score >= off_score, "{off:?} {auto:?}");
    // Without copies, a lost packet is retransmitted after a round trip.
    let late = |flow: &FlowResult| flow.delay_p99_s.expect("packets arrive");
    assert!(late(&off) > late(&auto) + 0.01, "{off:?} {auto:?}");
}

#[test]
fn requests_and_datagrams_are_counted_in_the_time_in_which_their_flow_is_active() {
    let udp =
        "rate = '2 Mbit/s'\npacket = '500 B'\ndirection = 'down'\nstart = '6 s'\nstop = '8 s'";
    let text = paths(10, [20, 30], "")
        + &flow("dns", "dns", "every = '50 ms'")
        + &flow("video", "udp", udp)
        + &flow("sorted", "udp", "rate = '12 Mbit/s'\nordered = true");
    let result = result(&text);
    let [dns, video, sorted] = ["dns", "video", "sorted"].map(|name| of(&result, name));
    assert!((video.goodput_bps / 2e6 - 1.0).abs() < 0.02, "{video:?}");
    for flow in [dns, video, sorted] {
        assert_eq!((flow.lost, flow.mos), (Some(0.0), None), "{flow:?}");
    }
    let [reply, one_way] = [dns, video].map(|flow| flow.delay_p50_s.expect("packets arrive"));
    assert!((0.02..0.04).contains(&reply) && (0.01..0.03).contains(&one_way), "{dns:?} {video:?}");
    assert_eq!(sorted.out_of_order, 0.0, "{sorted:?}");
}

#[test]
fn pauses_lengthen_the_round_trip_of_a_ping_by_little_and_cost_a_download_nothing() {
    for trips in [vec![20, 20], vec![10, 80], vec![30, 12, 60]] {
        let links: Vec<_> = trips.iter().map(|trip| (20, *trip, 0.0)).collect();
        let used: Vec<_> = (0..links.len()).collect();
        // Means over seeds of the median round trip in ms and of the goodput.
        let [without, with] = ["0 s", "2 ms"].map(|pause| {
            let runs = (1..=4).map(|seed| {
                let options = format!("[tunnel]\nlongest_pause = '{pause}'\n");
                let result = result(&(bundle_text(&links, &used, seed) + &options));
                let median = of(&result, "ping").delay_p50_s.expect("replies arrive");
                [1e3 * median, of(&result, "tcp").goodput_bps]
            });
            runs.fold([0.0; 2], |sum, run| [sum[0] + run[0] / 4.0, sum[1] + run[1] / 4.0])
        });
        // Both a request and its reply are held at the tunnel's two ends, at the far end for a full
        // pause.
        let pause_ms = f64::from(*trips.iter().min().expect("there are paths")) / 10.0;
        let longer_ms = with[0] - without[0];
        assert!((0.1 * pause_ms..3.0 * pause_ms).contains(&longer_ms), "{trips:?}: {longer_ms}");
        assert!(with[1] > 0.98 * without[1], "{trips:?}: {with:?}, {without:?} without");
    }
}

#[test]
fn a_call_alone_has_no_pauses() {
    let base = paths(10, [20, 120], "") + &flow("call", "call", "");
    let [without, with] = ["0 s", "2 ms"]
        .map(|pause| result(&format!("{base}[tunnel]\nlongest_pause = '{pause}'\n")));
    assert_eq!(of(&without, "call"), of(&with, "call"));
}

#[test]
fn a_tunnel_of_which_only_the_other_direction_carries_data_is_not_stuck() {
    let text = paths(10, [20, 30], "") + &flow("video", "udp", "direction = 'down'");
    assert!(of(&result(&text), "video").goodput_bps > 0.9e6);
}

#[test]
fn the_same_seed_gives_the_same_result_and_another_seed_another() {
    let text = paths(5, [20, 60], "loss = 0.01") + &flow("a", "tcp", "congestion = 'bbr'");
    let with = |seed: u32| {
        let result = result(&text.replace("[transfer]", &format!("[transfer]\nseed = {seed}")));
        serde_json::to_string(&result.flows).expect("results are JSON")
    };
    assert_eq!(with(3), with(3));
    assert_ne!(with(3), with(4));
}

/// The flows of this list, all in one direction.
fn directed(flows: &[(&str, &str)], direction: &str) -> String {
    let more = format!("direction = '{direction}'");
    flows.iter().map(|(name, kind)| flow(name, kind, &more)).collect()
}

#[test]
fn a_mirrored_tunnel_has_mirrored_figures_of_its_directions() {
    // Flows whose packets do not depend on the network. The goodput of TCP depends on the seeds of the ends.
    let udp = |to: &str| flow("a", "udp", &format!("rate = '14 Mbit/s'\ndirection = '{to}'"));
    let queries = |to: &str| directed(&[("call", "call"), ("ping", "ping"), ("dns", "dns")], to);
    let both = |to: &str| udp(to) + &queries(to);
    for (second, flows) in [
        ("", &udp as &dyn Fn(&str) -> String),
        ("", &queries),
        ("", &both),
        ("use = 'backup'", &queries),
        ("use = 'when-needed'", &both),
    ] {
        let base = paths(10, [20, 60], second);
        let [there, back] = ["up", "down"].map(|to| result(&(base.clone() + &flows(to))));
        for result in [&there, &back] {
            let names: Vec<&str> = result.directions.iter().map(|one| one.name.as_str()).collect();
            assert_eq!(names, ["up", "down"]);
        }
        for (one, other) in [(0, 1), (1, 0)] {
            let (one, other) = (&there.directions[one], &back.directions[other]);
            let near = |a: f64, b: f64, least: f64| (a - b).abs() <= 0.01 * a.max(b) + least;
            assert!(near(one.goodput_bps, other.goodput_bps, 5e3), "{one:?}\n{other:?}");
            // The queue of a full path depends on windows, which differ by the seeds of the ends.
            let full = one.paths.iter().any(|path| path.utilisation > 0.9);
            let [delay, others] = [one, other].map(|direction| direction.app_delay_p50_s);
            assert!(full || near(delay, others, 1e-3), "{one:?}\n{other:?}");
            for (one, other) in one.paths.iter().zip(&other.paths) {
                let all = [one, other];
                let sent = all.map(|path| path.sent_packets as f64);
                // Whether a copy is faster than a retransmission depends on round trips, which the two ends measure
                // at different times.
                let first = all.map(|path| (path.sent_packets - path.retransmitted_packets) as f64);
                assert!(near(first[0], first[1], 20.0), "{all:?}");
                assert_eq!(one.lost_packets, other.lost_packets, "{all:?}");
                let [rate, used] = [all.map(|p| p.throughput_bps), all.map(|p| p.utilisation)];
                assert!(near(rate[0], rate[1], 2e4) && near(used[0], used[1], 2e-3), "{all:?}");
                // Delayed SACKs that return on either path give RTTs by chance, but none below that of the quicker path.
                let measured = |path: &PathResult| path.srtt_s.is_some_and(|srtt| srtt > 0.019);
                assert!(sent[0] < 50.0 || all.into_iter().all(measured), "{all:?}");
            }
        }
    }
}

#[test]
fn a_download_shows_the_paths_that_it_uses_busy_in_either_direction() {
    for direction in ["up", "down"] {
        let text = paths(10, [20, 60], "") + &directed(&[("a", "tcp")], direction);
        let result = result(&text);
        let [idle, busy]: [_; 2] = match direction {
            "up" => [&result.directions[1], &result.directions[0]],
            _ => [&result.directions[0], &result.directions[1]],
        };
        assert!(busy.paths.iter().all(|path| path.utilisation > 0.85), "{direction}: {busy:?}");
        assert!(idle.paths.iter().all(|path| path.utilisation < 0.15), "{direction}: {idle:?}");
        assert!(busy.share_of_bound.is_some_and(|share| share > 0.85), "{direction}: {busy:?}");
        assert!(result.paths.iter().all(|path| path.utilisation > 0.85), "{:?}", result.paths);
        // The sums over both directions are those of the run.
        for (i, path) in result.paths.iter().enumerate() {
            let sum = |of: fn(&PathResult) -> u64| -> u64 {
                result.directions.iter().map(|direction| of(&direction.paths[i])).sum()
            };
            assert_eq!(path.delivered_bytes, sum(|path| path.delivered_bytes));
            assert_eq!(path.sent_packets, sum(|path| path.sent_packets));
            assert_eq!(path.lost_packets, sum(|path| path.lost_packets));
        }
        let goodput: f64 = result.directions.iter().map(|one| one.goodput_bps).sum();
        assert!((goodput / result.goodput_bps - 1.0).abs() < 1e-9, "{goodput}");
        assert_eq!(idle.goodput_bps, 0.0);
    }
}
