//! Room beyond a full send buffer for streams with little unsent data.

use proptest::prelude::*;
use ropewalk_base::StreamId;
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::SendError;
use ropewalk_engine::sctp::{Config, Delivery, Event, StreamScheduler};

use crate::driver::{LEFT, Pair, RIGHT, at_ms, config, ms};

const LONG: u32 = 1_000_000;
const BUFFER: u64 = 64_000;
const RESERVE: u32 = 16_000;

fn pair(stream_reserve: u32, stream_scheduler: StreamScheduler) -> Pair {
    let settings = Config {
        send_buffer: BUFFER,
        streams: 6,
        interleaving: true,
        stream_reserve,
        stream_scheduler,
        ..config(1, 1 << 20)
    };
    Pair::up(&settings, &[10])
}

fn send(pair: &mut Pair, stream: u16, bytes: u32) -> Result<(), SendError> {
    pair.try_send(LEFT, stream, Payload::Length(bytes), Delivery::RELIABLE)
}

#[test]
fn a_short_message_has_room_beside_a_long_one_and_overtakes_it() {
    let mut pair = pair(RESERVE, StreamScheduler::RoundRobin);
    assert_eq!(send(&mut pair, 0, LONG), Ok(()));
    let refused = [
        // No room for ordinary messages, nor for those of a stream with much unsent data.
        (0, LONG),
        (0, 100),
        // Longer than a stream's part of the reserve.
        (1, RESERVE / 4 + 1),
    ];
    for (stream, bytes) in refused {
        assert_eq!(send(&mut pair, stream, bytes), Err(SendError::Full), "{stream} {bytes}");
    }
    assert_eq!(send(&mut pair, 1, 100), Ok(()));
    assert_eq!(pair.ends[LEFT].send_room(), 0);
    pair.run_until(pair.now + ms(60));
    let read: Vec<_> = pair.read[RIGHT].iter().map(|m| m.stream).collect();
    assert_eq!(read, [StreamId(1)], "the long message has not arrived");
    pair.run_until(at_ms(20_000));
    assert_eq!(pair.read_bytes(RIGHT), u64::from(LONG) + 100);
}

#[test]
fn without_a_reserve_short_messages_wait_for_the_long_one() {
    let mut pair = pair(0, StreamScheduler::RoundRobin);
    assert_eq!(send(&mut pair, 0, LONG), Ok(()));
    assert_eq!(send(&mut pair, 1, 100), Err(SendError::Full));
}

#[test]
fn who_found_the_reserve_used_up_is_told_when_a_part_of_it_has_come_back() {
    let mut pair = pair(RESERVE, StreamScheduler::RoundRobin);
    assert_eq!(send(&mut pair, 0, LONG), Ok(()));
    // Four streams use all of it, before anything can be acknowledged.
    for stream in 1..=4 {
        assert_eq!(send(&mut pair, stream, RESERVE / 4 - 100), Ok(()));
    }
    let before = pair.events[LEFT].len();
    assert_eq!(send(&mut pair, 5, 500), Err(SendError::Full));
    pair.run_until(pair.now + ms(60));
    let told = pair.events[LEFT][before..].iter().filter(|(_, e)| *e == Event::Writable).count();
    assert_eq!((told, pair.ends[LEFT].send_room()), (1, 0));
    assert_eq!(send(&mut pair, 5, 500), Ok(()));
}

/// An application that sends to several associations checks the room in all of them, and then queues a
/// message in each.
#[test]
fn who_asks_for_room_is_told_when_there_is_some_and_a_promised_message_is_queued_without_room() {
    let mut pair = pair(0, StreamScheduler::FirstCome);
    assert!(pair.ends[LEFT].await_room());
    assert_eq!(send(&mut pair, 0, LONG), Ok(()));
    let before = pair.events[LEFT].len();
    assert!(!pair.ends[LEFT].await_room());
    assert_eq!(send(&mut pair, 1, 100), Err(SendError::Full));
    let beyond = Delivery { exceeds_buffer: true, ..Delivery::RELIABLE };
    assert_eq!(pair.try_send(LEFT, 1, Payload::Length(100), beyond), Ok(()));
    assert!(!pair.ends[LEFT].await_room());
    pair.run_until(at_ms(20_000));
    let told = pair.events[LEFT][before..].iter().filter(|(_, e)| *e == Event::Writable).count();
    assert_eq!((told, pair.ends[LEFT].await_room()), (1, true));
    assert_eq!(pair.read_bytes(RIGHT), u64::from(LONG) + 100);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// A stream that continuously sends short messages neither exceeds the reserve nor keeps long
    /// messages from being queued.
    #[test]
    fn short_messages_without_end_keep_within_the_reserve_and_let_long_ones_in(
        reserve in 1_000..100_000_u32,
        short in 300..2_000_u32,
        long in 70_000..200_000_u32,
        scheduler in prop_oneof![
            Just(StreamScheduler::FirstCome),
            Just(StreamScheduler::RoundRobin),
            Just(StreamScheduler::FairCapacity),
        ],
    ) {
        let mut pair = pair(reserve, scheduler);
        let mut accepted = [0_u64; 2];
        // One long message exceeds the buffer, and a part of another one has been acknowledged but not
        // read.
        let most = BUFFER + 2 * u64::from(long) + u64::from(reserve);
        for _ in 0..200 {
            // The first one gets the ordinary room, with or without a reserve.
            if send(&mut pair, 0, long).is_ok() {
                accepted[0] += u64::from(long);
            }
            while send(&mut pair, 1, short).is_ok() {
                accepted[1] += u64::from(short);
            }
            pair.run_until(pair.now + ms(5));
            let inside = accepted.iter().sum::<u64>() - pair.read_bytes(RIGHT);
            prop_assert!(inside <= most, "{inside} of {most}");
        }
        // Each time the buffer empties, a long message is queued, and short ones use the reserve.
        let refills = accepted[0] / u64::from(long) + 1;
        let short_most = BUFFER + refills * u64::from(long.max(reserve));
        prop_assert!(accepted[1] <= short_most, "{accepted:?}");
    }
}
