//! BBR over a simulated bottleneck: the example test cases of the draft (appendix A).

use ropewalk_base::{Duration, Rate, Seed, Time};

use super::super::bottleneck::{PACKET, Path, seconds};
use super::state::FullBw;
use super::{Bbr, BbrState};
use crate::congestion::{CongestionOptions, CongestionVariants, PathCongestion};

fn over(mbps: u64, rtt_ms: u64, queue_bdp: f64) -> Path<Bbr, BbrState> {
    Path::new(Bbr::new, Bbr::state, (mbps, rtt_ms, queue_bdp))
}

#[test]
fn startup_ends_by_a_plateau_and_drain_ends_when_the_queue_is_gone() {
    let mut path = over(50, 40, 4.0);
    path.run_until(seconds(3));
    let drain = path.first(BbrState::Drain).expect("it fills the path");
    let down = path.first(BbrState::ProbeBwCruise).expect("the queue drains");
    // 200 packets of BDP from 10: five doublings, and three rounds without growth.
    assert!(drain.since(Time::ZERO) < Duration::from_millis(40 * 14), "{drain:?}");
    assert!(down.since(drain) < Duration::from_millis(40 * 4), "{:?}", down.since(drain));
    assert_eq!(path.lost, 0);
    let max_bw = path.control.max_bw().as_bps() as f64;
    assert!((max_bw / 50e6 - 1.0).abs() < 0.03, "{max_bw}");
    assert!(path.control.min_rtt().unwrap() < Duration::from_millis(41));
}

#[test]
fn a_bulk_flow_uses_the_path_with_a_short_queue() {
    // Over 600 ms, each probe of the round trip costs more than a round with half of the data in flight.
    for (mbps, rtt, least) in
        [(1, 20, 0.93), (10, 20, 0.93), (50, 40, 0.93), (100, 100, 0.93), (8, 600, 0.88)]
    {
        let mut path = over(mbps, rtt, 4.0);
        path.run_until(seconds(12));
        let goodput = path.run_until(seconds(60));
        assert!(goodput > least * mbps as f64, "{mbps} Mbit/s, {rtt} ms: {goodput}");
        assert!(path.queueing < path.rtt * 2 + Duration::from_millis(60), "{:?}", path.queueing);
        // The first cell has a queue of eight packets: one lost packet is an eighth of the data in flight.
        let share = path.lost as f64 / path.delivered as f64;
        let most = if mbps == 1 { 0.05 } else { 0.0 };
        assert!(share <= most, "{mbps} Mbit/s, {rtt} ms: {share}");
    }
}

/// Each round of cruising with a loss lowers the short-term bandwidth to the rate of the last round, which is the
/// pacing margin lower. The next probe, within 63 rounds, ends this.
#[test]
fn random_losses_below_the_threshold_cost_a_part_of_the_rate_until_the_next_probe() {
    let mut path = over(50, 40, 1.0);
    path.loss = 0.01;
    path.run_until(seconds(10));
    let goodput = path.run_until(seconds(60));
    assert!(goodput > 0.78 * 50.0 && goodput < 0.9 * 50.0, "{goodput}");
}

#[test]
fn a_shallow_queue_loses_little() {
    let mut path = over(50, 40, 0.25);
    path.run_until(seconds(10));
    let (lost, delivered) = (path.lost, path.delivered);
    let goodput = path.run_until(seconds(60));
    let share = (path.lost - lost) as f64 / (path.delivered - delivered) as f64;
    assert!(goodput > 0.85 * 50.0 && share < 0.02, "{goodput} Mbit/s, {share} lost");
}

#[test]
fn probe_rtt_comes_each_five_seconds_and_lasts_200_ms_and_a_round() {
    let mut path = over(20, 50, 2.0);
    path.run_until(seconds(60));
    let probes = path.count(BbrState::ProbeRtt);
    assert!((9..=12).contains(&probes), "{probes}");
    let pairs = path.states.windows(2).filter(|pair| pair[0].1 == BbrState::ProbeRtt);
    for pair in pairs {
        let lasted = pair[1].0.since(pair[0].0);
        let most = Duration::from_millis(200 + 4 * 50);
        assert!(lasted >= Duration::from_millis(200) && lasted <= most, "{lasted:?}");
    }
}

