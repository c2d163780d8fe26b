//! Attacks on an association: each class separately, and any of them in any order.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use ropewalk_engine::meter::Defect;

use crate::association::{
    BEGIN, Burst, CWR, ECNE, END, ERROR, HEARTBEAT, Op, UNORDERED, Victim, WHOLE,
};
use crate::{Bound, Broken, Measuring, assert_caught};

/// Steps per byte. A chunk of the minimum length, 20 bytes, may cost twenty times this: a search, a
/// position among its neighbours, its release and its acknowledgement.
const STEPS_PER_BYTE: u64 = 4;

fn bound(receive_buffer: u64) -> Bound {
    Bound { receive_buffer, steps_per_byte: STEPS_PER_BYTE }
}

const ONE: Burst = Burst {
    ahead: 1,
    step: 1,
    stream: 0,
    stream_step: 0,
    ssn: 1,
    ssn_step: 1,
    flags: WHOLE,
    size: 1,
    count: 1,
};

fn play(receive_buffer: u64, ops: &[Op]) -> Result<(), Broken> {
    Victim::new(bound(receive_buffer), false, false).play(ops)
}

/// Like [`play`], with ends that report non-renegable data.
fn play_with_nr_sacks(receive_buffer: u64, ops: &[Op]) -> Result<(), Broken> {
    Victim::new(bound(receive_buffer), false, true).play(ops)
}

/// Like [`play`], with interleaved messages (RFC 8260).
fn play_interleaved(receive_buffer: u64, ops: &[Op]) -> Result<(), Broken> {
    Victim::new(bound(receive_buffer), true, false).play(ops)
}

/// One complete message on each stream, with the maximum number that is still recognised as later.
fn far_messages() -> Vec<Op> {
    vec![Op::Data(Burst { ssn: 32_767, ssn_step: 0, stream_step: 1, count: 1000, ..ONE })]
}

/// One chunk at the maximum distance that gap blocks reach.
fn far_chunk() -> Vec<Op> {
    vec![Op::Data(Burst { ahead: 65_534, flags: UNORDERED | BEGIN, ..ONE })]
}

/// Pieces of one byte, then one of them repeatedly.
fn repeated_pieces() -> Vec<Op> {
    let pieces =
        |step, count| Op::PartialChunks { ahead: 5, total: 9_000, offset: 0, step, size: 1, count };
    vec![pieces(2, 3900), pieces(0, 20_000)]
}

/// Messages of one byte that are never read.
fn tiny_messages() -> Vec<Op> {
    vec![
        Op::Data(Burst {
            ahead: 0,
            ssn: 0,
            ssn_step: 0,
            flags: UNORDERED | WHOLE,
            count: 5000,
            ..ONE
        });
        4
    ]
}

/// HEARTBEATs of a few bytes, as many as a datagram holds.
fn heartbeats() -> Vec<Op> {
    vec![Op::Chunks { kind: HEARTBEAT, size: 4, count: 7000 }]
}

/// Messages and fragments that wait for numbers which are then skipped, in turn and in one chunk.
fn all_skipped() -> Vec<Op> {
    let skip = |ahead, listed, count| Op::Forward {
        ahead,
        step: 3,
        stream_step: 1,
        ssn: 1,
        ssn_step: 1,
        listed,
        count,
    };
    let scattered = Op::Data(Burst { ahead: 2, step: 2, ssn: 3, ssn_step: 30, count: 900, ..ONE });
    let on_all_streams = Op::Data(Burst { ahead: 1, stream_step: 1, count: 1000, ..ONE });
    let beginnings = Op::Data(Burst { flags: BEGIN, ahead: 1, step: 2, count: 900, ..ONE });
    vec![
        scattered,
        skip(0, 0, 600),
        on_all_streams,
        skip(0, 900, 3),
        beginnings,
        skip(0, 2, 600),
        skip(65_000, 14_000, 3),
    ]
}

