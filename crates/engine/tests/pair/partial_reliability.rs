//! Messages with a lifetime or a limit of retransmissions (RFC 3758, RFC 7496).

use ropewalk_base::{Duration, Serial16, StreamId};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::{
    Chunk, Config, Delivery, ExtensionChunk, Extensions, ForwardTsn, Negotiation, Part,
};

use crate::driver::{FULL, Fate, LEFT, Pair, RIGHT, Sent, config, ms, numbered};

fn timed(millis: u64) -> Delivery {
    Delivery { retransmissions: None, ..Delivery::datagram(ms(millis)) }
}

fn forward_in(sent: &Sent) -> Option<&ForwardTsn> {
    sent.packet.chunks.iter().find_map(|chunk| match chunk {
        Chunk::Extension(one) => match &**one {
            ExtensionChunk::ForwardTsn(forward) => Some(forward),
            _ => None,
        },
        _ => None,
    })
}

/// Drops all DATA with this content.
fn lose(pair: &mut Pair, payload: Payload) {
    pair.script(move |sent| {
        let lost = sent.data().any(|data| data.payload == payload);
        if lost { Fate::Drop } else { Fate::Arrive }
    });
}

/// All data is acknowledged, nothing is in flight, and no timer runs except that of HEARTBEATs.
fn assert_settled(pair: &mut Pair) {
    pair.run_for(Duration::from_secs(5));
    assert!(pair.ends[LEFT].is_flushed());
    for path in 0..pair.delays.len() {
        assert_eq!(pair.view(LEFT, path).in_flight, 0);
    }
    assert_eq!(pair.ends[RIGHT].receive_occupancy().0, 0);
}

#[test]
fn a_message_is_not_sent_again_after_its_lifetime_and_the_peer_moves_on() {
    let mut pair = Pair::up(&config(1, 1 << 20), &[10]);
    pair.greet();
    lose(&mut pair, numbered(500, 1));
    let begun = pair.now;
    pair.send_message(LEFT, numbered(500, 1), timed(100));
    for salt in 2..12 {
        pair.send_message(LEFT, numbered(500, salt), timed(100));
    }
    pair.run_for(Duration::from_secs(2));
    let sent = |s: &&Sent| s.data().any(|data| data.payload == numbered(500, 1));
    let last = pair.log.iter().filter(sent).map(|s| s.at).max();
    assert!(last.is_some_and(|at| at < begun + ms(100)), "{last:?}");
    assert_eq!(pair.read[RIGHT].len(), 10, "all others arrived");
    assert_eq!(pair.ends[LEFT].sender_stats().abandoned, 1);
    assert!(pair.log.iter().any(|s| forward_in(s).is_some_and(|f| f.streams.is_empty())));
    assert_settled(&mut pair);
}

#[test]
fn a_message_whose_lifetime_ends_in_the_queue_gets_no_tsn() {
    let mut pair = Pair::new(&config(1, 1 << 20), &[10]);
    pair.script(|_| Fate::Drop);
    pair.send_message(LEFT, numbered(100, 1), timed(50));
    pair.send_message(LEFT, numbered(100, 2), Delivery { ordered: true, ..timed(60) });
    pair.send_message(LEFT, numbered(100, 3), timed(60_000));
    pair.send_message(LEFT, numbered(100, 4), Delivery::RELIABLE);
    pair.run_for(ms(100));
    assert_eq!(pair.ends[LEFT].sender_stats().abandoned, 2, "by the timer");
    pair.heal();
    pair.run_for(Duration::from_secs(10));
    let read: Vec<_> = pair.read[RIGHT].iter().map(|m| m.payload.clone()).collect();
    assert_eq!(read, [numbered(100, 3), numbered(100, 4)], "stream 0 does not wait for the other");
    assert_eq!(pair.count(LEFT, "FORWARD-TSN"), 0);
    assert_settled(&mut pair);
}

#[test]
fn a_datagram_is_sent_again_once_and_on_the_path_on_which_it_arrives_first() {
    let mut pair = Pair::up(&config(2, 1 << 20), &[10, 100]);
    pair.greet();
    lose(&mut pair, numbered(500, 1));
    for salt in 1..30 {
        pair.send_message(LEFT, numbered(500, salt), Delivery::datagram(Duration::from_secs(9)));
    }
    pair.run_for(Duration::from_secs(4));
    let sent = pair.log.iter().filter(|s| s.data().any(|d| d.payload == numbered(500, 1)));
    let sent: Vec<_> = sent.map(|s| s.path).collect();
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert_eq!(sent[1], 0, "the quick path");
    assert_eq!(pair.read[RIGHT].len(), 28);
    assert_settled(&mut pair);
}