#[test]
fn an_application_that_sends_slowly_needs_no_probe_rtt_and_keeps_the_estimate() {
    let mut path = over(20, 50, 2.0);
    path.run_until(seconds(4));
    let before = path.count(BbrState::ProbeRtt);
    // A packet every 125 ms: nothing is in flight between them.
    path.offered = Some(10_000);
    path.sent = 4 * 10_000;
    path.run_until(seconds(60));
    assert_eq!(path.count(BbrState::ProbeRtt), before, "{:?}", path.states);
    assert!(path.control.max_bw().as_bps() > 18_000_000, "{:?}", path.control.max_bw());
}

#[test]
fn a_rate_that_grows_tenfold_is_found_and_one_that_falls_is_followed() {
    let mut path = over(10, 40, 2.0);
    path.run_until(seconds(10));
    path.rate = Rate::from_bps(100_000_000);
    path.queue *= 10;
    path.run_until(seconds(40));
    let goodput = path.run_until(seconds(50));
    assert!(goodput > 85.0, "{goodput}");
    path.rate = Rate::from_bps(10_000_000);
    path.queue /= 10;
    path.run_until(seconds(65));
    let goodput = path.run_until(seconds(80));
    assert!(goodput > 8.5, "{goodput}");
    assert!(path.queueing < Duration::from_millis(100), "{:?}", path.queueing);
}

#[test]
fn a_spurious_recovery_returns_to_startup() {
    let mut path = over(100, 40, 4.0);
    path.run_until(Time::from_millis(200));
    assert_eq!(path.control.state(), BbrState::Startup);
    let window = path.control.window();
    let now = path.now;
    path.control.on_loss(now);
    path.control.undo.state = Some(BbrState::Startup);
    path.control.full_bw.reached = true;
    path.control.state = BbrState::Drain;
    path.control.on_spurious(now);
    assert_eq!((path.control.state(), path.control.full_bw.reached), (BbrState::Startup, false));
    assert!(path.control.window() >= window);
    path.run_until(seconds(5));
    assert!(path.control.max_bw().as_bps() > 95_000_000);
}

#[test]
fn a_timeout_restarts_with_one_packet_and_recovers_the_window() {
    let mut path = over(20, 50, 2.0);
    path.run_until(seconds(4));
    path.loss = 1.0;
    path.run_until(seconds(8));
    assert!(path.control.window() <= 4 * PACKET, "{}", path.control.window());
    path.loss = 0.0;
    path.run_until(seconds(12));
    let goodput = path.run_until(seconds(30));
    assert!(goodput > 17.0, "{goodput}");
}

#[test]
fn a_path_that_returns_within_seconds_keeps_its_estimates() {
    let mut path = over(20, 50, 2.0);
    path.run_until(seconds(4));
    let now = path.now;
    path.control.on_return(now);
    assert_eq!(path.control.window(), PACKET);
    let goodput = path.run_until(seconds(6));
    assert!(goodput > 16.0, "{goodput}");
    let now = path.now + Duration::from_secs(11);
    path.control.on_return(now);
    assert_eq!((path.control.state(), path.control.min_rtt()), (BbrState::Startup, None));
}

#[test]
fn a_path_that_returns_longer_has_its_new_round_trip_at_once() {
    let mut path = over(20, 50, 2.0);
    path.run_until(seconds(4));
    path.rtt = Duration::from_millis(70);
    path.flights.clear();
    path.in_flight = 0;
    let now = path.now;
    path.control.on_return(now);
    path.run_until(Time::from_millis(4_500));
    let least = path.control.min_rtt().unwrap();
    assert!(least >= Duration::from_millis(70), "{least:?}");
}

#[test]
fn startup_waits_for_a_round_trip_while_only_retransmissions_are_acknowledged() {
    let mut path = over(20, 50, 2.0);
    path.karn = true;
    path.run_until(seconds(2));
    assert_eq!(path.control.state(), BbrState::Startup);
    assert!(path.control.window() > 100 * PACKET, "{}", path.control.window());
    path.karn = false;
    path.run_until(seconds(6));
    let goodput = path.run_until(seconds(20));
    assert!(goodput > 18.0, "{goodput}");
}

#[test]
fn waits_before_a_probe_differ_from_path_to_path() {
    let options = CongestionOptions { seed: Seed::root(3), ..CongestionOptions::tcp(PACKET) };
    let mut draws: Vec<u64> =
        Bbr::for_paths(options, 8).iter_mut().map(|bbr| bbr.rng.next_u64()).collect();
    draws.sort_unstable();
    draws.dedup();
    assert_eq!(draws.len(), 8);
}

