use super::super::Action;
use super::super::conformance::{CHUNK, path_view, view};
use super::*;

fn millis(ms: u64) -> Option<Duration> {
    Some(Duration::from_millis(ms))
}

/// A path with a round trip of 20 ms and 10 chunks per round trip, next to a path of 100 ms.
fn unequal() -> [PathView; 2] {
    let slow = PathView { forward_delay: millis(50), srtt: millis(100), ..path_view(1) };
    [path_view(0), slow]
}

#[test]
fn the_quick_path_takes_the_head_and_the_slow_one_what_is_due_when_it_arrives() {
    let mut paths = unequal();
    let head = Lay::default().decide(&view(&paths)).action;
    assert_eq!(head, Action::Send { path: PathId(0), position: 0 });
    paths[0].in_flight = paths[0].window;
    let Action::Send { path, position } = Lay::default().decide(&view(&paths)).action else {
        panic!("the slow path may send");
    };
    assert_eq!(path, PathId(1));
    // 40 ms at 10 chunks per 20 ms, minus the uncertainty.
    assert!((18..=30).contains(&position), "{position}");
}

#[test]
fn behind_a_path_that_often_loses_a_chunk_goes_nearer_to_the_head() {
    let mut paths = unequal();
    paths[0].in_flight = paths[0].window;
    let mut position = |loss: f64| {
        paths[0].loss = loss;
        let mut lay = Lay::default();
        let late = View { now: Time::from_secs(60), ..view(&paths) };
        match lay.decide(&late).action {
            Action::Send { path: PathId(1), position } => position,
            other => panic!("the slow path may send: {other:?}"),
        }
    };
    let (clean, lossy) = (position(0.0), position(0.01));
    let least = (1.0 - LayOptions::default().reorder_margin) * clean as f64;
    assert!((least - 1.0..least + 2.0).contains(&(lossy as f64)), "{clean} and {lossy}");
}

/// Whether a path rests that held the head for 40 ms of each 100 ms and carried `chunks` of 100 chunks.
fn is_left_alone(chunks: u64, ssthresh: u64) -> bool {
    let mut lay = Lay::default();
    let mut paths = unequal();
    paths[1].ssthresh = ssthresh;
    let mut sequence = 0;
    for round in 0..100 {
        for (path, carried, millis) in [(0, 100 - chunks, 60), (1, chunks, 40)] {
            let path = PathId(path);
            for _ in 0..carried {
                lay.on_sent(&SentReport { path, position: 0, sequence, bytes: CHUNK });
                sequence += 1;
            }
            let began = round * 100 + if path.0 == 0 { 0 } else { 60 };
            for ms in (0..millis).step_by(20) {
                let now = Time::from_millis(began + ms);
                lay.decide(&View { now, acknowledged_chunks: sequence - carried, ..view(&paths) });
            }
            paths[path.index()].delivered += carried * CHUNK;
        }
    }
    paths[0].in_flight = paths[0].window;
    let now = Time::from_millis(10_010);
    let last = View { now, acknowledged_chunks: sequence, ..view(&paths) };
    lay.decide(&last).action == Action::Blocked
}

#[test]
fn a_path_that_holds_up_the_stream_for_little_is_left_alone() {
    let reached = path_view(1).cwnd;
    assert!(is_left_alone(1, reached));
    assert!(!is_left_alone(40, reached), "a path that carries as much as it holds up is used");
    assert!(!is_left_alone(1, reached + 1), "in slow start it has not shown what it can carry");
}

#[test]
fn a_path_has_its_whole_window_while_all_others_rest() {
    let mut paths = unequal();
    (paths[0].window, paths[0].in_flight) = (30 * CHUNK, 20 * CHUNK);
    let open = |lay: &mut Lay, paths: &[PathView]| {
        lay.decide(&view(paths)).action == Action::Send { path: PathId(0), position: 0 }
    };
    let mut lay = Lay::default();
    assert!(!open(&mut lay, &paths), "its data in flight is more than its share of two");
    state_of(&mut lay.states, PathId(1)).share.begin_rest(Time::ZERO);
    assert!(open(&mut lay, &paths));
    // The resting path still carries copies, so that there are measurements when it is used again.
    let late = View { now: Time::from_secs(5), ..view(&paths) };
    let both = PathSet::EMPTY.with(PathId(0)).with(PathId(1));
    assert_eq!(lay.decide(&late).action, Action::Copies { paths: both, position: 0 });
}

