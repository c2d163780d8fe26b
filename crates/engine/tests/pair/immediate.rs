//! SACK-IMMEDIATELY (RFC 7053): the I bit of DATA and I-DATA.

use ropewalk_base::{Duration, Seed, StreamId};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::{CloseReason, SendError};
use ropewalk_engine::sctp::{Config, DataFlags, Delivery, Urgency};

use crate::driver::{FULL, LEFT, Pair, RIGHT, Sent, as_published, config, ms};

/// Whether each chunk with DATA of the left end requests a SACK.
fn asks(pair: &Pair) -> Vec<bool> {
    let sent = pair.log.iter().filter(|sent| sent.from == LEFT);
    sent.flat_map(Sent::data).map(|data| data.flags.has(DataFlags::IMMEDIATE)).collect()
}

/// RFC 7053, 5.1 and 7.1.
#[test]
fn the_last_chunk_of_a_message_asks_for_a_sack_if_its_user_wants_it_and_no_other_chunk_does() {
    let mut asked = 0;
    for case in 0..200 {
        let mut rng = Seed::root(case).child("immediate").rng();
        // Interactive messages may exceed a window, which is never filled in this test.
        let settings = Config {
            streams: 4,
            interleaving: rng.chance(0.5),
            initial_window: Some(1 << 20),
            max_burst: 0,
            ..as_published(1, 1 << 20)
        };
        let mut pair = Pair::up(&settings, &[10]);
        // The content of a message indicates whether it requests a SACK.
        for _ in 0..20 {
            let immediate = rng.chance(0.3);
            let delivery = Delivery {
                ordered: rng.chance(0.7),
                immediate,
                lifetime: rng.chance(0.2).then_some(Duration::from_secs(60)),
                urgency: if rng.chance(0.2) { Urgency::Interactive } else { Urgency::Bulk },
                ..Delivery::RELIABLE
            };
            let length = 1 + rng.below(3 * u64::from(FULL)) as usize;
            let payload = Payload::from(bytes::Bytes::from(vec![u8::from(immediate); length]));
            let stream = StreamId(rng.below(4) as u16);
            let now = pair.now;
            pair.ends[LEFT].send_message(now, stream, 0, payload, delivery).expect("room");
            if rng.chance(0.3) {
                pair.drain(LEFT);
                pair.run_for(ms(rng.below(100)));
            }
        }
        pair.drain(LEFT);
        pair.run_for(Duration::from_secs(5));
        assert_eq!(pair.read[RIGHT].len(), 20, "case {case}");
        for data in pair.log.iter().filter(|sent| sent.from == LEFT).flat_map(Sent::data) {
            let wanted = data.payload.clone().into_bytes()[0] == 1;
            let last = data.flags.has(DataFlags::END);
            let found = data.flags.has(DataFlags::IMMEDIATE);
            assert_eq!(found, wanted && last, "case {case}: {data:?}");
            asked += u32::from(found);
        }
    }
    assert!(asked > 500, "{asked}");
}

/// RFC 7053, 5.2.
#[test]
fn a_message_that_asks_is_acknowledged_after_a_round_trip() {
    for interleaving in [false, true] {
        for (immediate, millis) in [(false, 220), (true, 20)] {
            for delivery in [Delivery::RELIABLE, Delivery { ordered: false, ..Delivery::RELIABLE }]
            {
                let mut pair = Pair::up(&Config { interleaving, ..config(1, 1 << 20) }, &[10]);
                pair.greet();
                pair.send_message(LEFT, Payload::Length(100), Delivery { immediate, ..delivery });
                pair.run_for(ms(millis - 1));
                assert!(!pair.ends[LEFT].is_flushed());
                pair.run_for(ms(1));
                assert!(pair.ends[LEFT].is_flushed(), "{interleaving} {immediate}");
            }
        }
    }
}

/// RFC 7053, 5.1: the sender is in the state SHUTDOWN-PENDING.
#[test]
fn a_shutdown_does_not_wait_for_a_delayed_sack() {
    for interleaving in [false, true] {
        let mut pair = Pair::up(&Config { interleaving, ..config(1, 1 << 20) }, &[10]);
        pair.greet();
        pair.queue(LEFT, 0, Payload::Length(2 * FULL), false);
        pair.queue(LEFT, 0, Payload::Length(100), false);
        let now = pair.now;
        pair.ends[LEFT].shutdown(now);
        pair.drain(LEFT);
        // A round trip for the data, and one and a half for the shutdown.
        pair.run_for(ms(50));
        assert_eq!(pair.closed(RIGHT), Some(CloseReason::Shutdown), "{interleaving}");
        let asks = asks(&pair);
        assert_eq!(asks.iter().filter(|asks| **asks).count(), 1, "{asks:?}");
        assert_eq!(asks.last(), Some(&true));
    }
}

#[test]
fn a_sender_whose_send_buffer_has_refused_a_message_asks_for_a_sack() {
    for full in [false, true] {
        let settings = Config { send_buffer: 3 * u64::from(FULL), ..config(1, 1 << 20) };
        let mut pair = Pair::up(&settings, &[10]);
        pair.greet();
        for _ in 0..3 {
            pair.queue(LEFT, 0, Payload::Length(FULL), false);
        }
        if full {
            let refused = pair.ends[LEFT].send(StreamId(0), Payload::Length(1), false);
            assert_eq!(refused, Err(SendError::Full));
        }
        pair.drain(LEFT);
        // The receiver acknowledges two packets immediately, and the third after 200 ms unless the sender
        // requests it.
        pair.run_for(ms(25));
        assert_eq!(asks(&pair), [false, false, full]);
        assert_eq!(pair.ends[LEFT].is_flushed(), full);
    }
}
