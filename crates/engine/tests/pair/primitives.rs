//! Requests and changes of the user during an association (RFC 9260, 11.1.9 to 11.1.13).

use ropewalk_base::{Duration, PathId, Seed, Time};
use ropewalk_engine::path::{FailureLimits, PathStatus, RtoLimits};
use ropewalk_engine::sctp::association::{CloseReason, ParameterError, Parameters, State};
use ropewalk_engine::sctp::{Association, Chunk, Config, Event, Packet, PathConfig};

use crate::driver::{
    FULL, Fate, LEFT, Pair, RIGHT, as_published, at_ms, config, in_turn, ms, name,
};

const SECOND: Duration = Duration::from_secs(1);

/// HEARTBEATs that an end has sent on a path since the log began.
fn heartbeats(pair: &Pair, end: usize, path: usize) -> usize {
    let of_path = pair.log.iter().filter(|sent| (sent.from, sent.path) == (end, path));
    of_path.flat_map(|sent| sent.packet.chunks.iter()).filter(|c| name(c) == "HEARTBEAT").count()
}

/// The same in the next `span`.
fn heartbeats_in(pair: &mut Pair, path: usize, span: Duration) -> usize {
    pair.log.clear();
    pair.run_for(span);
    heartbeats(pair, LEFT, path)
}

fn set(pair: &mut Pair, change: impl FnOnce(&mut Parameters)) {
    let mut parameters = pair.ends[LEFT].parameters();
    change(&mut parameters);
    let now = pair.now;
    pair.ends[LEFT].set_parameters(now, parameters).expect("good ones");
    assert_eq!(pair.ends[LEFT].parameters(), parameters);
    pair.drain(LEFT);
}

fn change(pair: &mut Pair, path: u8, enabled: bool, interval: Option<Duration>) {
    let now = pair.now;
    pair.ends[LEFT].set_heartbeats(now, PathId(path), enabled, interval);
    pair.drain(LEFT);
}

fn request(pair: &mut Pair, path: u8) -> bool {
    let now = pair.now;
    let asked = pair.ends[LEFT].request_heartbeat(now, PathId(path));
    pair.drain(LEFT);
    asked
}

fn status(pair: &Pair, path: u8) -> PathStatus {
    pair.ends[LEFT].path_status(PathId(path))
}

#[test]
pub fn heartbeats_of_an_idle_path_stop_and_go_on_as_the_user_says() {
    let mut pair = Pair::up(&config(2, 1 << 18), &[10, 10]);
    let usual = pair.ends[LEFT].heartbeats_of(PathId(1));
    assert_eq!(usual, Some(SECOND * 30));
    change(&mut pair, 1, false, None);
    assert_eq!(pair.ends[LEFT].heartbeats_of(PathId(1)), None);
    assert_eq!(pair.ends[LEFT].heartbeats_of(PathId(0)), usual);
    assert_eq!(heartbeats_in(&mut pair, 1, SECOND * 300), 0);
    assert!((9..=10).contains(&heartbeats(&pair, LEFT, 0)), "the other path has its own");
    change(&mut pair, 1, true, None);
    assert!((9..=10).contains(&heartbeats_in(&mut pair, 1, SECOND * 300)));
}

#[test]
pub fn a_path_may_have_a_heartbeat_interval_of_its_own() {
    let mut pair = Pair::up(&config(2, 1 << 18), &[10, 10]);
    change(&mut pair, 1, true, Some(SECOND * 5));
    assert_eq!(pair.ends[LEFT].heartbeats_of(PathId(1)), Some(SECOND * 5));
    // 5 s and a timeout of at most one second, with a jitter of half of it either way.
    let count = heartbeats_in(&mut pair, 1, SECOND * 300);
    assert!((46..=60).contains(&count), "{count}");
    assert!((9..=10).contains(&heartbeats(&pair, LEFT, 0)));
    // The values of all paths do not affect it, but it may use them again.
    set(&mut pair, |p| p.heartbeat_interval = SECOND * 100);
    let count = heartbeats_in(&mut pair, 1, SECOND * 300);
    assert!((46..=60).contains(&count), "{count}");
    assert!((2..=3).contains(&heartbeats(&pair, LEFT, 0)));
    change(&mut pair, 1, true, None);
    assert!((2..=3).contains(&heartbeats_in(&mut pair, 1, SECOND * 300)));
    // A shorter interval does not wait for the end of the longer one.
    set(&mut pair, |p| p.heartbeat_interval = SECOND * 5);
    assert!(heartbeats_in(&mut pair, 1, SECOND * 15) >= 2);
}