#[test]
fn it_waits_where_the_quick_path_delivers_all_there_is_sooner() {
    let mut paths = unequal();
    paths[0].in_flight = paths[0].window;
    let few = View { backlog_chunks: 10, ..view(&paths) };
    assert_eq!(Lay::default().decide(&few).action, Action::Blocked);
}

#[test]
fn a_path_that_owes_an_acknowledgement_is_late_by_as_long() {
    let mut paths = unequal();
    paths[0].in_flight = CHUNK;
    paths[0].overdue = Duration::from_millis(500);
    let Action::Send { path, .. } = Lay::default().decide(&view(&paths)).action else {
        panic!("something may be sent");
    };
    assert_eq!(path, PathId(1));
}

#[test]
fn a_path_that_was_idle_for_long_is_not_late_when_it_is_used_again() {
    let mut paths = unequal();
    paths[0].in_flight = CHUNK;
    paths[0].rtt_age = Duration::from_secs(500);
    assert_eq!(
        Lay::default().decide(&view(&paths)).action,
        Action::Send { path: PathId(0), position: 0 }
    );
}

#[test]
fn a_delay_that_rises_by_a_probe_for_bandwidth_is_not_that_of_the_path() {
    let mut paths = unequal();
    paths[0].in_flight = paths[0].window / 2;
    // If the queue persisted, the other path would deliver sooner, and take the head.
    paths[0].forward_delay = millis(70);
    paths[0].queueing = Duration::from_millis(60);
    paths[0].srtt = millis(80);
    for probing in [false, true] {
        paths[0].probing = probing;
        let decided = Lay::default().decide(&view(&paths)).action;
        let Action::Send { path: PathId(1), position } = decided else {
            panic!("the other path may send: {decided:?}");
        };
        assert_eq!(position > 0, probing, "position {position}, probing: {probing}");
    }
}

#[test]
fn a_path_that_was_not_heard_of_for_long_carries_a_copy_and_only_one() {
    let mut paths = unequal();
    paths[1].rtt_age = Duration::from_secs(5);
    let mut lay = Lay::default();
    let late = View { now: Time::from_secs(10), ..view(&paths) };
    let both = PathSet::EMPTY.with(PathId(0)).with(PathId(1));
    assert_eq!(lay.decide(&late).action, Action::Copies { paths: both, position: 0 });
    for path in both.iter() {
        lay.on_sent(&SentReport { path, position: 0, sequence: 0, bytes: CHUNK });
    }
    assert_eq!(lay.decide(&late).action, Action::Send { path: PathId(0), position: 0 });
}

#[test]
fn the_last_chunks_go_twice_where_the_second_path_is_soon_enough() {
    for (backlog_chunks, closing, copies) in
        [(TAIL_CHUNKS, true, true), (TAIL_CHUNKS + 1, true, false), (1, false, false)]
    {
        let paths = [path_view(0), path_view(1)];
        let tail = View { backlog_chunks, closing, ..view(&paths) };
        let action = Lay::default().decide(&tail).action;
        let hedged = matches!(action, Action::Copies { .. });
        assert_eq!(hedged, copies, "{backlog_chunks} chunks, closing: {closing}");
    }
}

#[test]
fn a_latency_budget_leaves_slow_paths_out_while_a_quick_one_works() {
    let budget = LayOptions { latency_budget: millis(40), ..LayOptions::default() };
    let mut paths = unequal();
    paths[0].in_flight = paths[0].window;
    assert_eq!(Lay::new(budget).decide(&view(&paths)).action, Action::Blocked);
    paths[0].usable = false;
    let action = Lay::new(budget).decide(&view(&paths)).action;
    assert!(matches!(action, Action::Send { path: PathId(1), .. }), "{action:?}");
}
