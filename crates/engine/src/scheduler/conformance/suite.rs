//! Tests that every registered scheduler runs by name.

use super::super::{
    Capacity, Daps, DapsOptions, LinuxOptions, OtiasForm, PlanOptions, Schedule, Scheduler,
    SchedulerOptions, StmsOptions, Windows,
};
use super::*;

fn scheduler(name: &str) -> Scheduler {
    Scheduler::from_name(name, &SchedulerOptions::default()).expect("a registered name")
}

/// The names of the schedulers with such claims.
pub(super) fn claiming(such: impl Fn(&Claims) -> bool) -> Vec<&'static str> {
    let mut names = Scheduler::NAMES.to_vec();
    names.retain(|name| such(&scheduler(name).claims()));
    names
}

fn transfer(virtual_paths: &[VirtualPath], chunks: u64, buffer: u64) -> Transfer {
    Transfer {
        virtual_paths: virtual_paths.to_vec(),
        chunks,
        buffer,
        deadline: Time::from_secs(600),
    }
}

/// All registered schedulers, and every variant of the delay-aware ones.
fn everyone() -> Vec<(String, Scheduler)> {
    let mut all: Vec<_> = Scheduler::NAMES.map(|n| (n.to_owned(), scheduler(n))).to_vec();
    let plans = [
        PlanOptions { windows: Windows::Smoothed, ..PlanOptions::default() },
        PlanOptions { capacity: Capacity::WindowPerRoundTrip, ..PlanOptions::default() },
        PlanOptions { quantum: Duration::ZERO, period_cap: 0, ..PlanOptions::default() },
    ];
    for (i, plan) in plans.into_iter().enumerate() {
        for name in ["daps", "daps-lcm"] {
            let daps = DapsOptions { plan, ..DapsOptions::default() };
            let options = SchedulerOptions { daps, ..SchedulerOptions::default() };
            let made = Scheduler::from_name(name, &options).expect("a registered name");
            all.push((format!("{name} {i}"), made));
        }
    }
    let usual = SchedulerOptions::default();
    for (name, options) in [
        ("redundant", SchedulerOptions { copies: 1.5, ..usual }),
        ("bas", SchedulerOptions { bas_with_delay: true, ..usual }),
        ("otias", SchedulerOptions { otias_form: OtiasForm::Floor, ..usual }),
        ("otias", SchedulerOptions { otias_form: OtiasForm::Real, ..usual }),
        ("stms", SchedulerOptions { stms: StmsOptions { gain: 0.0 }, ..usual }),
        ("stms", SchedulerOptions { stms: StmsOptions { gain: 1.0 }, ..usual }),
        (
            "linux",
            SchedulerOptions {
                linux: LinuxOptions { burst: 1, ..LinuxOptions::default() },
                ..usual
            },
        ),
        ("ecf", SchedulerOptions { ecf_beta: 0.0, ..usual }),
    ] {
        let made = Scheduler::from_name(name, &options).expect("a registered name");
        all.push((format!("{name} {options:?}"), made));
    }
    all
}

/// Runs the transfer to its end. Fails if it does not complete.
fn complete(name: &str, transfer: &Transfer, scheduler: &mut impl Schedule) -> Outcome {
    let outcome = run(transfer, scheduler);
    assert_eq!(outcome.delivered, transfer.chunks, "{name} stalls");
    outcome
}

#[test]
fn on_one_path_all_choose_alike() {
    let one = transfer(&[VirtualPath::new(7, 30)], 500, 40);
    let reference = complete("round-robin", &one, &mut scheduler("round-robin"));
    let choices =
        |o: &Outcome| o.sent.iter().map(|(_, path, seq)| (*path, *seq)).collect::<Vec<_>>();
    for (name, mut scheduler) in everyone() {
        let outcome = complete(&name, &one, &mut scheduler);
        assert!(choices(&outcome) == choices(&reference), "{name} chooses {:?}", outcome.sent);
        // Batches of less than a window are paced, but not slower.
        let late = outcome.finished.since(reference.finished);
        assert!(late <= Duration::from_millis(60), "{name} is {late} late");
    }
}

#[test]
fn on_equal_paths_those_that_predict_arrivals_stay_within_a_chunk_of_alternation() {
    let equal = transfer(&[VirtualPath::new(1, 20), VirtualPath::new(1, 20)], 400, 40);
    for name in claiming(|claims| claims.predicts_arrivals) {
        let outcome = complete(name, &equal, &mut scheduler(name));
        let mut lead = 0i64;
        for (_, path, seq) in &outcome.sent {
            lead += if path.0 == 0 { 1 } else { -1 };
            assert!(lead.abs() <= 1, "{name}: one path leads by {lead} chunks at {seq}");
        }
        assert!(outcome.most_buffered <= 1, "{name} buffers {}", outcome.most_buffered);
    }
}

