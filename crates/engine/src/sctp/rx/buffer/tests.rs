use super::*;
use ropewalk_base::{Seed, Serial16, Serial32};

fn piece(tsn: u64, stream: u16, ssn: u16, flags: DataFlags) -> Data {
    Data {
        tsn: Serial32::wrap(tsn),
        stream: StreamId(stream),
        ssn: Serial16(ssn),
        ppid: 0,
        flags,
        payload: Payload::Length(100),
        message_high: 0,
        first_sent: Time::ZERO,
    }
}

fn whole(tsn: u64) -> Data {
    piece(tsn, 0, (tsn - 1) as u16, DataFlags::WHOLE)
}

#[test]
fn what_waits_for_a_hole_is_held_and_released_with_it() {
    let mut buffer = ReceiveBuffer::new(10_000, 0, 1);
    assert_eq!(buffer.on_data(Time::from_millis(1), 2, whole(2)), Arrival::OutOfOrder);
    assert_eq!(buffer.on_data(Time::from_millis(2), 3, whole(3)), Arrival::OutOfOrder);
    assert_eq!(buffer.held_bytes(), 2 * 116);
    assert!(buffer.read().is_none());
    assert_eq!(buffer.on_data(Time::from_millis(5), 1, whole(1)), Arrival::InOrder);
    assert_eq!((buffer.cumulative(), buffer.held_bytes()), (3, 0));
    assert_eq!(std::iter::from_fn(|| buffer.read()).count(), 3);
    assert_eq!(buffer.chunk_bytes(), 0);
    assert_eq!(buffer.stats.blocking.max(), 4_000_000);
    assert_eq!(buffer.stats.stored, 2);
    assert_eq!(buffer.on_data(Time::from_millis(6), 2, whole(2)), Arrival::Duplicate);
}

#[test]
fn a_hole_in_one_stream_does_not_hold_up_another() {
    let mut buffer = ReceiveBuffer::new(10_000, 0, 1);
    buffer.on_data(Time::ZERO, 2, piece(2, 1, 0, DataFlags::WHOLE));
    assert_eq!(buffer.read().map(|m| m.stream), Some(StreamId(1)));
    assert_eq!(buffer.held_bytes(), 0);
}

#[test]
fn fragments_come_together_in_any_order() {
    let mut buffer = ReceiveBuffer::new(10_000, 0, 1);
    buffer.on_data(Time::ZERO, 3, piece(3, 0, 0, DataFlags::END));
    buffer.on_data(Time::ZERO, 1, piece(1, 0, 0, DataFlags::BEGIN));
    assert!(buffer.read().is_none());
    buffer.on_data(Time::ZERO, 2, piece(2, 0, 0, DataFlags::default()));
    assert_eq!(buffer.read().map(|m| m.payload.len()), Some(300));
}

#[test]
fn messages_have_the_numbers_of_their_first_chunks() {
    let mut buffer = ReceiveBuffer::new(10_000, 0, 1);
    buffer.on_data(Time::ZERO, 1, piece(1, 3, 0, DataFlags::WHOLE));
    buffer.on_data(Time::ZERO, 4, piece(4, 3, 2, DataFlags::WHOLE));
    buffer.on_data(Time::ZERO, 5, piece(5, 3, 9, DataFlags::WHOLE.and(DataFlags::UNORDERED)));
    buffer.on_data(Time::ZERO, 2, piece(2, 3, 1, DataFlags::BEGIN));
    buffer.on_data(Time::ZERO, 3, piece(3, 3, 1, DataFlags::END));
    let numbers = |m: Message| (m.ssn.0, m.tsn.0);
    let read: Vec<_> = std::iter::from_fn(|| buffer.read()).map(numbers).collect();
    // The unordered message did not wait for earlier ones.
    assert_eq!(read, [(0, 1), (9, 5), (1, 2), (2, 4)]);
}

#[test]
fn a_full_buffer_gives_up_its_highest_chunk_for_the_hole_before_it() {
    let mut buffer = ReceiveBuffer::new(3 * 116, 0, 1);
    for tsn in 2..=4 {
        assert_eq!(buffer.on_data(Time::ZERO, tsn, whole(tsn)), Arrival::OutOfOrder);
    }
    assert_eq!(buffer.on_data(Time::ZERO, 5, whole(5)), Arrival::Refused);
    assert_eq!(buffer.on_data(Time::ZERO, 1, whole(1)), Arrival::InOrder);
    assert_eq!(buffer.cumulative(), 3);
}