#[test]
pub fn without_heartbeats_an_idle_path_keeps_the_status_that_it_has() {
    let mut pair = Pair::up(&config(2, 1 << 18), &[10, 10]);
    pair.script(|sent| if sent.path == 1 { Fate::Drop } else { Fate::Arrive });
    change(&mut pair, 1, false, None);
    pair.run_for(SECOND * 2000);
    assert_eq!(status(&pair, 1), PathStatus::Active);
    change(&mut pair, 1, true, None);
    pair.run_for(SECOND * 2000);
    assert_eq!(status(&pair, 1), PathStatus::Inactive);
    change(&mut pair, 1, false, None);
    pair.heal();
    assert_eq!(heartbeats_in(&mut pair, 1, SECOND * 2000), 0);
    assert_eq!(status(&pair, 1), PathStatus::Inactive);
    assert!(request(&mut pair, 1));
    pair.run_for(SECOND);
    assert_eq!(status(&pair, 1), PathStatus::Active);
}

#[test]
pub fn addresses_are_confirmed_and_doubted_paths_asked_whether_heartbeats_are_wanted_or_not() {
    let quiet = PathConfig { heartbeats: false, ..PathConfig::default() };
    let failure = FailureLimits { potentially_failed: 0, path_max_retrans: 5 };
    let settings =
        Config { paths: vec![PathConfig::default(), quiet], failure, ..config(2, 1 << 18) };
    let mut pair = Pair::up(&settings, &[10, 10]);
    assert_eq!(status(&pair, 1), PathStatus::Active, "5.4: it has been asked");
    assert_eq!(heartbeats_in(&mut pair, 1, SECOND * 300), 0);
    // Data is lost there, the path becomes potentially failed, and recovers.
    pair.script(|sent| if sent.path == 1 { Fate::Drop } else { Fate::Arrive });
    pair.ends[LEFT].set_primary(PathId(1));
    pair.send_full(LEFT, 20);
    pair.run_for(SECOND * 3);
    assert_eq!(status(&pair, 1), PathStatus::PotentiallyFailed);
    pair.heal();
    assert!(heartbeats_in(&mut pair, 1, SECOND * 10) > 0);
    assert_eq!(status(&pair, 1), PathStatus::Active);
}

#[test]
pub fn a_heartbeat_leaves_at_once_when_the_user_asks_for_it() {
    let mut pair = Pair::up(&config(2, 1 << 18), &[10, 40]);
    for busy in [false, true] {
        if busy {
            pair.send_full(LEFT, 4);
        }
        for path in [0, 1] {
            pair.log.clear();
            assert!(request(&mut pair, path));
            let left: Vec<_> = pair.log.iter().map(|s| (s.at, s.path, s.names())).collect();
            assert_eq!(left, [(pair.now, path as usize, vec!["HEARTBEAT"])], "busy: {busy}");
        }
        pair.run_for(SECOND);
        let answers = pair.log.iter().filter(|s| s.names() == ["HEARTBEAT ACK"]);
        assert_eq!(answers.count(), 2, "busy: {busy}");
    }
}

