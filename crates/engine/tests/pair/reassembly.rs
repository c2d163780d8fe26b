//! Fragmented messages: long ones, inconsistent ones, and ones that exceed any buffer (RFC 9260, 6.9).

use ropewalk_base::{Serial16, Serial32, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::CloseReason;
use ropewalk_engine::sctp::{AbortCause, Chunk, Data, DataFlags, Packet};
use ropewalk_engine::sctp::{Message, Part};

use crate::driver::{FULL, Fate, LEFT, Pair, RIGHT, config, ms, numbered};

/// Reassembles the parts of messages. Complete messages may be in between.
fn glued(read: &[Message]) -> Vec<Payload> {
    let (mut done, mut parts) = (Vec::new(), Vec::new());
    for message in read {
        match message.part {
            Part::Whole => done.push(message.payload.clone()),
            Part::First => parts = vec![message.payload.clone()],
            Part::Middle | Part::Last => parts.push(message.payload.clone()),
        }
        if message.part == Part::Last {
            done.push(Payload::concat(&std::mem::take(&mut parts)));
        }
    }
    assert!(parts.is_empty(), "a message without an end");
    done
}

#[test]
pub fn a_message_longer_than_the_receive_buffer_arrives_in_parts() {
    for (buffer, size) in [(3000, 3 * FULL), (20_000, 50_000), (20_000, 300_000)] {
        for (unordered, paths) in [(false, 1), (true, 1), (false, 2)] {
            let mut pair = Pair::up(&config(paths, buffer), &[10, 40][..paths]);
            let mut count = 0;
            pair.script(move |sent| {
                count += u32::from(sent.data().next().is_some());
                let hit = sent.data().next().is_some() && count % 31 == 0;
                if hit { Fate::Drop } else { Fate::Arrive }
            });
            let sizes = [100, size, 700, size + 1, 5];
            let sent: Vec<_> = (0..).zip(sizes).map(|(i, size)| numbered(size, i)).collect();
            for payload in &sent {
                while pair.ends[LEFT].send_room() == 0 {
                    pair.run_for(ms(100));
                }
                pair.send_on(LEFT, 0, payload.clone(), unordered);
            }
            pair.run_for(ms(400_000));
            let what = format!("{size} B through {buffer} B, {paths} paths, {unordered}");
            assert!(pair.read[RIGHT].iter().any(|m| m.part == Part::First), "{what}: in parts");
            let mut read = glued(&pair.read[RIGHT]);
            let order = |p: &Payload| sent.iter().position(|s| s == p);
            if unordered {
                read.sort_by_key(order);
            }
            assert!(read == sent, "{what}: {:?}", read.iter().map(order).collect::<Vec<_>>());
            assert_eq!(pair.ends[RIGHT].receive_occupancy(), (0, buffer), "{what}");
        }
    }
}

#[test]
pub fn a_message_that_fits_is_delivered_whole_however_slow_the_reader() {
    let mut pair = Pair::up(&config(1, 20_000), &[10]);
    pair.reads[RIGHT] = false;
    for _ in 0..8 {
        pair.queue(LEFT, 0, Payload::Length(6 * FULL), false);
    }
    pair.drain(LEFT);
    for _ in 0..200 {
        pair.run_for(ms(500));
        let message = pair.ends[RIGHT].read(pair.now);
        pair.read[RIGHT].extend(message);
        pair.drain(RIGHT);
    }
    assert_eq!(pair.read[RIGHT].len(), 8);
    assert!(pair.read[RIGHT].iter().all(|m| m.part == Part::Whole));
}

/// A listener that is up, the tag of packets to it, and the TSN it expects.
fn listener(streams: u16) -> (Pair, u32, Serial32) {
    let mut settings = config(1, 1 << 20);
    settings.streams = streams;
    let mut pair = Pair::up(&settings, &[10]);
    pair.send(LEFT, 10);
    pair.run_for(ms(500));
    let packet = pair.log[0].packet.clone();
    let next = pair.log[0].data().next().expect("data").tsn.plus(1);
    (pair, packet.tag, next)
}

/// A fragment: TSN relative to the expected one, stream, number, flags.
type Fragment = (u32, u16, u16, DataFlags);

fn verdict(fragments: &[Fragment]) -> (Option<CloseReason>, usize) {
    let (mut pair, tag, next) = listener(2);
    for (ahead, stream, ssn, flags) in fragments {
        let data = Data {
            tsn: next.plus(*ahead),
            stream: StreamId(*stream),
            ssn: Serial16(*ssn),
            ppid: 0,
            flags: *flags,
            payload: Payload::Length(100),
            message_high: 0,
            first_sent: Time::ZERO,
        };
        pair.inject(RIGHT, 0, Packet::of(tag, Chunk::Data(data)));
    }
    (pair.closed(RIGHT), pair.read[RIGHT].len() - 1)
}

const B: DataFlags = DataFlags::BEGIN;
const M: DataFlags = DataFlags::UNORDERED;
const E: DataFlags = DataFlags::END;
const W: DataFlags = DataFlags::WHOLE;

fn middle() -> DataFlags {
    DataFlags::default()
}

#[test]
pub fn fragments_that_contradict_each_other_end_the_association() {
    let broken: [(&str, &[Fragment]); 12] = [
        ("another stream", &[(0, 0, 1, B), (1, 1, 1, E)]),
        ("another stream, backwards", &[(1, 1, 1, E), (0, 0, 1, B)]),
        ("another number", &[(0, 0, 1, B), (1, 0, 2, E)]),
        ("another number in the middle", &[(0, 0, 1, B), (2, 0, 1, E), (1, 0, 3, middle())]),
        ("ordered and not", &[(0, 0, 1, B), (1, 0, 1, E.and(M))]),
        ("a beginning in the midst", &[(0, 0, 1, B), (1, 0, 2, B)]),
        ("a whole in the midst", &[(0, 0, 1, B), (1, 0, 2, W)]),
        ("no beginning", &[(0, 0, 1, E)]),
        ("no beginning after an end", &[(1, 0, 2, W), (2, 0, 3, E)]),
        ("no end before a beginning", &[(1, 0, 2, W), (0, 0, 1, B)]),
        ("a number that came before", &[(0, 0, 0, W)]),
        ("a number twice", &[(1, 0, 2, W), (2, 0, 2, W)]),
    ];
    for (what, fragments) in broken {
        let violation = CloseReason::Aborted(AbortCause::ProtocolViolation);
        assert_eq!(verdict(fragments), (Some(violation), 0), "{what}");
    }
}

#[test]
pub fn fragments_that_agree_are_taken_in_any_order() {
    let good: [(&str, &[Fragment], usize); 5] = [
        ("three backwards", &[(2, 0, 1, E), (1, 0, 1, middle()), (0, 0, 1, B)], 1),
        ("two messages", &[(0, 0, 1, B), (2, 1, 0, B), (3, 1, 0, E), (1, 0, 1, E)], 2),
        ("numbers of unordered ones mean nothing", &[(0, 0, 9, B.and(M)), (1, 0, 7, E.and(M))], 1),
        ("unordered ahead of a hole", &[(1, 0, 0, W.and(M)), (0, 0, 1, W)], 2),
        ("a fragment twice", &[(0, 0, 1, B), (0, 0, 1, B), (1, 0, 1, E)], 1),
    ];
    for (what, fragments, messages) in good {
        assert_eq!(verdict(fragments), (None, messages), "{what}");
    }
}