/// Streams that are reset one by one, all in one request, repeatedly, and with much data waiting on them.
fn resets() -> Vec<Op> {
    let reset = |kind, ahead, listed, count, repeat| Op::ReConfig {
        kind,
        ahead,
        listed,
        stream_step: 1,
        count,
        repeat,
    };
    let waiting = Op::Data(Burst { ssn: 5, stream_step: 1, count: 900, ..ONE });
    let early = Op::Data(Burst { ahead: 20, count: 900, size: 300, ..ONE });
    let answers = reset(16, 1, 0, 20, 1);
    vec![
        reset(13, 0, 1000, 20, 3),
        Op::Read(1),
        reset(13, 0, 0, 20, 1),
        waiting.clone(),
        Op::Read(1),
        reset(13, 0, 0, 20, 1),
        reset(13, 10, 900, 20, 3),
        early,
        Op::Send { count: 30, size: 1000 },
        reset(14, 0, 600, 5, 3),
        answers,
        reset(15, 0, 0, 5, 2),
        waiting,
        reset(17, 0, 900, 9, 1),
        reset(18, 0, 900, 9, 1),
    ]
}

const BUFFER: u64 = 1 << 18;

#[test]
fn each_defect_of_an_association_is_caught_by_an_attack_of_its_class() {
    type Attack = (Defect, u64, fn() -> Vec<Op>, fn(&Broken) -> bool);
    let memory: fn(&Broken) -> bool = |broken| matches!(broken, Broken::Memory(..));
    let work: fn(&Broken) -> bool = |broken| matches!(broken, Broken::Work(..));
    let table: [Attack; 5] = [
        (Defect::DenseStreams, 1 << 16, far_messages, memory),
        (Defect::DenseTsns, BUFFER, far_chunk, memory),
        (Defect::QuadraticPieces, BUFFER, repeated_pieces, work),
        (Defect::UncountedBookkeeping, BUFFER, tiny_messages, memory),
        (Defect::UnboundedControl, BUFFER, heartbeats, memory),
    ];
    for (defect, buffer, attack, broken) in table {
        assert_caught(defect, broken, || play(buffer, &attack()));
    }
}