#[test]
pub fn no_heartbeat_is_sent_for_a_user_where_none_may_leave() {
    let settings = config(2, 1 << 18);
    let mut early = Association::connect(settings.clone(), in_turn(), Seed::root(1), Time::ZERO);
    assert!(!early.request_heartbeat(Time::ZERO, PathId(0)), "it is being set up");

    // 5.4: HEARTBEATs to an unconfirmed address keep their own interval.
    let mut pair = Pair::new(&settings, &[10, 10]);
    pair.script(|sent| if sent.path == 1 { Fate::Drop } else { Fate::Arrive });
    pair.run_for(ms(100));
    assert_eq!(status(&pair, 1), PathStatus::Unconfirmed);
    let before = heartbeats(&pair, LEFT, 1);
    assert!(!request(&mut pair, 1));
    assert_eq!(heartbeats(&pair, LEFT, 1), before);

    // 8.3: none after a SHUTDOWN, nor after the end.
    let mut pair = Pair::up(&settings, &[10, 10]);
    let now = pair.now;
    pair.ends[LEFT].shutdown(now);
    pair.drain(LEFT);
    assert!(matches!(pair.ends[LEFT].state(), State::ShutdownSent { .. }));
    assert!(!request(&mut pair, 0));
    pair.run_for(SECOND);
    assert_eq!(pair.closed(LEFT), Some(CloseReason::Shutdown));
    assert!(!request(&mut pair, 0));
    assert_eq!(heartbeats(&pair, LEFT, 0), 0);
}

#[test]
pub fn who_asks_often_neither_hides_a_silence_nor_makes_one_up() {
    // Every error has an effect: with more than none, the path is potentially failed.
    let failure = FailureLimits { potentially_failed: 0, path_max_retrans: 5 };
    let settings = Config { failure, ..config(2, 1 << 18) };
    let doubted = |pair: &Pair| {
        pair.events[LEFT].iter().any(|(_, event)| matches!(event, Event::PathChanged(PathId(1), _)))
    };
    let mut pair = Pair::up(&settings, &[10, 10]);
    pair.events[LEFT].clear();
    pair.script(|sent| if sent.path == 1 { Fate::Drop } else { Fate::Arrive });
    for _ in 0..15 {
        assert!(request(&mut pair, 1));
        pair.run_for(ms(100));
    }
    assert!(doubted(&pair), "nothing has come back for more than a timeout");

    // One of ten answers arrives, and always within the timeout.
    let mut pair = Pair::up(&settings, &[10, 10]);
    pair.events[LEFT].clear();
    let mut count = 0;
    pair.script(move |sent| {
        let answer = sent.from == RIGHT && sent.names() == ["HEARTBEAT ACK"];
        count += usize::from(answer);
        if answer && count % 10 != 0 { Fate::Drop } else { Fate::Arrive }
    });
    for _ in 0..2000 {
        assert!(request(&mut pair, 1));
        pair.run_for(ms(10));
    }
    assert!(!doubted(&pair), "{:?}", pair.events[LEFT]);
}

#[test]
pub fn other_limits_of_the_timeout_hold_from_now_on() {
    let mut pair = Pair::up(&config(1, 1 << 18), &[10]);
    pair.greet();
    set(&mut pair, |p| p.rto = RtoLimits { initial: SECOND * 3, min: SECOND * 3, max: SECOND * 5 });
    pair.script(|_| Fate::Drop);
    pair.ends[LEFT].end_of_data();
    pair.send(LEFT, 100);
    pair.run_for(SECOND * 30);
    let times: Vec<_> =
        pair.log.iter().filter(|s| s.data().next().is_some()).map(|s| s.at).collect();
    let steps: Vec<_> = times.windows(2).map(|two| two[1].since(two[0])).collect();
    // 3 s, then twice as long, but at most RTO.Max. A tail loss probe may have been sent before.
    let timeouts: Vec<_> = steps.iter().skip_while(|step| **step < SECOND * 2).collect();
    assert!(*timeouts[0] <= SECOND * 3 && timeouts.len() >= 3, "{steps:?}");
    assert!(timeouts[1..].iter().all(|step| **step == SECOND * 5), "{steps:?}");
}