/// A path on which probes of the round trip may be brief.
fn briefly_over(mbps: u64, rtt_ms: u64, queue_bdp: f64) -> Path<Bbr, BbrState> {
    let make = |options: CongestionOptions| {
        let variants = CongestionVariants { brief_probe_rtt: true, ..options.variants };
        Bbr::new(CongestionOptions { variants, ..options })
    };
    Path::new(make, Bbr::state, (mbps, rtt_ms, queue_bdp))
}

/// Duration of each probe of the round trip.
fn probes_of(path: &Path<Bbr, BbrState>) -> Vec<Duration> {
    let pairs = path.states.windows(2).filter(|pair| pair[0].1 == BbrState::ProbeRtt);
    pairs.map(|pair| pair[1].0.since(pair[0].0)).collect()
}

#[test]
fn brief_probes_of_the_round_trip_cost_less_rate_and_no_queue() {
    // The window of the first cell is always four packets, which is more than its path holds. In the last one, a brief probe
    // lasts as long as a full one, which is two round trips.
    for (mbps, rtt, gain) in
        [(1, 20, 1.0), (10, 20, 1.01), (20, 50, 1.01), (100, 100, 1.01), (8, 600, 0.999)]
    {
        let measure = |mut path: Path<Bbr, BbrState>| {
            path.run_until(seconds(12));
            (path.run_until(seconds(130)), path)
        };
        let (full, of_full) = measure(over(mbps, rtt, 4.0));
        let (brief, of_brief) = measure(briefly_over(mbps, rtt, 4.0));
        assert!(brief >= full * gain, "{mbps} Mbit/s, {rtt} ms: {full} and {brief}");
        let most = of_full.queueing + Duration::from_millis(2);
        assert!(of_brief.queueing <= most, "{:?}, {:?}", of_full.queueing, of_brief.queueing);
        let least = |path: &Path<Bbr, BbrState>| path.control.min_rtt().unwrap();
        let (least, right) = (least(&of_brief), least(&of_full));
        assert!(least <= right * 21 / 20, "{mbps} Mbit/s, {rtt} ms: {right:?} and {least:?}");
    }
}

#[test]
fn each_minute_one_probe_of_the_round_trip_is_a_full_one() {
    let mut path = briefly_over(20, 50, 2.0);
    path.run_until(seconds(300));
    let (full, brief): (Vec<_>, Vec<_>) =
        probes_of(&path).into_iter().partition(|lasted| *lasted >= Duration::from_millis(200));
    assert!((3..=5).contains(&full.len()), "{full:?}");
    assert!(brief.len() > 40, "{brief:?}");
    assert!(brief.iter().all(|lasted| *lasted <= Duration::from_millis(4 * 50)), "{brief:?}");
}

#[test]
fn a_minimum_that_contains_the_paths_own_queue_does_not_last() {
    let mut path = briefly_over(20, 100, 4.0);
    path.run_until(seconds(12));
    // The data in flight for 100 ms is now a queue of 60 ms.
    path.rtt = Duration::from_millis(40);
    path.run_until(seconds(25));
    let least = path.control.min_rtt().unwrap();
    assert!(least < Duration::from_millis(44), "{least:?}");
    path.run_until(seconds(26));
    assert!(path.queueing < Duration::from_millis(40), "{:?}", path.queueing);
}

#[test]
fn a_round_trip_that_grows_is_followed() {
    let mut path = briefly_over(20, 40, 4.0);
    path.run_until(seconds(12));
    path.rtt = Duration::from_millis(100);
    path.run_until(seconds(40));
    let goodput = path.run_until(seconds(60));
    assert!(path.control.min_rtt().unwrap() >= Duration::from_millis(100));
    assert!(goodput > 18.5, "{goodput}");
}

/// Whether data in flight fills a path with a minimum round trip of 100 ms, if it is `share` of the
/// bandwidth-delay product and the last packet was queued for `waited_ms` on its way.
fn is_full(share: f64, waited_ms: Option<u64>) -> bool {
    let mut full = FullBw::default();
    full.note_wait(waited_ms.map(Duration::from_millis), Some(Duration::from_millis(100)));
    full.is_full((share * 1e6) as u64, 1_000_000)
}

#[test]
fn a_path_is_full_if_packets_wait_on_their_way_and_not_if_acknowledgements_do() {
    for (share, waited_ms, full) in [
        (1.1, Some(20), true),
        (0.9, Some(20), false),
        (1.1, Some(5), false),
        // The round trip is longer because of a queue on the way back.
        (1.5, Some(0), false),
        (1.1, None, false),
        (1.3, None, true),
    ] {
        assert_eq!(is_full(share, waited_ms), full, "{share} {waited_ms:?}");
    }
}
