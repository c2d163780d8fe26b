//! DATA (RFC 9260, 3.3.1, 6): invalid chunks are refused, and excess chunks are not kept.

use ropewalk_base::Serial32;
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::{CloseReason, State};
use ropewalk_engine::sctp::wire::DecodeError;
use ropewalk_engine::sctp::{AbortCause, Chunk, Config, ErrorCause};

use super::kit::{
    BEGIN, END, UNORDERED, Victim, WHOLE, chunk, data, datagram, heartbeat, kind, live, names, read,
};
use crate::driver::{LEFT, Pair, RIGHT};

const MIDDLE: u8 = 0;

// 35.
#[test]
fn data_without_data_ends_the_association_and_less_than_its_header_is_nothing() {
    let mut victim = Victim::up(1);
    let first = victim.first_tsn(LEFT);
    for size in 0..12 {
        let bytes = datagram(9, &[chunk(kind::DATA, WHOLE, &vec![0; size])]);
        let malformed = DecodeError::Malformed { kind: kind::DATA, at: 12 };
        assert_eq!(read(&bytes), Err(malformed), "{size} B");
    }
    let answers = victim.hit(RIGHT, &[data(first, 0, 0, WHOLE, b"")]);
    let Chunk::Abort { causes, .. } = &answers[0].chunks[0] else { panic!("{answers:?}") };
    assert_eq!(causes[..], [ErrorCause::NoUserData(first)]);
    assert_eq!(victim.pair.closed(RIGHT), Some(CloseReason::Aborted(AbortCause::NoUserData)));
}

// 36.
#[test]
fn streams_that_do_not_exist_are_acknowledged_reported_a_few_times_and_never_kept() {
    let mut victim = Victim::up(1);
    let first = victim.first_tsn(LEFT);
    let streams = victim.pair.ends[RIGHT].config().streams;
    let many: Vec<_> =
        (0..500u16).map(|i| data(first.plus(u32::from(i)), streams + i, 0, WHOLE, b"x")).collect();
    let answers = victim.hit(RIGHT, &many);
    assert!(names(&answers).iter().filter(|name| **name == "ERROR").count() <= 4, "{answers:?}");
    assert_eq!(names(&answers).last(), Some(&"SACK"));
    // With holes, up to the reach of gap blocks.
    for ahead in (600..70_000).step_by(50) {
        victim.hit(RIGHT, &[data(first.plus(ahead), u16::MAX, 0, WHOLE, b"x")]);
    }
    // Only the record of more than a thousand gaps is kept, which is charged.
    let (held, free) = victim.pair.ends[RIGHT].receive_occupancy();
    assert!(held == 0 && free > (1 << 18) / 16 * 15, "{held} B held, {free} B free");
    assert_eq!(victim.pair.read[RIGHT].len(), 0);
    victim.hit(RIGHT, &[data(first.plus(500), 0, 0, WHOLE, b"fine")]);
    assert_eq!(victim.pair.read_bytes(RIGHT), 4);
}

// 37.
#[test]
fn a_tsn_from_far_away_is_not_kept_and_one_from_behind_is_a_duplicate() {
    for ahead in [65_536u32, 1 << 20, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_0000, u32::MAX]
    {
        for stream in [0, u16::MAX] {
            let mut victim = Victim::up(1);
            let first = victim.first_tsn(LEFT);
            let answers = victim.hit(RIGHT, &[data(first.plus(ahead), stream, 0, WHOLE, b"far")]);
            let sacks: Vec<_> = (answers.iter().flat_map(|packet| &packet.chunks))
                .filter_map(|chunk| match chunk {
                    Chunk::Sack(sack) => Some(sack),
                    _ => None,
                })
                .collect();
            assert_eq!(sacks.len(), 1, "{ahead} ahead on {stream}");
            assert_eq!(sacks[0].cumulative.plus(1), first, "{ahead} ahead");
            assert!(sacks[0].gaps.is_empty(), "{ahead} ahead");
            assert_eq!(victim.pair.ends[RIGHT].receive_occupancy(), (0, 1 << 18));
            victim.hit(RIGHT, &[data(first, 0, 0, WHOLE, b"near")]);
            assert_eq!(victim.pair.read_bytes(RIGHT), 4, "the next one is taken as ever");
        }
    }
}

// 38.
#[test]
fn fragments_that_make_no_message_end_the_association_and_deliver_nothing() {
    // TSN after the first, stream, number, flags.
    type DataFragment = (u32, u16, u16, u8);
    let table: [&[DataFragment]; 8] = [
        &[(0, 0, 0, BEGIN), (1, 0, 0, BEGIN)],
        &[(0, 0, 0, BEGIN), (1, 0, 1, WHOLE)],
        &[(0, 0, 0, END)],
        &[(0, 0, 0, MIDDLE)],
        &[(0, 0, 0, BEGIN), (1, 0, 0, END | UNORDERED)],
        &[(0, 0, 0, BEGIN | UNORDERED), (1, 0, 0, MIDDLE)],
        &[(0, 0, 0, BEGIN), (1, 0, 1, MIDDLE)],
        &[(2, 0, 0, END), (1, 0, 7, MIDDLE), (0, 0, 0, BEGIN)],
    ];
    for pieces in table {
        let mut victim = Victim::up(1);
        let first = victim.first_tsn(LEFT);
        for (ahead, stream, ssn, flags) in pieces {
            victim.hit(RIGHT, &[data(first.plus(*ahead), *stream, *ssn, *flags, b"piece")]);
        }
        let violation = CloseReason::Aborted(AbortCause::ProtocolViolation);
        assert_eq!(victim.pair.closed(RIGHT), Some(violation), "{pieces:?}");
        assert_eq!(victim.pair.read[RIGHT].len(), 0, "{pieces:?}");
    }
}

