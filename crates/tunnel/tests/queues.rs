//! How flows and classes share the association's queue.

use ropewalk_base::{Duration, Time};
use ropewalk_tunnel::{Class, Config, Ecn, Inner, Order, Tunnel, Waiting};

fn inner(flow: u64, class: Class, bytes: u32, number: u64) -> Inner<(u64, u64)> {
    let payload = (flow, number);
    Inner { flow, class, order: Order::Restored, ecn: Ecn::NotEct, bytes, payload }
}

/// Sends 1000 packets with a backlog of these flows; returns the bytes of each.
fn shares(flows: &[(Class, u32)]) -> Vec<u64> {
    let mut tunnel = Tunnel::new(Config::default());
    let mut sent = vec![0; flows.len()];
    // The first packets of a flow are interactive, until it has sent enough.
    let mut now = Time::from_secs(1);
    for round in 0..1200 {
        for (flow, (class, bytes)) in flows.iter().enumerate() {
            for number in 0..8 {
                tunnel.enqueue(now, inner(flow as u64, *class, *bytes, round * 8 + number));
            }
        }
        now += Duration::from_millis(1);
        let out = tunnel.next(now, Waiting::default()).expect("there is a backlog");
        if round >= 200 {
            sent[out.payload.0 as usize] += u64::from(out.bytes);
        }
    }
    sent
}

#[test]
fn flows_of_one_class_share_by_bytes() {
    let sent = shares(&[(Class::Bulk, 1400), (Class::Bulk, 400), (Class::Bulk, 1400)]);
    let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
    assert!(most - least < most / 20, "{sent:?}");
}

#[test]
fn a_lower_class_is_served_rarely_but_not_never() {
    let sent =
        shares(&[(Class::Interactive, 1400), (Class::Bulk, 1400), (Class::Background, 1400)]);
    let whole = sent.iter().sum::<u64>() as f64;
    let share = |class: usize| sent[class] as f64 / whole;
    assert!((0.75..0.95).contains(&share(0)), "{sent:?}");
    assert!((0.05..0.20).contains(&share(1)), "{sent:?}");
    assert!((0.01..0.10).contains(&share(2)), "{sent:?}");
}

#[test]
fn a_sparse_flow_does_not_wait_behind_a_bulk_flow() {
    let mut tunnel = Tunnel::new(Config::default());
    let mut now = Time::from_secs(1);
    for round in 0..500 {
        now = Time::from_millis(1000 + round);
        for number in 0..2 {
            tunnel.enqueue(now, inner(1, Class::Bulk, 1400, 2 * round + number));
        }
        if round >= 100 && round % 20 == 0 {
            tunnel.enqueue(now, inner(2, Class::Bulk, 100, round));
            let out = tunnel.next(now, Waiting::default()).expect("there is a backlog");
            assert_eq!((out.payload.0, out.class), (2, Class::Interactive));
        }
        tunnel.next(now, Waiting::default()).expect("there is a backlog");
    }
    let counters = *tunnel.counters();
    assert!(counters.class(Class::Bulk).dropped_by_delay > 0, "{counters:?}");
    let waiting = |all, interactive| Waiting { all, interactive };
    let queue = tunnel.lookahead();
    assert_eq!(tunnel.next(now, waiting(queue, 0)), None, "the association has enough");
    // When a link becomes slower, the queue of the association is suddenly longer than it should be.
    for (all, interactive, overtakes) in
        [(queue, 0, true), (100 * queue, 0, true), (100 * queue, 1 << 20, false)]
    {
        tunnel.enqueue(now, inner(3, Class::Interactive, 100, 0));
        let next = tunnel.next(now, waiting(all, interactive));
        assert_eq!(next.is_some(), overtakes, "{all} B wait, {interactive} of them interactive");
    }
}

#[test]
fn the_longest_queue_pays_for_a_lack_of_memory() {
    let mut tunnel = Tunnel::new(Config { queue_bytes: 100_000, ..Config::default() });
    let now = Time::from_secs(1);
    for number in 0..10 {
        tunnel.enqueue(now, inner(1, Class::Bulk, 1000, number));
    }
    for number in 0..1000 {
        tunnel.enqueue(now, inner(2, Class::Bulk, 1000, number));
        assert!(tunnel.queued_bytes() <= 100_000);
    }
    let mut first = Vec::new();
    while let Some(out) = tunnel.next(now, Waiting::default()) {
        if out.payload.0 == 1 {
            first.push(out.payload.1);
        }
    }
    assert_eq!(first, (0..10).collect::<Vec<_>>());
}

#[test]
fn a_lower_limit_keeps_what_waits_and_lets_nothing_grow() {
    let mut tunnel = Tunnel::new(Config::default());
    let now = Time::from_secs(1);
    let put = |tunnel: &mut Tunnel<_>, flow, number| {
        tunnel.enqueue(now, inner(flow, Class::Bulk, 1000, number));
    };
    (0..40).for_each(|number| put(&mut tunnel, number % 4, number));
    let before = tunnel.cost();
    assert!(before > 40_000, "{before} B");
    tunnel.limit_cost(0);
    assert_eq!(tunnel.cost(), before);
    (0..100).for_each(|number| put(&mut tunnel, 1, number));
    assert!(tunnel.cost() <= before && tunnel.queued_bytes() > 0, "{} B", tunnel.cost());
    // The longest queue was shortened, the others were not.
    let mut left = [0; 4];
    while let Some(out) = tunnel.next(now, Waiting::default()) {
        left[out.payload.0 as usize] += 1;
    }
    assert_eq!([left[0], left[2], left[3]], [10; 3], "{left:?}");
    assert_eq!(tunnel.cost(), 0);
    // A packet can be sent again once there is room.
    tunnel.limit_cost(2000);
    put(&mut tunnel, 7, 0);
    assert!(tunnel.next(now, Waiting::default()).is_some());
}