#[test]
fn the_sequences_of_sarwar_table_ii_come_out() {
    let virtual_paths = [VirtualPath::instant_ack(2, 10), VirtualPath::instant_ack(5, 100)];
    let table = transfer(&virtual_paths, 50, 50);
    for name in ["daps", "daps-lcm"] {
        let outcome = complete(name, &table, &mut scheduler(name));
        let first = |path: u8, chunks: usize| outcome.carried(path)[..chunks].to_vec();
        assert_eq!(first(0, 20), (0..20).collect::<Vec<_>>(), "{name}: P1 carries 1 to 20");
        assert_eq!(first(1, 5), (20..25).collect::<Vec<_>>(), "{name}: P2 carries 21 to 25");
        assert!(outcome.most_buffered <= 5, "{name} buffers {}", outcome.most_buffered);
        assert_eq!(outcome.finished, Time::from_millis(200), "{name}: two periods");
    }
}

#[test]
fn with_delays_of_one_to_ten_daps_buffers_a_batch_and_round_robin_ten() {
    let virtual_paths = [VirtualPath::instant_ack(4, 10), VirtualPath::instant_ack(4, 100)];
    let unequal = transfer(&virtual_paths, 4000, 1000);
    let buffered = |name: &str| complete(name, &unequal, &mut scheduler(name)).most_buffered;
    assert!(buffered("daps") <= 4, "daps holds {}", buffered("daps"));
    assert!(buffered("daps-lcm") <= 4, "daps-lcm holds {}", buffered("daps-lcm"));
    let blind = buffered("round-robin");
    assert!((32..=48).contains(&blind), "round robin holds {blind}, not about ten batches of 4");
}

#[test]
fn nobody_stalls_when_the_fast_path_dies() {
    let mut fast = VirtualPath::new(4, 10);
    fast.dies = Time::from_millis(137);
    let virtual_paths = [fast, VirtualPath::new(6, 100), VirtualPath::new(3, 55)];
    for (name, mut scheduler) in everyone() {
        for count in 2..=3 {
            let dying = transfer(&virtual_paths[..count], 600, 20);
            complete(&name, &dying, &mut scheduler);
        }
    }
}

#[test]
fn nobody_stalls_on_estimates_that_are_wrong_or_missing() {
    let millis = |m| Some(Duration::from_millis(m));
    // Estimates that are equal, reversed, absurdly small and large, or missing on one or both paths.
    let tellings = [
        [millis(50), millis(50)],
        [millis(100), millis(10)],
        [Some(Duration::ZERO), Some(Duration::MAX)],
        [None, millis(100)],
        [millis(10), None],
        [None, None],
    ];
    for (name, _) in everyone() {
        for told in tellings {
            let mut virtual_paths = [VirtualPath::new(4, 10), VirtualPath::new(4, 100)];
            virtual_paths.iter_mut().zip(told).for_each(|(s, told)| s.told = told);
            let mut scheduler = everyone().into_iter().find(|(n, _)| *n == name).unwrap().1;
            complete(&name, &transfer(&virtual_paths, 800, 200), &mut scheduler);
        }
    }
}

#[test]
fn the_delay_aware_are_no_slower_than_the_best_path_when_a_delay_is_off_by_half() {
    // 200 and 100 chunks/s. The receive buffer holds ten times as much as the fast path needs.
    let virtual_paths = [VirtualPath::new(4, 10), VirtualPath::new(20, 100)];
    let best = Time::from_secs(15);
    for name in ["daps", "daps-lcm"] {
        for (fast, slow) in [(10, 100), (5, 100), (15, 100), (10, 50), (10, 150), (15, 150)] {
            let mut virtual_paths = virtual_paths;
            virtual_paths[0].told = Some(Duration::from_millis(fast));
            virtual_paths[1].told = Some(Duration::from_millis(slow));
            let outcome = complete(name, &transfer(&virtual_paths, 3000, 40), &mut scheduler(name));
            assert!(outcome.finished <= best, "{name} {fast} {slow}: {}", outcome.finished);
        }
    }
}

#[test]
fn batches_per_round_trip_fill_both_paths_through_a_buffer_that_whole_windows_overrun() {
    // With a full window per forward delay, the slow path sends 40 chunks ahead: the end of the buffer.
    let virtual_paths = [VirtualPath::new(4, 10), VirtualPath::new(20, 100)];
    let finished = |capacity| {
        let plan = PlanOptions { capacity, ..PlanOptions::default() };
        let mut daps = Daps::new(DapsOptions { plan, ..DapsOptions::default() });
        complete("daps", &transfer(&virtual_paths, 3000, 40), &mut daps).finished
    };
    assert!(finished(Capacity::WindowPerRoundTrip) <= Time::from_secs(10), "the sum of both");
    assert!(finished(Capacity::Window) > Time::from_secs(14), "the fast path alone");
}