#[test]
fn a_retransmission_that_would_come_too_late_is_not_sent() {
    let mut pair = Pair::up(&config(1, 1 << 20), &[50]);
    pair.greet();
    lose(&mut pair, numbered(500, 1));
    // The loss is detected after a round trip of 100 ms, and a retransmission takes 50 ms.
    for salt in 1..12 {
        pair.send_message(LEFT, numbered(500, salt), Delivery::datagram(ms(140)));
    }
    pair.run_for(Duration::from_secs(4));
    let sent = pair.log.iter().filter(|s| s.data().any(|d| d.payload == numbered(500, 1)));
    assert_eq!(sent.count(), 1);
    assert_settled(&mut pair);
}

#[test]
fn ordered_messages_do_not_wait_for_one_that_was_given_up() {
    let mut pair = Pair::up(&config(1, 1 << 20), &[10]);
    pair.greet();
    lose(&mut pair, numbered(500, 1));
    let delivery = Delivery { ordered: true, ..timed(100) };
    let begun = pair.now;
    for salt in 1..8 {
        pair.send_message(LEFT, numbered(500, salt), delivery);
    }
    pair.run_for(ms(90));
    assert_eq!(pair.read[RIGHT].len(), 0);
    pair.run_until(begun + Duration::from_secs(1));
    let read: Vec<_> = pair.read[RIGHT].iter().map(|m| m.payload.clone()).collect();
    assert_eq!(read, (2..8).map(|salt| numbered(500, salt)).collect::<Vec<_>>());
    let forward = pair.log.iter().find_map(forward_in).expect("the peer was told");
    assert_eq!(forward.streams, [(StreamId(0), Serial16(1))]);
    assert_settled(&mut pair);
}

#[test]
fn a_long_message_is_given_up_as_a_whole_wherever_it_was_cut_off() {
    for (ordered, lost) in [(true, 0), (true, 3), (false, 1), (false, 5)] {
        let mut pair = Pair::up(&config(1, 1 << 20), &[10]);
        pair.greet();
        let long = numbered(6 * FULL, 1);
        lose(&mut pair, long.slice(lost * FULL, FULL));
        let delivery = Delivery { ordered, ..timed(100) };
        pair.send_message(LEFT, long, delivery);
        pair.send_message(LEFT, numbered(500, 2), delivery);
        pair.run_for(Duration::from_secs(3));
        let read: Vec<_> = pair.read[RIGHT].iter().map(|m| m.payload.clone()).collect();
        assert_eq!(read, [numbered(500, 2)], "{ordered} {lost}");
        assert_eq!(pair.ends[LEFT].sender_stats().abandoned, 1);
        assert_settled(&mut pair);
    }
}

#[test]
fn the_rest_of_a_message_that_was_partly_acknowledged_is_given_up() {
    let settings = Config { initial_window: Some(3 * 1468), ..config(1, 1 << 20) };
    let mut pair = Pair::up(&settings, &[50]);
    pair.send_message(LEFT, numbered(400 * FULL, 1), Delivery { ordered: true, ..timed(220) });
    pair.send_message(LEFT, numbered(500, 2), Delivery::RELIABLE);
    pair.run_for(Duration::from_secs(3));
    let read: Vec<_> = pair.read[RIGHT].iter().map(|m| m.payload.clone()).collect();
    assert_eq!(read, [numbered(500, 2)]);
    assert_settled(&mut pair);
}

#[test]
fn a_message_that_is_being_delivered_in_parts_ends_with_an_empty_part() {
    let mut pair = Pair::up(&config(1, 8 * 1468), &[10]);
    let long = numbered(40 * FULL, 1);
    lose(&mut pair, long.slice(20 * FULL, FULL));
    pair.send_message(LEFT, long, Delivery { ordered: true, ..timed(400) });
    pair.send_message(LEFT, numbered(500, 2), Delivery::RELIABLE);
    pair.run_for(Duration::from_secs(5));
    let parts: Vec<_> = pair.read[RIGHT].iter().map(|m| (m.part, m.payload.len())).collect();
    assert_eq!(parts.first().map(|(part, _)| *part), Some(Part::First));
    assert_eq!(parts[parts.len() - 2..], [(Part::Last, 0), (Part::Whole, 500)]);
    assert_settled(&mut pair);
}

#[test]
fn a_forward_tsn_that_is_lost_is_repeated_until_the_peer_follows() {
    let mut pair = Pair::up(&config(2, 1 << 20), &[10, 30]);
    pair.greet();
    let mut lost = 0;
    pair.script(move |sent| {
        let drop = sent.data().any(|data| data.payload == numbered(500, 1))
            || forward_in(sent).is_some() && lost < 3;
        lost += u32::from(drop);
        if drop { Fate::Drop } else { Fate::Arrive }
    });
    pair.send_message(LEFT, numbered(500, 1), Delivery { retransmissions: Some(0), ..timed(100) });
    pair.run_for(Duration::from_secs(20));
    assert!(pair.log.iter().filter(|s| forward_in(s).is_some()).count() >= 3);
    assert_settled(&mut pair);
}

