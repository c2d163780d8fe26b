//! Tests that every registered algorithm runs by name.

use proptest::prelude::*;
use ropewalk_base::{Duration, PathId, Rate, Time};

use super::{
    AckSample, Congestion, CongestionControl, CongestionFlavour, CongestionOptions, Delivery,
    PathCongestion, SentPacket,
};

/// A unit for easy calculation, bytes.
pub(super) const UNIT: u64 = 1000;

/// An acknowledgement of `bytes` that advances, with `in_flight_before` bytes in flight.
pub(super) fn ack(bytes: u64, in_flight_before: u64) -> AckSample {
    AckSample { acked_bytes: bytes, in_flight_before, advanced: true, ..AckSample::default() }
}

/// An acknowledgement at a full window.
pub(super) fn full_ack(path: &impl PathCongestion, bytes: u64) -> AckSample {
    ack(bytes, path.window())
}

/// Like [`full_ack`], for a connection.
pub(super) fn full_ack_on(control: &impl CongestionControl, path: PathId, bytes: u64) -> AckSample {
    ack(bytes, control.window(path))
}

/// Options under which paths begin in congestion avoidance, with a window that can be reduced.
pub(super) fn settled() -> CongestionOptions {
    CongestionOptions {
        initial_window: Some(1000 * UNIT),
        initial_ssthresh: 0,
        ..CongestionOptions::tcp(UNIT)
    }
}

/// Reduces the windows to these numbers of units, and sets the round trips in milliseconds.
pub(super) fn at(control: &mut impl CongestionControl, windows: &[u64], rtts_ms: &[u64]) {
    for (i, (window, rtt)) in windows.iter().zip(rtts_ms).enumerate() {
        let path = PathId::from_index(i);
        control.limit(path, window * UNIT);
        let srtt = Some(Duration::from_millis(*rtt));
        let sample = AckSample { srtt, advanced: false, ..full_ack_on(control, path, 0) };
        control.on_ack(path, Time::ZERO, &sample);
    }
}

/// Bytes by which an acknowledgement of `bytes` grows a full window.
pub(super) fn grown_by_an_ack(control: &mut impl CongestionControl, path: u8, bytes: u64) -> f64 {
    let before = control.window(PathId(path));
    let sample = full_ack_on(control, PathId(path), bytes);
    control.on_ack(PathId(path), Time::ZERO, &sample);
    control.window(PathId(path)) as f64 - before as f64
}

/// Every algorithm in every variant, for `paths` paths that begin in slow start. Slow start is short,
/// because otherwise windows without a loss would grow without limit.
fn all(paths: usize) -> Vec<(String, Congestion)> {
    let published =
        CongestionOptions { initial_ssthresh: 64 * UNIT, ..CongestionOptions::tcp(UNIT) };
    let mut all: Vec<_> = Congestion::NAMES.map(|name| (name, published)).into();
    for compensated in [false, true] {
        let flavour = CongestionFlavour::Chihani2011 { compensated };
        let options = CongestionOptions { flavour, ..published };
        all.extend(Congestion::CHIHANI_NAMES.map(|name| (name, options)));
    }
    let make = |(name, options): (&str, CongestionOptions)| {
        let made = Congestion::from_name(name, &options, paths).expect("a registered name");
        (format!("{name}, {:?}", options.flavour), made)
    };
    all.into_iter().map(make).collect()
}

/// Algorithms whose window follows losses. The windows of `bbr` and `bbr-v1` follow delivery rates.
fn loss_based(paths: usize) -> Vec<(String, Congestion)> {
    let mut all = all(paths);
    all.retain(|(_, control)| !matches!(control, Congestion::Bbr(_) | Congestion::BbrV1(_)));
    all
}

const RTT: Duration = Duration::from_millis(100);

/// The rate of a path that delivers one unit per millisecond.
fn delivery(at: Time, in_flight: u64) -> Delivery {
    let delivered = |at: Time| at.as_nanos() / 1_000_000 * UNIT;
    let rate = Rate::from_bps(UNIT * 8 * 1000);
    Delivery {
        delivered: delivered(at + RTT),
        prior_delivered: delivered(at),
        rate: Some(rate),
        in_flight,
        ..Delivery::default()
    }
}

/// Acknowledges one window of every path, segment by segment, over one round trip without queueing.
fn round(control: &mut Congestion, paths: usize, now: Time) -> Time {
    for i in 0..paths {
        let path = PathId::from_index(i);
        let segments = (control.window(path) / UNIT).max(1);
        for k in 0..segments {
            let at = now + RTT * (k + 1) / segments;
            let sample = AckSample {
                rtt: Some(RTT),
                srtt: Some(RTT),
                least_rtt: Some(RTT),
                delivery: delivery(at, control.window(path)),
                ..full_ack_on(control, path, UNIT)
            };
            control.on_ack(path, at, &sample);
        }
    }
    now + RTT
}

fn rounds(control: &mut Congestion, paths: usize, from: Time, count: u32) -> Time {
    (0..count).fold(from, |now, _| round(control, paths, now))
}