#[test]
pub fn other_limits_of_failure_hold_from_now_on() {
    let dead_after = |paths: usize, change: &dyn Fn(&mut Pair)| {
        let settings = Config { max_retrans_per_path: false, ..config(paths, 1 << 18) };
        let mut pair = Pair::up(&settings, &vec![10; paths]);
        change(&mut pair);
        pair.script(|_| Fate::Drop);
        pair.send(LEFT, 100);
        pair.run_for(SECOND * 2000);
        assert_eq!(pair.closed(LEFT), Some(CloseReason::Unreachable));
        let timeouts = pair.counters(LEFT).iter().map(|path| path.timeouts).sum::<u64>();
        let inactive = (pair.events[LEFT].iter()).filter_map(|(at, event)| match event {
            Event::PathChanged(path, PathStatus::Inactive) => Some((*path, *at)),
            _ => None,
        });
        (timeouts, inactive.collect::<Vec<_>>())
    };
    assert_eq!(dead_after(1, &|pair| set(pair, |p| p.association_max_retrans = 2)).0, 3);
    assert_eq!(dead_after(1, &|pair| set(pair, |p| p.association_max_retrans = 4)).0, 5);
    let few = |pair: &mut Pair| {
        set(pair, |p| p.failure = FailureLimits { potentially_failed: 9, path_max_retrans: 1 });
    };
    let one_has_its_own = |pair: &mut Pair| {
        few(pair);
        pair.ends[LEFT].set_path_max_retrans(PathId(0), Some(9));
    };
    let none_again = |pair: &mut Pair| {
        one_has_its_own(pair);
        pair.ends[LEFT].set_path_max_retrans(PathId(0), None);
    };
    let first =
        |news: Vec<(PathId, Time)>| news.first().map(|(path, at)| (*path, *at < at_ms(5000)));
    assert_eq!(first(dead_after(1, &few).1), Some((PathId(0), true)));
    assert_eq!(first(dead_after(1, &one_has_its_own).1).map(|(_, soon)| soon), Some(false));
    assert_eq!(first(dead_after(1, &none_again).1), Some((PathId(0), true)));
}

#[test]
pub fn another_pace_of_sacks_holds_from_now_on() {
    let mut pair = Pair::up(&as_published(1, 1 << 18), &[10]);
    pair.greet();
    let sack_after = |pair: &mut Pair| {
        pair.log.clear();
        pair.send(RIGHT, 100);
        let sent = pair.now;
        pair.run_for(SECOND);
        let sack = pair.log.iter().find(|s| s.from == LEFT && s.sack().is_some()).expect("a SACK");
        sack.at.since(sent) - ms(10)
    };
    let usual = pair.ends[LEFT].parameters().sack_delay;
    assert_eq!(sack_after(&mut pair), usual);
    set(&mut pair, |p| p.sack_delay = ms(150));
    assert_eq!(sack_after(&mut pair), ms(150));
    set(&mut pair, |p| p.sack_every_packets = 1);
    assert_eq!(sack_after(&mut pair), ms(0));
}

#[test]
pub fn another_burst_holds_from_now_on() {
    // `bbr` would pace.
    let (congestion, initial_window) = ("rfc9260", Some(20 * 1468));
    let settings = Config { congestion, pacing: None, initial_window, ..config(1, 1 << 18) };
    let burst = |most: u32| {
        let mut pair = Pair::up(&settings, &[10]);
        set(&mut pair, |p| p.max_burst = most);
        pair.send_full(LEFT, 30);
        pair.log.len()
    };
    assert_eq!([1, 3, 7].map(burst), [1, 3, 7]);
}