/// RFC 3758, 3.5 C3: the SACKs of later messages show that the FORWARD-TSN was lost, long before its timer expires.
#[test]
fn ordered_messages_wait_two_round_trips_at_most_for_a_forward_tsn_that_is_lost() {
    for delays in [&[10][..], &[10, 30]] {
        let longest = 2 * delays.iter().max().expect("some");
        let mut pair = Pair::up(&config(delays.len(), 1 << 20), delays);
        pair.greet();
        let mut forwards = 0;
        pair.script(move |sent| {
            let forward = forward_in(sent).is_some();
            forwards += u32::from(forward);
            let drop = sent.data().any(|data| data.payload == numbered(500, 1))
                || forward && forwards == 1;
            if drop { Fate::Drop } else { Fate::Arrive }
        });
        let delivery = Delivery { retransmissions: Some(0), ordered: true, ..Delivery::RELIABLE };
        for salt in 1..30 {
            pair.send_message(LEFT, numbered(500, salt), delivery);
            pair.run_for(ms(10));
        }
        let told: Vec<_> =
            pair.log.iter().filter(|s| forward_in(s).is_some()).map(|s| s.at).collect();
        assert!(told.len() >= 2, "{told:?}");
        let wait = told[1].since(told[0]);
        assert!(wait >= ms(longest) && wait <= ms(2 * longest), "{wait:?}");
        pair.run_for(ms(100));
        // The message sent with the first FORWARD-TSN may also be lost.
        let read: Vec<_> = pair.read[RIGHT].iter().map(|m| m.payload.clone()).collect();
        assert!(read.len() >= 27 && read.last() == Some(&numbered(500, 29)), "{}", read.len());
        assert_settled(&mut pair);
    }
}

#[test]
fn towards_a_peer_without_forward_tsn_messages_are_dropped_only_before_they_are_sent() {
    let plain = Config { negotiation: Negotiation::Listed(Extensions::NONE), ..config(1, 1 << 20) };
    let ours = Config { negotiation: Negotiation::Listed(Extensions::OFFERED), ..plain.clone() };
    for (left, right) in [(&plain, &ours), (&ours, &plain)] {
        let schedulers = [crate::driver::in_turn(), crate::driver::in_turn()];
        let mut pair = Pair::with(left, right, &[10], schedulers);
        pair.connect();
        assert!(!pair.ends[LEFT].abandons_messages());
        let mut lost = 0;
        pair.script(move |sent| {
            let drop = sent.data().next().is_some() && lost < 2;
            lost += u32::from(drop);
            if drop { Fate::Drop } else { Fate::Arrive }
        });
        pair.send_message(LEFT, numbered(500, 1), Delivery::datagram(ms(50)));
        pair.run_for(Duration::from_secs(20));
        assert_eq!(pair.read[RIGHT].len(), 1);
        assert_eq!((pair.count(LEFT, "FORWARD-TSN"), pair.count(RIGHT, "ERROR")), (0, 0));
        assert_settled(&mut pair);
    }
}

#[test]
fn an_end_shuts_down_although_its_last_message_was_given_up() {
    let mut pair = Pair::up(&config(1, 1 << 20), &[10]);
    pair.greet();
    lose(&mut pair, numbered(500, 1));
    pair.send_message(LEFT, numbered(500, 1), timed(100));
    let now = pair.now;
    pair.ends[LEFT].shutdown(now);
    pair.drain(LEFT);
    pair.run_for(Duration::from_secs(9));
    assert_eq!(pair.closed(RIGHT), Some(ropewalk_engine::sctp::association::CloseReason::Shutdown));
}

#[test]
fn bytes_wait_while_the_windows_are_full_and_leave_with_acknowledgements() {
    let settings = Config { initial_window: Some(10 * 1468), ..config(1, 1 << 20) };
    let mut pair = Pair::up(&settings, &[10]);
    let mut sent = 0;
    while pair.ends[LEFT].waiting_bytes() == 0 {
        pair.send_message(LEFT, Payload::Length(FULL), timed(500));
        sent += 1;
        assert!(sent < 100);
    }
    assert_eq!(pair.view(LEFT, 0).in_flight, (sent - 1) * 1468);
    assert!((u64::from(FULL)..1500).contains(&pair.ends[LEFT].waiting_bytes()));
    pair.run_for(ms(25));
    assert_eq!(pair.ends[LEFT].waiting_bytes(), 0);
}

#[test]
fn a_copy_that_arrives_after_the_peer_was_moved_on_is_not_delivered() {
    let mut pair = Pair::up(&config(1, 1 << 20), &[10]);
    pair.greet();
    pair.script(|sent| {
        let late = sent.data().any(|data| data.payload == numbered(500, 1));
        if late { Fate::Late(ms(900)) } else { Fate::Arrive }
    });
    for salt in 1..12 {
        let delivery = Delivery { retransmissions: Some(0), ..timed(300) };
        pair.send_message(LEFT, numbered(500, salt), delivery);
    }
    pair.run_for(ms(800));
    assert!(pair.ends[LEFT].is_flushed());
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.read[RIGHT].len(), 10);
    assert_settled(&mut pair);
}