/// Sends and acknowledges on a path where the application keeps `flight` units in flight, for `rounds`
/// round trips whose delivery rates vary by these percentages. Returns the maximum window.
fn with_an_idle_window(control: &mut Congestion, flight: u64, rounds: u64, rates: &[u64]) -> u64 {
    let path = PathId(0);
    let (mut now, mut sent, mut largest) = (Time::from_millis(1), 0, 0);
    for round in 0..rounds {
        for k in 0..flight {
            let packet = SentPacket {
                number: sent + k,
                bytes: UNIT,
                in_flight_before: k * UNIT,
                app_limited: true,
                out_of_data: true,
            };
            control.on_sent(path, now, &packet);
        }
        let percent = rates[round as usize % rates.len()];
        // The full flight is acknowledged by a burst.
        now += RTT * 100 / percent;
        for k in 0..flight {
            let number = sent + k;
            let rtt = Some(RTT * 100 / percent);
            let delivery = Delivery {
                newest: Some(number),
                oldest: number + 1,
                delivered: (number + 1) * UNIT,
                prior_delivered: sent * UNIT,
                rate: Some(Rate::from_bps((k + 1) * UNIT * 80 * percent / 100)),
                in_flight: (flight - k - 1) * UNIT,
            };
            let sample = AckSample {
                rtt,
                srtt: rtt,
                least_rtt: Some(RTT),
                app_limited: true,
                delivery,
                flight_empty: k + 1 == flight,
                ..ack(UNIT, (flight - k) * UNIT)
            };
            control.on_ack(path, now, &sample);
            largest = largest.max(control.window(path));
        }
        sent += flight;
    }
    largest
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// RFC 9438, 5.8 and RFC 7661, 4: a window that the application does not use does not grow.
    #[test]
    fn a_window_that_is_not_used_stays_within_a_small_multiple_of_what_is_in_flight(
        flight in 1..60u64,
        rates in prop::collection::vec(30..100u64, 1..40),
    ) {
        // The model of Chihani and Collange does not check whether a window is used. BBR version 1
        // follows the Linux kernel, whose window also includes data that aggregated acknowledgements have
        // delayed.
        let asks = |name: &str| !name.contains("Chihani") && !name.contains("bbr-v1");
        for (name, mut control) in all(1).into_iter().filter(|(name, _)| asks(name)) {
            let initial = control.window(PathId(0));
            let largest = with_an_idle_window(&mut control, flight, 300, &rates);
            let allowed = (4 * flight * UNIT).max(2 * initial);
            prop_assert!(largest <= allowed, "{name}: {largest} B, {flight} units in flight");
        }
    }
}

#[test]
fn a_window_never_falls_below_one_unit() {
    for (name, mut control) in all(2) {
        let mut now = rounds(&mut control, 2, Time::ZERO, 5);
        for step in 0..200u32 {
            let path = PathId((step % 2) as u8);
            match step % 7 {
                0 | 3 => control.on_loss(path, now),
                1 => control.on_timeout(path, now),
                2 => control.on_ecn(path, now),
                4 => control.on_idle(path, now),
                5 => control.on_return(path, now),
                _ => control.limit(path, u64::from(step % 3)),
            }
            assert!(control.window(path) >= UNIT, "{name}: step {step}");
            if step % 5 == 0 {
                now = round(&mut control, 2, now);
            }
            assert!((0..2).all(|p| control.window(PathId(p)) >= UNIT), "{name}: step {step}");
        }
    }
}

#[test]
fn a_limit_holds_until_the_window_grows_again() {
    for (name, mut control) in all(2) {
        let now = rounds(&mut control, 2, Time::ZERO, 6);
        let other = control.window(PathId(1));
        control.limit(PathId(0), 8 * UNIT);
        assert_eq!(control.window(PathId(0)), 8 * UNIT, "{name}");
        assert_eq!(control.window(PathId(1)), other, "{name}: the limit is of one path");
        rounds(&mut control, 2, now, 3);
        assert!(control.window(PathId(0)) > 8 * UNIT, "{name}: it may grow again");
        let before = control.window(PathId(0));
        control.limit(PathId(0), 2 * before);
        assert_eq!(control.window(PathId(0)), before, "{name}: a limit above it changes nothing");
    }
}

#[test]
fn a_loss_reduces_the_window_of_its_path_only_and_undo_restores_it() {
    type Event = fn(&mut Congestion, PathId, Time);
    let events: [(&str, Event); 3] = [
        ("loss", Congestion::on_loss),
        ("timeout", Congestion::on_timeout),
        ("mark", Congestion::on_ecn),
    ];
    for (what, event) in events {
        for (name, mut control) in loss_based(2) {
            let now = rounds(&mut control, 2, Time::ZERO, 6);
            let before = [0, 1].map(|p| (control.window(PathId(p)), control.ssthresh(PathId(p))));
            event(&mut control, PathId(0), now);
            assert!(control.window(PathId(0)) <= before[0].0 * 3 / 4, "{name}, {what}");
            assert_eq!(control.window(PathId(1)), before[1].0, "{name}, {what}: the other path");
            control.on_spurious(PathId(0), now);
            let after = [0, 1].map(|p| (control.window(PathId(p)), control.ssthresh(PathId(p))));
            assert_eq!(after, before, "{name}, {what}");
            // Nothing is left to undo.
            event(&mut control, PathId(0), now);
            let cut = control.window(PathId(0));
            control.on_spurious(PathId(1), now);
            assert_eq!(control.window(PathId(0)), cut, "{name}, {what}: undo of another path");
        }
    }
}