#[test]
pub fn other_limits_of_the_setup_hold_from_now_on() {
    let mut pair = Pair::new(&config(1, 1 << 18), &[10]);
    pair.script(|_| Fate::Drop);
    pair.run_for(ms(1));
    set(&mut pair, |p| p.max_init_retransmits = 2);
    pair.run_for(SECOND * 100);
    assert_eq!((pair.count(LEFT, "INIT"), pair.closed(LEFT)), (3, Some(CloseReason::NoAnswer)));

    // A cookie of this end is stale after that time.
    let settings = config(1, 1 << 18);
    let [mut end, mut peer] = [1, 2].map(|seed| {
        Association::connect(settings.clone(), in_turn(), Seed::root(seed), Time::ZERO)
    });
    let short = Parameters { cookie_life: SECOND * 2, ..end.parameters() };
    end.set_parameters(Time::ZERO, short).expect("good ones");
    let next = |end: &mut Association, now| end.poll_transmit(now).expect("a packet").packet;
    let (_, invitation) = (next(&mut end, Time::ZERO), next(&mut peer, Time::ZERO));
    let answer = end.answer_to_init(Time::ZERO, PathId(0), &invitation, None).expect("INIT ACK");
    peer.handle_datagram(Time::ZERO, PathId(0), answer);
    let echo: Packet = next(&mut peer, Time::ZERO);
    end.handle_datagram(at_ms(2500), PathId(0), echo.clone());
    assert!(matches!(next(&mut end, at_ms(2500)).chunks[0], Chunk::Error(_)));
    end.handle_datagram(at_ms(1500), PathId(0), echo);
    assert_eq!(*end.state(), State::Established);
}

#[test]
pub fn parameters_that_make_no_sense_are_refused_and_change_nothing() {
    let mut pair = Pair::up(&config(1, 1 << 18), &[10]);
    let good = pair.ends[LEFT].parameters();
    let none = Duration::ZERO;
    let rto = |initial, min, max| Parameters { rto: RtoLimits { initial, min, max }, ..good };
    let cases = [
        (rto(none, none, SECOND), ParameterError::Rto),
        (rto(SECOND, SECOND * 3, SECOND * 2), ParameterError::Rto),
        (rto(SECOND * 3, SECOND, SECOND * 2), ParameterError::Rto),
        (rto(none, none, none), ParameterError::Rto),
        (Parameters { sack_delay: ms(501), ..good }, ParameterError::SackDelay),
        (Parameters { sack_every_packets: 0, ..good }, ParameterError::NoSack),
        (Parameters { cookie_life: none, ..good }, ParameterError::CookieLife),
    ];
    for (bad, why) in cases {
        let bad = Parameters { association_max_retrans: 77, ..bad };
        assert_eq!(pair.ends[LEFT].set_parameters(pair.now, bad), Err(why));
        assert_eq!(pair.ends[LEFT].parameters(), good);
        assert!(why.to_string().len() > 20);
    }
}

#[test]
pub fn what_the_user_has_set_outlives_a_restart_of_the_peer() {
    let settings = config(2, 1 << 18);
    let mut pair = Pair::up(&settings, &[10, 10]);
    change(&mut pair, 1, false, None);
    set(&mut pair, |p| p.heartbeat_interval = SECOND * 10);
    let now = pair.now;
    pair.replace(RIGHT, Association::connect(settings, in_turn(), Seed::root(99), now));
    pair.run_for(SECOND * 2);
    assert!(pair.events[LEFT].iter().any(|(_, event)| *event == Event::Restarted));
    assert_eq!(heartbeats_in(&mut pair, 1, SECOND * 300), 0);
    assert!((25..=30).contains(&heartbeats(&pair, LEFT, 0)));
}

#[test]
pub fn a_full_queue_is_no_hindrance_to_a_heartbeat() {
    let mut pair = Pair::up(&config(1, 1 << 18), &[10]);
    pair.script(|sent| if sent.data().next().is_some() { Fate::Drop } else { Fate::Arrive });
    pair.send_full(LEFT, 100);
    pair.log.clear();
    assert!(request(&mut pair, 0));
    assert_eq!(heartbeats(&pair, LEFT, 0), 1);
    assert!(pair.ends[LEFT].send_room() < u64::from(FULL) * 1000);
}