// 38.
#[test]
fn a_message_without_end_never_takes_more_than_the_buffer() {
    for reads in [true, false] {
        let mut victim = Victim::up(1);
        victim.pair.reads[RIGHT] = reads;
        let first = victim.first_tsn(LEFT);
        for i in 0..3000 {
            let flags = if i == 0 { BEGIN } else { MIDDLE };
            victim.hit(RIGHT, &[data(first.plus(i), 0, 0, flags, &[7; 1000])]);
            let (held, free) = victim.pair.ends[RIGHT].receive_occupancy();
            assert!(held + free <= 1 << 18, "{held} B held, {free} B free");
        }
        assert_eq!(*victim.state(RIGHT), State::Established);
        // A user that reads gets it in parts; one that does not closes the window.
        let taken = victim.pair.ends[RIGHT].receive_stats().received;
        assert!(if reads { taken > 2500 } else { taken < 300 }, "{taken} taken");
    }
}

// 39.
#[test]
fn one_byte_on_each_of_65535_streams_fills_the_buffer_and_no_more() {
    let settings = Config { streams: u16::MAX, ..live(1, 1 << 18) };
    let mut victim = Victim::of(Pair::up(&settings, &[10]));
    let first = victim.first_tsn(LEFT);
    for packet in 0..500u32 {
        // Each begins a message, and the following fragment is missing.
        let chunks: Vec<_> = (0..60)
            .map(|i| packet * 60 + i)
            .map(|i| data(first.plus(1 + 2 * i), i as u16, 0, BEGIN, b"x"))
            .collect();
        victim.hit(RIGHT, &chunks);
        let (held, free) = victim.pair.ends[RIGHT].receive_occupancy();
        assert!(held + free <= 1 << 18);
    }
    let stats = victim.pair.ends[RIGHT].receive_stats();
    // The buffer is filled by their memory, not by their 20 bytes on the wire.
    assert!((500..(1 << 18) / 100).contains(&stats.received), "{}", stats.received);
    assert!(stats.refused > 10_000);
}

// 39.
#[test]
fn a_byte_of_user_data_does_not_keep_the_datagram_that_brought_it() {
    let check = |size: usize, beside: usize| {
        let pad = chunk(kind::PAD, 0, &vec![0; beside]);
        let bytes = datagram(9, &[data(Serial32(1), 0, 0, WHOLE, &vec![7; size]), pad]);
        let packet = read(&bytes).expect("a packet");
        let Chunk::Data(data) = &packet.chunks[0] else { panic!("{packet:?}") };
        let Payload::Bytes(payload) = &data.payload else { panic!("{data:?}") };
        assert_eq!(payload[..], vec![7; size]);
        let shared = bytes.as_ptr_range().contains(&payload.as_ptr());
        assert!(!shared && payload.is_unique(), "{size} B keep {} B", bytes.len());
    };
    for (size, beside) in
        [(1, 60), (1, 1400), (1, 60_000), (300, 1100), (1000, 60_000), (1400, 0), (700, 700)]
    {
        check(size, beside);
    }
}

// 40.
#[test]
fn data_beyond_the_window_is_dropped_and_never_acknowledged() {
    let mut victim = Victim::up(1);
    victim.pair.reads[RIGHT] = false;
    let first = victim.first_tsn(LEFT);
    for i in 0..1000 {
        victim.hit(RIGHT, &[data(first.plus(i), 0, i as u16, WHOLE, &[7; 1000])]);
    }
    let stats = victim.pair.ends[RIGHT].receive_stats();
    let most = (1u64 << 18) / 1016;
    assert_eq!((stats.received, stats.refused), (most, 1000 - most));
    let last = victim.pair.log.iter().filter_map(|sent| sent.sack()).next_back().expect("a SACK");
    assert_eq!(last.cumulative, first.plus(most as u32 - 1));
    assert!(last.window < 1016);
}

/// An I-DATA chunk.
fn i_data(tsn: Serial32, message: u32, fragment: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut body = tsn.0.to_be_bytes().to_vec();
    body.extend([0; 4]);
    body.extend(message.to_be_bytes());
    body.extend(fragment.to_be_bytes());
    body.extend(payload);
    chunk(0x40, flags, &body)
}

// 41.
#[test]
fn interleaved_data_that_was_not_agreed_on_ends_the_association() {
    let first = Victim::up(1).first_tsn(LEFT);
    for one in [
        i_data(first, 0, 0, WHOLE, b"x"),
        i_data(first, u32::MAX, 0, BEGIN, b"x"),
        i_data(first, 0, u32::MAX, MIDDLE, b"x"),
        i_data(first, 0, 5, END, b"other bytes"),
        i_data(first, 0, 0, WHOLE, b""),
    ] {
        let mut victim = Victim::up(1);
        let answers = victim.hit(RIGHT, &[one, heartbeat(b"beside")]);
        assert_eq!(names(&answers), ["ABORT"], "the rest of the packet is not read");
        assert!(matches!(victim.state(RIGHT), State::Ended(_)));
        assert_eq!(victim.pair.read_bytes(RIGHT), 0);
    }
}