type Known = Vec<(&'static str, Vec<Op>)>;

/// Complete messages with numbers of all kinds.
fn known_messages() -> Known {
    let scattered = |flags| Burst { ahead: 2, step: 2, flags, count: 3000, ..ONE };
    vec![
        ("messages far ahead on their streams", far_messages()),
        ("a chunk far ahead", far_chunk()),
        ("repeated pieces", repeated_pieces()),
        ("tiny messages", tiny_messages()),
        ("heartbeats", heartbeats()),
        ("every second message of a stream", vec![Op::Data(scattered(WHOLE))]),
        ("every second unordered message, read", {
            let burst = Op::Data(Burst { count: 2500, ..scattered(UNORDERED | WHOLE) });
            let next =
                |at| Op::Data(Burst { ahead: at, count: 2500, ..scattered(UNORDERED | WHOLE) });
            vec![burst, Op::Read(5000), next(5_002), Op::Read(5000), next(10_002), Op::Read(5000)]
        }),
        (
            "streams that do not exist",
            vec![
                Op::Data(Burst { stream: 2000, ..scattered(WHOLE) }),
                Op::Data(Burst { stream: 2000, ahead: 9_000, ..scattered(WHOLE) }),
            ],
        ),
        (
            "backwards",
            vec![Op::Data(Burst {
                ahead: 60_000,
                step: u32::MAX - 1,
                ssn_step: 7,
                ..scattered(WHOLE)
            })],
        ),
    ]
}

/// Fragments, long data and other chunks.
fn known_others() -> Known {
    let fragments =
        |flags, size| Burst { ahead: 1, ssn: 0, ssn_step: 0, flags, size, count: 3000, ..ONE };
    vec![
        (
            "a message without end",
            vec![
                Op::Data(Burst { ahead: 0, count: 1, ..fragments(BEGIN, 1) }),
                Op::Data(Burst { ahead: 0, ..fragments(0, 1) }),
                Op::Data(Burst { ahead: 0, ..fragments(0, 100) }),
            ],
        ),
        (
            "a message without beginning",
            vec![
                Op::Data(fragments(0, 1)),
                Op::Data(Burst { ahead: 3_001, count: 1, ..fragments(END, 1) }),
            ],
        ),
        ("held, then all released", {
            let held = Burst { ahead: 1, count: 4000, ..ONE };
            vec![Op::Data(held), Op::InSequence { count: 1, stream: 0, size: 1 }, Op::Read(9000)]
        }),
        (
            "short data in long datagrams",
            vec![
                Op::Data(Burst { size: 300, count: 200, ..ONE }),
                Op::Data(Burst { size: 15_000, ahead: 300, count: 50, ssn: 300, ..ONE }),
            ],
        ),
        (
            "acknowledgements with blocks everywhere",
            vec![
                Op::Send { count: 100, size: 1000 },
                Op::Sack { ahead: 0, first: 2, step: 2, blocks: 10_000 },
                Op::Sack { ahead: 0, first: 60_000, step: u16::MAX, blocks: 10_000 },
            ],
        ),
        (
            "non-renegable acknowledgements with blocks everywhere",
            vec![
                Op::Send { count: 100, size: 1000 },
                Op::NrSack { ahead: 0, first: 3, step: 2, blocks: 20 },
                Op::NrSack { ahead: 0, first: 2, step: 2, blocks: 7000 },
                Op::NrSack { ahead: 0, first: 60_000, step: u16::MAX, blocks: 7000 },
            ],
        ),
        (
            "marks",
            vec![
                Op::Chunks { kind: ECNE, size: 4, count: 7000 },
                Op::Chunks { kind: CWR, size: 4, count: 7000 },
            ],
        ),
        ("all numbers skipped", all_skipped()),
        ("streams reset", resets()),
        ("errors", vec![Op::Chunks { kind: ERROR, size: 60, count: 900 }]),
        ("unknown chunks", vec![Op::Chunks { kind: 0xfe, size: 60, count: 900 }]),
    ]
}

/// Recorded lists of actions that once exceeded the bounds.
#[test]
fn known_attacks_keep_to_the_bounds_in_buffers_of_all_sizes() {
    let table = [known_messages(), known_others()].concat();
    let _measuring = Measuring::begin();
    for buffer in [1 << 16, 1 << 18, 1 << 20] {
        for (what, ops) in &table {
            assert_eq!(play(buffer, ops), Ok(()), "{what} in {buffer} B");
            let twice: Vec<_> = ops.iter().chain(ops).cloned().collect();
            assert_eq!(play(buffer, &twice), Ok(()), "{what} twice in {buffer} B");
            assert_eq!(play_interleaved(buffer, &twice), Ok(()), "{what} as I-DATA in {buffer} B");
            let found = play_with_nr_sacks(buffer, &twice);
            assert_eq!(found, Ok(()), "{what} with NR-SACK in {buffer} B");
        }
    }
}

fn any_burst() -> impl Strategy<Value = Burst> {
    let ahead = prop_oneof![0..4u32, 0..300u32, 0..70_000u32];
    let step = prop_oneof![Just(1u32), Just(2), 1..50u32, Just(u32::MAX)];
    let stream = (prop_oneof![Just(0u16), 0..1030u16], prop_oneof![Just(0u16), Just(1)]);
    let ssn = prop_oneof![Just(0u16), 0..40u16, 0..32_768u16];
    let ssn_step = prop_oneof![Just(0u16), Just(1), 0..50u16];
    let whole = prop_oneof![Just(WHOLE), Just(WHOLE | UNORDERED)];
    let flags = prop_oneof![6 => whole, 1 => 0..16u8];
    let size = prop_oneof![3 => 1..4u16, 1 => 1..60u16, 1 => 1..1400u16];
    let count = prop_oneof![1..10u16, 1..2000u16];
    (ahead, step, stream, ssn, ssn_step, flags, size, count).prop_map(
        |(ahead, step, (stream, stream_step), ssn, ssn_step, flags, size, count)| Burst {
            ahead,
            step,
            stream,
            stream_step,
            ssn,
            ssn_step,
            flags,
            size,
            count,
        },
    )
}

fn any_forward() -> impl Strategy<Value = Op> {
    let ahead = prop_oneof![0..4u32, 0..300u32, 0..70_000u32];
    let step = prop_oneof![Just(1u32), Just(2), 1..50u32, Just(u32::MAX)];
    let ssn = prop_oneof![Just(0u16), 0..40u16, 0..32_768u16];
    let ssn_step = prop_oneof![Just(0u16), Just(1), 0..50u16];
    let listed = prop_oneof![Just(0u16), 0..20u16, 0..14_000u16];
    (ahead, step, 0..2u16, ssn, ssn_step, listed, 1..50u16).prop_map(
        |(ahead, step, stream_step, ssn, ssn_step, listed, count)| Op::Forward {
            ahead,
            step,
            stream_step,
            ssn,
            ssn_step,
            listed,
            count,
        },
    )
}

fn any_re_config() -> impl Strategy<Value = Op> {
    let ahead = prop_oneof![Just(0u32), 0..300u32, 0..70_000u32];
    let listed = prop_oneof![Just(0u16), 0..20u16, 0..20_000u16];
    (13..19u8, ahead, listed, 0..2u16, 1..30u16, 1..4u16).prop_map(
        |(kind, ahead, listed, stream_step, count, repeat)| Op::ReConfig {
            kind,
            ahead,
            listed,
            stream_step,
            count,
            repeat,
        },
    )
}

fn any_op() -> impl Strategy<Value = Op> {
    let kinds = prop_oneof![Just(HEARTBEAT), Just(ERROR), Just(ECNE), Just(CWR), any::<u8>()];
    prop_oneof![
        6 => any_burst().prop_map(Op::Data),
        2 => (1..200u16, 0..8u16, 1..1400u16)
            .prop_map(|(count, stream, size)| Op::InSequence { count, stream, size }),
        1 => (0..200u32, 1..10_000u16, any::<u16>(), 0..4u16, 1..50u16, 1..2000u16).prop_map(
            |(ahead, total, offset, step, size, count)| {
                Op::PartialChunks { ahead, total, offset: offset % total, step, size, count }
            }
        ),
        1 => (0..50u32, 0..60u16, 0..4u16, 0..3000u16)
            .prop_map(|(ahead, first, step, blocks)| Op::Sack { ahead, first, step, blocks }),
        1 => (0..50u32, 0..60u16, 0..4u16, 0..3000u16)
            .prop_map(|(ahead, first, step, blocks)| Op::NrSack { ahead, first, step, blocks }),
        1 => (kinds, 0..60u16, 1..800u16)
            .prop_map(|(kind, size, count)| Op::Chunks { kind, size, count }),
        2 => any_forward(),
        2 => any_re_config(),
        2 => (0..3000u16).prop_map(Op::Read),
        1 => (1..40u16, 500..1400u16).prop_map(|(count, size)| Op::Send { count, size }),
        1 => (0..2000u16).prop_map(Op::Wait),
    ]
}

#[test]
fn whatever_comes_memory_and_work_keep_to_the_bounds() {
    let _measuring = Measuring::begin();
    let text = std::env::var("ROPEWALK_BOUND_CASES").ok();
    let cases = text.map_or(40, |text| text.parse().expect("a number of cases"));
    let config =
        Config { cases, max_shrink_iters: 500, failure_persistence: None, ..Config::default() };
    let buffers = prop_oneof![Just(1u64 << 16), Just(1 << 18), Just(1 << 20)];
    let drawn = (buffers, any::<bool>(), any::<bool>(), proptest::collection::vec(any_op(), 1..30));
    let played = TestRunner::new(config).run(&drawn, |(buffer, interleaved, nr_sack, ops)| {
        let played = Victim::new(bound(buffer), interleaved, nr_sack).play(&ops);
        played.map_err(|broken| TestCaseError::fail(format!("{broken:?}")))
    });
    if let Err(error) = played {
        panic!("{error}");
    }
}