#[test]
fn a_receive_buffer_of_one_chunk_still_lets_everybody_finish() {
    let virtual_paths = [VirtualPath::new(4, 10), VirtualPath::new(4, 100)];
    for (name, mut scheduler) in everyone() {
        complete(&name, &transfer(&virtual_paths, 60, 1), &mut scheduler);
    }
}

#[test]
fn a_clone_decides_alike() {
    let virtual_paths = [VirtualPath::new(4, 10), VirtualPath::new(4, 70)];
    for (name, mut scheduler) in everyone() {
        complete(&name, &transfer(&virtual_paths, 100, 50), &mut scheduler);
        let mut fork = scheduler.clone();
        let next = transfer(&virtual_paths, 300, 50);
        let (own, forked) = (run(&next, &mut scheduler), run(&next, &mut fork));
        assert_eq!(own.sent, forked.sent, "{name}");
    }
}

/// Chunks per second, and the maximum in the reorder buffer.
fn steady(
    virtual_paths: &[VirtualPath],
    buffer: u64,
    scheduler: &mut impl Schedule,
) -> (f64, usize) {
    let outcome = complete("steady", &transfer(virtual_paths, 5000, buffer), scheduler);
    (5000.0 / outcome.finished.as_secs_f64(), outcome.most_buffered)
}

#[test]
fn batches_per_round_trip_come_near_the_bound_with_less_reordering_than_round_robin() {
    // 1 Mbit/s and 20 ms together with the slow path (Kuhn et al., 2014), 1500-B packets, windows that
    // together fill the receive buffer. A fast window of 5 includes a queue on the path.
    for (gap_us, millis, buffer, fast_window, slow_window) in [
        (6_000, 100, 30, 3, 27),
        (6_000, 100, 30, 5, 25),
        (12_000, 100, 30, 3, 18),
        (6_000, 50, 23, 3, 18),
    ] {
        let virtual_path = |window, millis, gap_us| {
            let gap = Duration::from_micros(gap_us);
            let virtual_path = VirtualPath { gap, ..VirtualPath::new(window, millis) };
            VirtualPath { told: Some(virtual_path.round_trip() / 2), ..virtual_path }
        };
        let virtual_paths =
            [virtual_path(fast_window, 10, 12_000), virtual_path(slow_window, millis, gap_us)];
        let rate = |s: &VirtualPath| s.window as f64 / s.round_trip().as_secs_f64();
        let bound: f64 = virtual_paths.iter().map(rate).sum();

        let plan = PlanOptions { capacity: Capacity::WindowPerRoundTrip, ..PlanOptions::default() };
        let mut daps = Daps::new(DapsOptions { plan, ..DapsOptions::default() });
        let (rate, held) = steady(&virtual_paths, buffer, &mut daps);
        let (_, blind) = steady(&virtual_paths, buffer, &mut scheduler("round-robin"));
        assert!(rate > 0.93 * bound, "{rate} of {bound} chunks/s with {virtual_paths:?}");
        assert!(held < blind, "{held} held, {blind} by round robin, with {virtual_paths:?}");
    }
}

/// A scheduler that sees a modified view.
struct Shown<S, F>(S, F);

impl<S: Schedule, F: FnMut(&View<'_>, &mut Vec<PathView>) -> View<'static>> Schedule
    for Shown<S, F>
{
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let mut paths = view.paths.to_vec();
        let shown = (self.1)(view, &mut paths);
        self.0.decide(&View { paths: &paths, ..shown })
    }

    fn on_sent(&mut self, sent: &SentReport) {
        self.0.on_sent(sent);
    }
}

fn without_paths(view: &View<'_>) -> View<'static> {
    View { paths: &[], fragment_ends: &[], ..*view }
}

#[test]
fn blest_without_an_end_of_the_window_and_ecf_without_an_end_of_the_data_are_min_rtt() {
    let virtual_paths =
        [VirtualPath::new(4, 10), VirtualPath::new(9, 100), VirtualPath::new(3, 35)];
    let unequal = transfer(&virtual_paths, 900, 60);
    let reference = complete("min-rtt", &unequal, &mut scheduler("min-rtt"));
    for name in ["blest", "ecf"] {
        let mut endless = Shown(scheduler(name), |view: &View<'_>, _: &mut Vec<PathView>| View {
            receive_buffer: u64::MAX,
            backlog_bytes: u64::MAX,
            ..without_paths(view)
        });
        assert_eq!(complete(name, &unequal, &mut endless).sent, reference.sent, "{name}");
        let plain = complete(name, &unequal, &mut scheduler(name));
        assert_ne!(plain.sent, reference.sent, "{name} must have something to lose");
    }
}

