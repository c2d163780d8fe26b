//! Properties of every view, however unusual. Views are drawn at random.

use proptest::prelude::*;

use super::super::{Scheduler, SchedulerOptions};
use super::*;

/// Mostly small numbers, near the limits, and sometimes the maximum.
fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..8 * CHUNK, 2 => 0..200 * CHUNK, 1 => Just(u64::MAX)]
}

fn delay() -> impl Strategy<Value = Option<Duration>> {
    let nanos = prop_oneof![6 => 0..300_000_000u64, 1 => Just(0), 1 => Just(u64::MAX)];
    proptest::option::weighted(0.8, nanos.prop_map(Duration::from_nanos))
}

fn some_path() -> impl Strategy<Value = PathView> {
    let flags = (prop::bool::weighted(0.8), 0u32..3, prop_oneof![Just(f64::NAN), -1.0..9.0f64]);
    let windows = (bytes(), bytes(), bytes(), bytes(), prop_oneof![Just(0), bytes()]);
    let estimates = (delay(), delay(), proptest::option::of(0..1_000_000_000u64));
    (flags, windows, estimates).prop_map(|(flags, windows, estimates)| PathView {
        usable: flags.0,
        cost: flags.1,
        weight: flags.2,
        cwnd: windows.0,
        ssthresh: windows.1,
        window: windows.2,
        in_flight: windows.3,
        burst_room: windows.4,
        srtt: estimates.0,
        forward_delay: estimates.1,
        rate: estimates.2.map(Rate::from_bps),
        ..path_view(0)
    })
}

/// The drawn properties of a view, and whether the engine carries out the decision made on it.
#[derive(Clone, Debug)]
struct Moment {
    paths: Vec<PathView>,
    later: u64,
    occasion: DecisionKind,
    backlog: u64,
    sendable: u64,
    epoch: u64,
    obeyed: bool,
}

fn some_moment() -> impl Strategy<Value = Moment> {
    let paths = proptest::collection::vec((some_path(), prop::bool::weighted(0.9)), 0..5);
    let occasion = prop_oneof![
        4 => Just(DecisionKind::NewData),
        1 => (0..5u8).prop_map(|id| DecisionKind::Retransmission { lost_on: PathId(id) }),
    ];
    let sendable = prop_oneof![0..60u64, Just(u64::MAX)];
    let later = prop_oneof![Just(0), 0..500_000_000u64];
    (paths, later, occasion, 0..50u64, sendable, 0..3u64, prop::bool::weighted(0.9)).prop_map(
        |(paths, later, occasion, backlog, sendable, epoch, obeyed)| {
            // Identifiers ascend but may have gaps, as after the removal of a path.
            let numbered = paths.into_iter().enumerate().filter(|(_, (_, kept))| *kept);
            let numbered = numbered.map(|(i, (path, _))| PathView { id: PathId(i as u8), ..path });
            let paths = numbered.collect();
            Moment { paths, later, occasion, backlog, sendable, epoch, obeyed }
        },
    )
}

/// Passes the moments to the scheduler in turn. Every decision must be legal.
fn live_through(scheduler: &mut Scheduler, moments: &[Moment]) -> Result<(), TestCaseError> {
    let mut now = Time::ZERO;
    for moment in moments {
        now += Duration::from_nanos(moment.later);
        let view = View {
            now,
            occasion: moment.occasion,
            backlog_chunks: moment.backlog,
            sendable: moment.sendable,
            epoch: moment.epoch,
            ..view(&moment.paths)
        };
        let decision = scheduler.decide(&view);
        let verdict = check(&view, &decision);
        prop_assert!(verdict.is_ok(), "{}: {verdict:?} {decision:?}", scheduler.name());
        let (paths, position) = match decision.action {
            Action::Send { path, position } => (vec![path], position),
            Action::Copies { paths, position } => (paths.iter().collect(), position),
            Action::Wait { .. } | Action::Blocked => continue,
        };
        for path in paths.into_iter().filter(|_| moment.obeyed) {
            scheduler.on_sent(&SentReport { path, position, sequence: 0, bytes: CHUNK });
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_decision_is_legal(
        moments in proptest::collection::vec(some_moment(), 1..60),
        copies in prop_oneof![Just(f64::INFINITY), 0.0..4.0f64],
    ) {
        let options = SchedulerOptions { copies, ..SchedulerOptions::default() };
        for name in Scheduler::NAMES {
            let mut scheduler = Scheduler::from_name(name, &options).unwrap();
            live_through(&mut scheduler, &moments)?;
        }
    }

    /// An open path is not left idle unless the end of the queue prevents sending.
    #[test]
    fn whoever_takes_from_the_head_is_never_idle(moments in proptest::collection::vec(some_moment(), 1..40)) {
        for name in suite::claiming(|claims| claims.takes_the_head) {
            let mut scheduler = Scheduler::from_name(name, &SchedulerOptions::default()).unwrap();
            for moment in &moments {
                let view = view(&moment.paths);
                let sends = matches!(
                    scheduler.decide(&view).action,
                    Action::Send { .. } | Action::Copies { .. }
                );
                prop_assert_eq!(sends, view.open().next().is_some(), "{}", name);
            }
        }
    }
}