#[test]
fn an_undo_keeps_what_has_grown_since_and_happens_once() {
    for (name, mut control) in loss_based(1) {
        let now = rounds(&mut control, 1, Time::ZERO, 4);
        let before = control.window(PathId(0));
        control.on_loss(PathId(0), now);
        let now = rounds(&mut control, 1, now, 200);
        let grown = control.window(PathId(0));
        control.on_spurious(PathId(0), now);
        assert_eq!(control.window(PathId(0)), grown.max(before), "{name}");
        control.on_return(PathId(0), now);
        let fresh = control.window(PathId(0));
        control.on_spurious(PathId(0), now);
        if !matches!(control, Congestion::Rfc9260(_)) {
            assert_eq!(control.window(PathId(0)), fresh, "{name}: taken back twice");
        }
    }
}

#[test]
fn no_round_trip_more_than_doubles_a_window_and_none_grows_from_what_recovers_or_is_idle() {
    for (name, mut control) in loss_based(2) {
        let mut now = Time::ZERO;
        for _ in 0..6 {
            let before = [0, 1].map(|p| control.window(PathId(p)));
            now = round(&mut control, 2, now);
            for (p, before) in before.into_iter().enumerate() {
                let after = control.window(PathId(p as u8));
                // One segment of rounding, for windows that are not a multiple of it.
                assert!(after <= 2 * before + UNIT, "{name}: {before} to {after}");
            }
        }
        let before = control.window(PathId(0));
        let still = AckSample { advanced: false, ..full_ack_on(&control, PathId(0), UNIT) };
        control.on_ack(PathId(0), now, &still);
        assert_eq!(control.window(PathId(0)), before, "{name}: nothing advanced");
        if matches!(control, Congestion::Chihani2011(_)) {
            continue;
        }
        let recovers = AckSample { in_recovery: true, ..full_ack_on(&control, PathId(0), UNIT) };
        control.on_ack(PathId(0), now, &recovers);
        control.on_ack(PathId(0), now, &ack(UNIT, before / 2));
        assert_eq!(control.window(PathId(0)), before, "{name}: recovery, or half used");
    }
}

#[test]
fn one_path_under_a_coupled_rule_is_newreno() {
    let reno = |name: &str| Congestion::from_name(name, &CongestionOptions::tcp(UNIT), 1);
    for name in ["lia", "fully-coupled", "olia", "balia"] {
        let mut pair = [reno(name), reno("newreno")].map(|made| made.expect("a registered name"));
        let mut now = Time::ZERO;
        for step in 0..300u32 {
            for control in &mut pair {
                if step == 5 || step % 37 == 36 {
                    control.on_loss(PathId(0), now);
                }
                if step % 113 == 112 {
                    control.on_timeout(PathId(0), now);
                }
                round(control, 1, now);
            }
            now += RTT;
            let [coupled, alone] = [0, 1].map(|i| pair[i].window(PathId(0)) as f64);
            // NewReno counts a full window of bytes before it grows by a segment; the coupled algorithms
            // grow with each acknowledgement. The difference is a segment, plus a little for the steps of
            // the last rounds.
            assert!((coupled - alone).abs() <= 2.0 * UNIT as f64, "{name}: {coupled} {alone}");
        }
    }
}

#[test]
fn coupled_paths_together_grow_no_faster_than_one_alone() {
    for name in ["lia", "fully-coupled", "olia", "balia"] {
        let mut control = Congestion::from_name(name, &settled(), 3).expect("a registered name");
        at(&mut control, &[20, 20, 20], &[100; 3]);
        let total =
            |control: &Congestion| (0..3).map(|p| control.window(PathId(p))).sum::<u64>() as f64;
        let before = total(&control);
        round(&mut control, 3, Time::ZERO);
        let grown = (total(&control) - before) / UNIT as f64;
        assert!(grown > 0.2 && grown <= 1.01, "{name}: {grown} segments per round trip");
    }
}

#[test]
fn a_copy_goes_on_alike() {
    for (name, mut control) in loss_based(2) {
        let now = rounds(&mut control, 2, Time::ZERO, 8);
        control.on_loss(PathId(0), now);
        let mut copy = control.clone();
        rounds(&mut control, 2, now, 20);
        rounds(&mut copy, 2, now, 20);
        let windows = |c: &Congestion| [0, 1].map(|p| c.window(PathId(p)));
        assert_eq!(windows(&control), windows(&copy), "{name}");
    }
}
