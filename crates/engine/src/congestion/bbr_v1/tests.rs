//! Version 1 over a simulated bottleneck: each rule of the kernel that affects rates, queues and states.

use ropewalk_base::{Duration, Rate, Seed, Time};

use super::super::bottleneck::{PACKET, Path, seconds};
use super::modes::Mode;
use super::{BbrV1, BbrV1State};
use crate::congestion::{AckSample, CongestionOptions, Delivery, LostPacket, PathCongestion};

type Bottleneck = Path<BbrV1, BbrV1State>;

fn over(mbps: u64, rtt_ms: u64, queue_bdp: f64) -> Bottleneck {
    Path::new(BbrV1::new, BbrV1::state, (mbps, rtt_ms, queue_bdp))
}

#[test]
fn startup_ends_after_three_rounds_without_growth_and_drain_when_the_queue_is_gone() {
    let mut path = over(50, 40, 4.0);
    path.run_until(seconds(3));
    let drain = path.first(BbrV1State::Drain).expect("it fills the path");
    let probes = path.first(BbrV1State::ProbeBw).expect("the queue drains");
    // 200 packets of BDP from 10: five doublings, and three rounds without growth, with a full queue of 2 BDP.
    assert!(drain.since(Time::ZERO) < Duration::from_millis(5 * 40 + 4 * 120), "{drain:?}");
    assert!(probes.since(drain) < Duration::from_millis(40 * 6), "{:?}", probes.since(drain));
    assert_eq!(path.lost, 0);
    let max_bw = path.control.max_bw().as_bps() as f64;
    assert!((max_bw / 50e6 - 1.0).abs() < 0.03, "{max_bw}");
    assert!(path.control.min_rtt().unwrap() < Duration::from_millis(41));
}

/// The drain of a cycle ends after a round trip, whether or not the queue is empty. So some queue
/// remains, up to the limit of the window.
#[test]
fn a_bulk_flow_uses_the_path_and_its_queue_is_at_most_a_bandwidth_delay_product_and_the_quanta() {
    for (mbps, rtt, least) in [(10, 20, 0.95), (50, 40, 0.95), (100, 100, 0.94)] {
        let mut path = over(mbps, rtt, 4.0);
        path.run_until(seconds(5));
        let goodput = path.run_until(seconds(9));
        assert!(goodput > least * mbps as f64, "{mbps} Mbit/s, {rtt} ms: {goodput}");
        let window = path.control.window() + 2 * PACKET;
        let most = path.rate.time_for(window).saturating_sub(path.rtt);
        assert!(path.queueing <= most, "{mbps} Mbit/s, {rtt} ms: {:?} {most:?}", path.queueing);
        assert_eq!(path.lost, 0);
    }
}

#[test]
fn the_window_is_twice_the_bandwidth_delay_product_and_three_quanta_an_even_number() {
    let mut path = over(50, 40, 4.0);
    path.run_until(seconds(5));
    let bbr = &path.control;
    let bdp = bbr.max_bw().as_bps() as f64 * bbr.min_rtt().unwrap().as_secs_f64() / 8.0;
    let packets = (2.0 * bdp / PACKET as f64).ceil() as u64 + 3 * bbr.quantum();
    let probe = u64::from(matches!(bbr.mode, Mode::ProbeBw { phase: 0, .. }));
    let most = packets.next_multiple_of(2) + 2 * probe;
    // Acknowledgements of every packet show no aggregation beyond a packet or two.
    let window = bbr.window() / PACKET;
    assert!(window >= most && window <= most + 4, "{window} {most}");
}

#[test]
fn probe_rtt_comes_ten_seconds_after_the_last_least_round_trip_with_four_packets() {
    let mut path = over(20, 50, 2.0);
    path.run_until(seconds(2));
    // Another route: the former minimum round trip is never measured again.
    path.rtt = Duration::from_millis(60);
    let measured_at = path.control.min_rtt_at;
    path.run_until(measured_at + Duration::from_secs(10));
    assert_eq!(path.count(BbrV1State::ProbeRtt), 0);
    path.run_until(measured_at + Duration::from_millis(10_500));
    assert_eq!(path.count(BbrV1State::ProbeRtt), 1);
    path.run_until(seconds(60));
    let probes = path.count(BbrV1State::ProbeRtt);
    assert!((1..=5).contains(&probes), "{probes}");
    for pair in path.states.windows(2).filter(|pair| pair[0].1 == BbrV1State::ProbeRtt) {
        let lasted = pair[1].0.since(pair[0].0);
        let most = Duration::from_millis(200 + 4 * 60);
        assert!(lasted >= Duration::from_millis(200) && lasted <= most, "{lasted:?}");
    }
    assert!(path.control.min_rtt().unwrap() >= Duration::from_millis(60));
}

#[test]
fn the_cycle_has_one_probe_one_drain_and_six_phases_of_a_round_trip() {
    let mut path = over(20, 50, 2.0);
    path.run_until(seconds(3));
    let mut phases: Vec<(usize, Time)> = Vec::new();
    while path.now < seconds(7) {
        path.run_until(path.now + Duration::from_millis(1));
        let Mode::ProbeBw { phase, since } = path.control.mode else { continue };
        if phases.last().is_none_or(|(_, last)| *last != since) {
            phases.push((phase, since));
        }
    }
    let in_order = phases.windows(2).all(|pair| pair[1].0 == (pair[0].0 + 1) % 8);
    assert!(in_order && phases.len() >= 48, "{phases:?}");
    for pair in phases.windows(2).filter(|pair| pair[0].0 != 1) {
        let lasted = pair[1].1.since(pair[0].1);
        assert!(lasted >= Duration::from_millis(50), "{pair:?}");
        assert!(lasted <= Duration::from_millis(110), "{pair:?}");
    }
}

