//! Messages with a priority (RFC 7496, 3.2): in a full send buffer, unsent messages of lower priority are
//! abandoned.

use proptest::collection::vec;
use proptest::prelude::*;
use ropewalk_base::{Duration, StreamId};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::SendError;
use ropewalk_engine::sctp::{
    AbandonedMessages, Config, Delivery, ReliabilityPolicy, StreamScheduler,
};

use crate::driver::{Fate, LEFT, Pair, RIGHT, config, numbered};

fn with(priority: Option<u32>) -> Delivery {
    Delivery { priority, ..Delivery::RELIABLE }
}

/// A pair that is not up yet, whose send buffers have this size.
fn unconnected(send_buffer: u64, stream_scheduler: StreamScheduler) -> Pair {
    let settings = Config { send_buffer, streams: 3, stream_scheduler, ..config(1, 1 << 20) };
    let mut pair = Pair::new(&settings, &[10]);
    pair.script(|_| Fate::Drop);
    pair
}

fn unsent(unsent: u64) -> AbandonedMessages {
    AbandonedMessages { unsent, sent: 0 }
}

#[test]
fn a_full_buffer_gives_up_the_lowest_priority_for_a_higher_one_and_nothing_else() {
    for scheduler in [StreamScheduler::FirstCome, StreamScheduler::Priority] {
        let mut pair = unconnected(4000, scheduler);
        let send = |pair: &mut Pair, id: u32, priority| {
            pair.try_send(LEFT, (id % 2) as u16, numbered(1000, id), with(priority))
        };
        for (id, priority) in [(1, Some(5)), (2, Some(7)), (3, None), (4, Some(5))] {
            assert_eq!(send(&mut pair, id, priority), Ok(()), "{id}");
        }
        assert_eq!(send(&mut pair, 90, Some(7)), Err(SendError::Full), "equal ones stay");
        assert_eq!(send(&mut pair, 5, Some(5)), Ok(()), "2 is given up");
        assert_eq!(send(&mut pair, 91, Some(5)), Err(SendError::Full));
        assert_eq!(send(&mut pair, 92, None), Err(SendError::Full));
        assert_eq!(send(&mut pair, 6, Some(0)), Ok(()), "1 is given up: it is the oldest");
        let end = &pair.ends[LEFT];
        let policy = Some(ReliabilityPolicy::Priority);
        assert_eq!(end.abandoned_messages(None, policy), unsent(2));
        assert_eq!(end.abandoned_messages(Some(StreamId(0)), policy), unsent(1));
        assert_eq!(end.abandoned_messages(Some(StreamId(1)), None), unsent(1));
        assert_eq!(end.abandoned_messages(None, Some(ReliabilityPolicy::Lifetime)), unsent(0));
        assert_eq!(end.sender_stats().abandoned, 2);
        pair.heal();
        pair.run_for(Duration::from_secs(10));
        let mut read: Vec<_> = pair.read[RIGHT].iter().map(|m| m.payload.clone()).collect();
        let mut expected = [3, 4, 5, 6].map(|id| numbered(1000, id)).to_vec();
        let by_bytes = |one: &Payload| one.clone().into_bytes();
        read.sort_by_key(by_bytes);
        expected.sort_by_key(by_bytes);
        assert_eq!(read, expected);
        assert!(pair.ends[LEFT].is_flushed());
        assert_eq!(pair.count(LEFT, "FORWARD-TSN"), 0);
    }
}

#[test]
fn a_message_whose_sending_has_begun_is_not_given_up() {
    let settings = Config { send_buffer: 40_000, ..config(1, 1 << 20) };
    let mut pair = Pair::up(&settings, &[10]);
    pair.script(|_| Fate::Drop);
    pair.try_send(LEFT, 0, numbered(100_000, 1), with(Some(9))).expect("room");
    let full = pair.try_send(LEFT, 0, numbered(100, 2), with(Some(0)));
    assert_eq!(full, Err(SendError::Full));
    pair.heal();
    pair.run_for(Duration::from_secs(20));
    assert_eq!(pair.read_bytes(RIGHT), 100_000);
    assert_eq!(pair.ends[LEFT].sender_stats().abandoned, 0);
}

/// A queued message: its number, length and priority.
type Waiting = (u32, u64, Option<u32>);

/// The messages that RFC 7496, 3.2, permits to abandon, computed directly. Returns whether the message is
/// accepted.
fn submit(waiting: &mut Vec<Waiting>, buffer: u64, new: Waiting) -> bool {
    let total: u64 = waiting.iter().map(|one| one.1).sum();
    if total >= buffer {
        let Some(priority) = new.2 else { return false };
        let mut lower: Vec<Waiting> =
            waiting.iter().copied().filter(|one| one.2.is_some_and(|p| p > priority)).collect();
        lower.sort_by_key(|one| (std::cmp::Reverse(one.2), one.0));
        let (mut needed, mut gone) = ((total - buffer + 1) as i64, Vec::new());
        for one in lower {
            if needed <= 0 {
                break;
            }
            needed -= one.1 as i64;
            gone.push(one.0);
        }
        if needed > 0 {
            return false;
        }
        waiting.retain(|one| !gone.contains(&one.0));
    }
    waiting.push(new);
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_given_up_is_the_lowest_priority_and_the_rest_arrives_in_order(
        messages in vec((1..3000u32, 0..3u16, proptest::option::of(0..5u32)), 1..60),
        buffer in 1_000..20_000u64,
    ) {
        let mut pair = unconnected(buffer, StreamScheduler::FirstCome);
        let mut model = Vec::new();
        for (id, (size, stream, priority)) in (0..).zip(messages.iter().copied()) {
            let taken = submit(&mut model, buffer, (id, size.into(), priority));
            let sent = pair.try_send(LEFT, stream, numbered(size, id), with(priority));
            prop_assert_eq!(sent.is_ok(), taken, "{}", id);
        }
        let given_up = pair.ends[LEFT].abandoned_messages(None, None);
        pair.heal();
        pair.run_for(Duration::from_secs(30));
        for stream in 0..3 {
            let of_stream = |id: u32| messages[id as usize].1 == stream;
            let kept = model.iter().map(|one| one.0).filter(|id| of_stream(*id));
            let expected: Vec<_> =
                kept.map(|id| numbered(messages[id as usize].0, id)).collect();
            let read = pair.read[RIGHT].iter().filter(|m| m.stream.0 == stream);
            let read: Vec<_> = read.map(|m| m.payload.clone()).collect();
            prop_assert_eq!(read, expected, "stream {}", stream);
        }
        prop_assert!(pair.ends[LEFT].is_flushed());
        prop_assert_eq!(given_up.sent, 0);
        prop_assert_eq!(pair.ends[LEFT].sender_stats().abandoned, given_up.unsent);
    }
}