/// Every waiting chunk makes room for an earlier one, regardless of deliveries beyond it.
#[test]
fn a_full_buffer_gives_up_its_highest_chunk_though_later_ones_were_delivered() {
    for case in 0..300 {
        let mut rng = Seed::root(case).child("delivered").rng();
        let mut buffer = ReceiveBuffer::new(116 * (20 + rng.below(400)), 0, 1);
        let (mut waiting, mut delivered) = (Vec::new(), Vec::new());
        for tsn in (0..).scan(2, |next, _| Some(std::mem::replace(next, *next + 1 + rng.below(3))))
        {
            let unordered = tsn % 2 == case % 2;
            let flags = if unordered { DataFlags::UNORDERED } else { DataFlags::default() };
            let data = piece(tsn, 0, tsn as u16, DataFlags::WHOLE.and(flags));
            match buffer.on_data(Time::ZERO, tsn, data) {
                Arrival::OutOfOrder if unordered => delivered.push(tsn),
                Arrival::OutOfOrder => waiting.push(tsn),
                other => {
                    assert_eq!(other, Arrival::Refused);
                    break;
                }
            }
            while buffer.read().is_some() {}
        }
        assert_eq!(buffer.on_data(Time::ZERO, 1, whole(1)), Arrival::InOrder, "case {case}");
        let reneged = buffer.stats.reneged as usize;
        let (kept, dropped) = waiting.split_at(waiting.len() - reneged);
        assert!(
            (1..=8 + waiting.len() / 4).contains(&reneged),
            "case {case}: {reneged} of {waiting:?}"
        );
        let received = |tsn: &u64| buffer.cumulative() >= *tsn || buffer.beyond().contains(*tsn);
        assert!(!dropped.iter().any(received), "case {case}: the highest are dropped");
        assert!(kept.iter().all(received), "case {case}: only these");
        assert!(
            delivered.iter().all(received),
            "case {case}: what was delivered is not taken back"
        );
    }
}

#[test]
fn random_orders_deliver_everything_once_and_in_order() {
    for case in 0..300 {
        let mut rng = Seed::root(case).child("order").rng();
        let n = 1 + rng.below(40);
        let mut tsns: Vec<u64> =
            (1..=n).chain((0..rng.below(10)).map(|_| 1 + rng.below(n))).collect();
        for i in (1..tsns.len()).rev() {
            tsns.swap(i, rng.below(i as u64 + 1) as usize);
        }
        let mut buffer = ReceiveBuffer::new(1 << 20, 0, 1);
        let mut out = 0;
        for tsn in &tsns {
            let mut data = whole(*tsn);
            data.ppid = *tsn as u32;
            buffer.on_data(Time::ZERO, *tsn, data);
            while let Some(message) = buffer.read() {
                out += 1;
                assert_eq!(message.ppid, out, "case {case}");
            }
        }
        assert_eq!((out as u64, buffer.cumulative(), buffer.held_bytes()), (n, n, 0));
        assert_eq!(buffer.chunk_bytes(), 0);
    }
}

#[test]
fn long_messages_come_together_in_any_order_of_their_fragments() {
    for case in 0..200 {
        let mut rng = Seed::root(case).child("fragments").rng();
        let mut chunks = Vec::new();
        for ssn in 0..1 + rng.below(4) as u16 {
            let n = 1 + rng.below(30);
            for i in 0..n {
                let begin = if i == 0 { DataFlags::BEGIN } else { DataFlags::default() };
                let end = if i + 1 == n { DataFlags::END } else { DataFlags::default() };
                chunks.push(piece(1 + chunks.len() as u64, 0, ssn, begin.and(end)));
            }
        }
        // Some chunks arrive twice, and a small buffer drops some again.
        let n = chunks.len();
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, rng.below(i as u64 + 1) as usize);
        }
        let capacity = 116 * (1 + rng.below(2 * n as u64));
        let mut buffer = ReceiveBuffer::new(capacity, 0, 1);
        let mut bytes = 0;
        while buffer.cumulative() < n as u64 {
            let before = buffer.cumulative();
            for at in &order {
                let verdict = buffer.on_data(Time::ZERO, 1 + *at as u64, chunks[*at].clone());
                assert_ne!(verdict, Arrival::Violation, "case {case}");
                while let Some(message) = buffer.read() {
                    bytes += u64::from(message.payload.len());
                }
                buffer.offer_part(Time::ZERO);
            }
            let moves = buffer.cumulative() > before || !buffer.ready.is_empty();
            assert!(moves, "case {case}: stuck at {before} of {n}, {capacity} B");
        }
        bytes += std::iter::from_fn(|| buffer.read()).map(|m| m.payload.len() as u64).sum::<u64>();
        assert_eq!(bytes, 100 * n as u64, "case {case}");
        assert_eq!(buffer.chunk_bytes(), 0, "case {case}");
    }
}