#[test]
fn the_forms_of_otias_carry_the_same_data_in_different_places() {
    let unequal = transfer(&[VirtualPath::new(4, 10), VirtualPath::new(9, 100)], 900, 200);
    let outcome = |otias_form| {
        let options = SchedulerOptions { otias_form, ..SchedulerOptions::default() };
        complete("otias", &unequal, &mut Scheduler::from_name("otias", &options).unwrap())
    };
    let [ceil, floor] = [OtiasForm::Ceil, OtiasForm::Floor].map(outcome);
    let first = |o: &Outcome| o.carried(1)[0];
    // 4 immediately, then 4 per 20 ms: at 100 ms after 10, 30, ... 90 ms; with `floor` a round later.
    assert_eq!((first(&ceil), first(&floor)), (20, 24));
}

#[test]
fn those_that_predict_arrivals_hold_less_than_round_robin_when_delays_are_one_to_ten() {
    let virtual_paths = [VirtualPath::new(4, 10), VirtualPath::new(4, 100)];
    let unequal = transfer(&virtual_paths, 4000, 1000);
    let held = |name: &str| complete(name, &unequal, &mut scheduler(name)).most_buffered;
    let blind = held("round-robin");
    for name in claiming(|claims| claims.predicts_arrivals) {
        assert!(held(name) * 3 < blind, "{name} holds {}, round robin {blind}", held(name));
    }
}

/// Errors of the round trips that a scheduler sees.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    /// Between a tenth and ten times the true value, drawn for each decision.
    Noise,
    /// The values of a thousand decisions before, when the paths were swapped.
    Stale,
    /// Those of the path with the next identifier.
    Swapped,
    /// No value for the second path.
    Missing,
}

fn troubled(trouble: Trouble) -> impl FnMut(&View<'_>, &mut Vec<PathView>) -> View<'static> {
    let mut rng = ropewalk_base::Seed::root(7).child("trouble").rng();
    let mut asked = 0;
    move |view, paths| {
        asked += 1;
        let before: Vec<_> = paths.iter().map(|p| (p.srtt, p.last_rtt, p.forward_delay)).collect();
        for (i, path) in paths.iter_mut().enumerate() {
            let factor = 10f64.powf(2.0 * rng.unit() - 1.0);
            let off = |d: Option<Duration>| d.map(|d| d.mul_f64(factor));
            let seen = match trouble {
                Trouble::Noise => (off(path.srtt), off(path.last_rtt), off(path.forward_delay)),
                Trouble::Stale if asked > 1000 => before[i],
                Trouble::Missing if i == 0 => before[i],
                Trouble::Missing => (None, None, None),
                Trouble::Stale | Trouble::Swapped => before[(i + 1) % before.len()],
            };
            (path.srtt, path.last_rtt, path.forward_delay) = seen;
        }
        without_paths(view)
    }
}

#[test]
fn nobody_starves_on_round_trips_that_are_noisy_stale_swapped_or_missing() {
    let virtual_paths = [VirtualPath::new(4, 10), VirtualPath::new(20, 100)];
    for trouble in [Trouble::Noise, Trouble::Stale, Trouble::Swapped, Trouble::Missing] {
        for (name, scheduler) in everyone() {
            for buffer in [3, 40, 1000] {
                let mut misled = Shown(scheduler.clone(), troubled(trouble));
                let told = format!("{name} {trouble:?} {buffer}");
                complete(&told, &transfer(&virtual_paths, 1500, buffer), &mut misled);
            }
        }
    }
}

#[test]
fn with_an_ample_buffer_wrong_round_trips_never_cost_more_than_the_better_path() {
    // 200 and 100 chunks/s. Schedulers that assign a chunk to a path permanently may have assigned all of
    // them to the slow one while the values were wrong. They then finish no later than that path alone.
    let virtual_paths = [VirtualPath::new(4, 10), VirtualPath::new(20, 100)];
    let for_good = claiming(|claims| claims.assigns_for_good);
    let alone = |name| Time::from_secs(if for_good.contains(&name) { 30 } else { 15 });
    for trouble in [Trouble::Noise, Trouble::Stale, Trouble::Swapped] {
        for name in claiming(|claims| !claims.trusts_estimates) {
            let mut misled = Shown(scheduler(name), troubled(trouble));
            let outcome = complete(name, &transfer(&virtual_paths, 3000, 5000), &mut misled);
            let (took, alone) = (outcome.finished, alone(name));
            assert!(took <= alone + Duration::from_millis(200), "{name} {trouble:?}: {took}");
        }
    }
}