/// A loss rate of 5 % costs no more than the lost packets.
#[test]
fn random_losses_do_not_lower_the_rate() {
    let mut path = over(50, 40, 2.0);
    path.loss = 0.05;
    path.run_until(seconds(5));
    let goodput = path.run_until(seconds(30));
    assert!(goodput > 0.85 * 50.0, "{goodput}");
}

#[test]
fn a_shallow_queue_loses_much_because_losses_do_not_lower_the_rate() {
    let share = |queue_bdp: f64| {
        let mut path = over(50, 40, queue_bdp);
        path.run_until(seconds(10));
        let (lost, delivered) = (path.lost, path.delivered);
        let goodput = path.run_until(seconds(60));
        assert!(goodput > 0.9 * 50.0, "{goodput}");
        (path.lost - lost) as f64 / (path.delivered - delivered) as f64
    };
    let (shallow, deep) = (share(0.05), share(1.0));
    assert!(shallow > 0.005 && shallow < 0.1 && deep == 0.0, "{shallow} {deep}");
}

/// An acknowledgement of a packet; `in_flight` bytes remain in flight.
fn ack(delivered: u64, in_flight: u64, in_recovery: bool) -> AckSample {
    let rtt = Some(Duration::from_millis(100));
    AckSample {
        acked_bytes: PACKET,
        in_flight_before: in_flight + PACKET,
        advanced: true,
        in_recovery,
        rtt,
        srtt: rtt,
        least_rtt: rtt,
        delivery: Delivery {
            delivered: delivered * PACKET,
            prior_delivered: (delivered * PACKET).saturating_sub(40 * PACKET),
            rate: Some(Rate::from_bps(40 * PACKET * 8 * 10)),
            in_flight,
            ..Delivery::default()
        },
        ..AckSample::default()
    }
}

#[test]
fn the_first_round_of_recovery_conserves_packets_and_its_end_restores_the_window() {
    let mut bbr = BbrV1::new(CongestionOptions::tcp(PACKET));
    let at = |number: u64| Time::from_millis(100 + number);
    for number in 1..=300 {
        bbr.on_ack(at(number), &ack(number, 40 * PACKET, false));
    }
    let before = bbr.window();
    assert!(before > 60 * PACKET, "{before}");
    for number in 0..5 {
        bbr.on_lost(at(301), &LostPacket { number, bytes: PACKET });
    }
    bbr.on_loss(at(301));
    assert_eq!(bbr.window(), 36 * PACKET, "35 in flight and one for the acknowledged packet");
    bbr.on_ack(at(302), &ack(301, 35 * PACKET, true));
    assert_eq!(bbr.window(), 36 * PACKET);
    // The window grows by the acknowledged bytes in the next round.
    for number in 0..60 {
        bbr.on_ack(at(303 + number), &ack(302 + number, 36 * PACKET, true));
    }
    assert!(bbr.window() > 50 * PACKET, "{}", bbr.window());
    bbr.on_ack(at(400), &ack(400, 36 * PACKET, false));
    assert_eq!(bbr.window(), before);
}

#[test]
fn an_undo_restores_the_window_and_looks_for_a_full_path_again() {
    let mut path = over(50, 40, 2.0);
    path.run_until(seconds(3));
    let (now, before) = (path.now, path.control.window());
    path.control.on_timeout(now);
    assert!(path.control.window() < before);
    path.control.on_spurious(now);
    assert_eq!((path.control.window(), path.control.full_bw), (before, 0));
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
    let goodput = path.run_until(seconds(20));
    assert!(goodput > 17.0, "{goodput}");
}

#[test]
fn an_application_that_sends_slowly_keeps_the_estimate_and_needs_no_probe_rtt() {
    let mut path = over(20, 50, 2.0);
    path.run_until(seconds(4));
    path.offered = Some(10_000);
    path.sent = 4 * 10_000;
    path.run_until(seconds(30));
    assert_eq!(path.count(BbrV1State::ProbeRtt), 0, "{:?}", path.states);
    assert!(path.control.max_bw().as_bps() > 18_000_000, "{:?}", path.control.max_bw());
}

#[test]
fn a_rate_that_grows_fivefold_is_found_and_one_that_falls_is_followed() {
    let mut path = over(10, 40, 2.0);
    path.run_until(seconds(8));
    path.rate = Rate::from_bps(50_000_000);
    path.queue *= 5;
    // A probe every eight round trips raises the rate by at most a quarter.
    path.run_until(seconds(14));
    let goodput = path.run_until(seconds(18));
    assert!(goodput > 45.0, "{goodput}");
    path.rate = Rate::from_bps(10_000_000);
    path.queue /= 5;
    path.run_until(seconds(24));
    let goodput = path.run_until(seconds(30));
    assert!(goodput > 9.0, "{goodput}");
}

#[test]
fn the_first_phase_differs_from_path_to_path_and_is_never_the_drain() {
    let options = CongestionOptions { seed: Seed::root(3), ..CongestionOptions::tcp(PACKET) };
    let mut seen = [0; 8];
    for bbr in &mut BbrV1::for_paths(options, 200) {
        bbr.start_probe_bw(Time::ZERO);
        let Mode::ProbeBw { phase, .. } = bbr.mode else { panic!("it has just begun") };
        seen[phase] += 1;
    }
    assert!(seen[1] == 0 && seen.iter().filter(|count| **count > 10).count() == 7, "{seen:?}");
}
