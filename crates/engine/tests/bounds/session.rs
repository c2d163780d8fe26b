//! An end of a Multipath TCP session, and a peer that may send any input.

use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestCaseError, TestRunner};
use ropewalk_base::{Duration, PathId, Seed, Time};
use ropewalk_engine::meter::{self, Defect};
use ropewalk_engine::mptcp::session::State;
use ropewalk_engine::mptcp::{Config, Preset, Segment, Session, SubflowAck};
use ropewalk_engine::path::PathConfig;
use ropewalk_engine::scheduler::{Scheduler, SchedulerOptions};

use crate::{Bound, Broken, Measuring, allocated, assert_caught};

/// A segment of one byte takes 60 bytes on the wire.
const STEPS_PER_BYTE: u64 = 4;
const HEADERS: u64 = 60;

/// Segments whose numbers increase by fixed steps, or an action of the user.
#[derive(Clone, Debug)]
enum Op {
    Data(Burst),
    /// The user reads this many pieces.
    Read(u16),
    /// Time passes, ms.
    Wait(u16),
}

#[derive(Clone, Copy, Debug)]
struct Burst {
    path: u8,
    /// Data sequence number of the first segment, relative to the next in order, and of each further one,
    /// relative to the previous one.
    ahead: u32,
    step: u32,
    /// The same on the subflow, relative to its acknowledgement.
    seq: u32,
    seq_step: u32,
    size: u16,
    count: u16,
}

fn end(config: &Config, opens: bool) -> Session {
    let scheduler =
        Scheduler::from_name("min-rtt", &SchedulerOptions::default()).expect("built in");
    if opens {
        Session::start_later(config.clone(), scheduler, Seed::root(3), Time::ZERO)
    } else {
        Session::listen(config.clone(), scheduler, Seed::root(4))
    }
}

/// Passes on the segments of `from`, and records the last acknowledgements of subflows and of data.
fn drain(now: Time, from: &mut Session, mut take: impl FnMut(PathId, &mut Segment)) {
    let mut segment = Segment::default();
    while let Some(transmit_info) = from.poll_transmit_into(now, &mut segment) {
        take(transmit_info.path, &mut segment);
    }
    while from.poll_event().is_some() {}
}

struct Victim {
    end: Box<Session>,
    bound: Bound,
    now: Time,
    before: usize,
    /// Acknowledged at data level, and on each subflow.
    data_ack: u64,
    acks: [u64; 2],
    came: u64,
    steps: u64,
}

impl Victim {
    fn new(receive_buffer: u64, gated: bool) -> Self {
        let mut config =
            Config::preset(Preset::Rfc8684, vec![PathConfig::default(); 2], receive_buffer);
        if gated {
            config.subflow_ack = SubflowAck::DataGated;
        }
        let before = allocated();
        let mut now = Time::ZERO;
        let (mut left, mut right) = (end(&config, true), Box::new(end(&config, false)));
        for _ in 0..10 {
            now += Duration::from_millis(20);
            left.handle_timeout(now);
            right.handle_timeout(now);
            for _ in 0..3 {
                drain(now, &mut left, |path, segment| right.handle_in_place(now, path, segment));
                drain(now, &mut right, |path, segment| left.handle_in_place(now, path, segment));
            }
        }
        assert_eq!((left.state(), right.state()), (State::Established, State::Established));
        meter::take();
        let bound = Bound { receive_buffer, steps_per_byte: STEPS_PER_BYTE };
        Self { end: right, bound, now, before, data_ack: 0, acks: [1; 2], came: 0, steps: 0 }
    }

    fn play(&mut self, ops: &[Op]) -> Result<(), Broken> {
        for op in ops {
            match op {
                Op::Data(burst) => self.data(burst),
                Op::Read(count) => (0..*count).for_each(|_| drop(self.end.read())),
                Op::Wait(millis) => {
                    self.now += Duration::from_millis(u64::from(*millis));
                    self.end.handle_timeout(self.now);
                }
            }
            self.drain();
            self.steps += meter::take();
            let memory = allocated().saturating_sub(self.before);
            self.bound.check(memory, self.came, self.steps)?;
        }
        Ok(())
    }

    fn data(&mut self, burst: &Burst) {
        let path = usize::from(burst.path);
        let (dsn, seq) = (self.data_ack, self.acks[path]);
        for i in 0..u64::from(burst.count) {
            let mut segment = Segment {
                acks: true,
                ack: 1,
                data_ack: Some(0),
                window: 1 << 20,
                dsn: dsn + u64::from(burst.ahead) + u64::from(burst.step) * i,
                seq: seq + u64::from(burst.seq) + u64::from(burst.seq_step) * i,
                payload: Bytes::from(vec![7; usize::from(burst.size)]).into(),
                ..Segment::default()
            };
            self.came += HEADERS + u64::from(burst.size);
            self.end.handle_in_place(self.now, PathId(burst.path), &mut segment);
            self.drain();
        }
    }

    fn drain(&mut self) {
        let (data_ack, acks) = (&mut self.data_ack, &mut self.acks);
        drain(self.now, &mut self.end, |path, segment| {
            *data_ack = segment.data_ack.map_or(*data_ack, |ack| ack.max(*data_ack));
            let ack = &mut acks[path.index()];
            *ack = segment.ack.max(*ack);
        });
    }
}

const ONE: Burst =
    Burst { path: 0, ahead: 1, step: 2, seq: 1, seq_step: 2, size: 1, count: 60_000 };

fn scattered() -> Vec<Op> {
    vec![Op::Data(ONE)]
}

/// The same byte repeatedly, with arbitrary numbers of the subflow.
fn the_same_anywhere() -> Vec<Op> {
    vec![Op::Data(Burst { ahead: 0, step: 0, seq: 5, seq_step: 1000, ..ONE })]
}

#[test]
fn each_defect_of_a_session_is_caught_by_an_attack_of_its_class() {
    let memory: fn(&Broken) -> bool = |broken| matches!(broken, Broken::Memory(..));
    type Attack = (Defect, fn() -> Vec<Op>);
    let table: [Attack; 2] =
        [(Defect::UncountedSegments, scattered), (Defect::UnboundedRanges, the_same_anywhere)];
    for (defect, attack) in table {
        assert_caught(defect, memory, || Victim::new(1 << 18, false).play(&attack()));
    }
}

#[test]
fn known_attacks_keep_a_session_to_the_bounds_in_buffers_of_all_sizes() {
    let table: [(&str, Vec<Op>); 6] = [
        ("every second byte", scattered()),
        ("the same byte anywhere", the_same_anywhere()),
        (
            "single bytes in order",
            vec![Op::Data(Burst { ahead: 0, step: 1, seq: 0, seq_step: 1, ..ONE })],
        ),
        (
            "every byte of what is there",
            vec![
                Op::Data(Burst {
                    ahead: 1,
                    step: 1400,
                    seq_step: 1400,
                    size: 1400,
                    count: 100,
                    ..ONE
                }),
                Op::Data(Burst { ahead: 2, step: 1, path: 1, ..ONE }),
            ],
        ),
        (
            "one new byte of each long segment",
            vec![
                Op::Data(Burst { ahead: 20_000, step: 40, size: 20, count: 500, ..ONE }),
                Op::Data(Burst { ahead: 19_000, step: 40, size: 1400, count: 500, ..ONE }),
            ],
        ),
        (
            "backwards",
            (0..60u32)
                .map(|i| Op::Data(Burst { ahead: 60_000 - 1000 * i, step: 2, count: 400, ..ONE }))
                .collect(),
        ),
    ];
    let _measuring = Measuring::begin();
    for buffer in [1 << 16, 1 << 18, 1 << 20] {
        for (what, ops) in &table {
            for gated in [false, true] {
                let found = Victim::new(buffer, gated).play(ops);
                assert_eq!(found, Ok(()), "{what} in {buffer} B, gated {gated}");
            }
        }
    }
}

fn any_burst() -> impl Strategy<Value = Burst> {
    let ahead = || prop_oneof![0..4u32, 0..3000u32, 0..1_000_000u32];
    let step = || prop_oneof![Just(0u32), Just(1), Just(2), 0..3000u32];
    let size = prop_oneof![Just(1u16), 1..60u16, 1..1460u16];
    (0..2u8, ahead(), step(), ahead(), step(), size, 1..2000u16).prop_map(
        |(path, ahead, step, seq, seq_step, size, count)| Burst {
            path,
            ahead,
            step,
            seq,
            seq_step,
            size,
            count,
        },
    )
}

#[test]
fn whatever_comes_a_session_keeps_to_the_bounds() {
    let _measuring = Measuring::begin();
    let text = std::env::var("ROPEWALK_BOUND_CASES").ok();
    let cases = text.map_or(40, |text| text.parse().expect("a number of cases"));
    let config =
        Cases { cases, max_shrink_iters: 500, failure_persistence: None, ..Cases::default() };
    let op = prop_oneof![
        8 => any_burst().prop_map(Op::Data),
        1 => (0..300u16).prop_map(Op::Read),
        1 => (0..2000u16).prop_map(Op::Wait),
    ];
    let buffers = prop_oneof![Just(1u64 << 16), Just(1 << 18), Just(1 << 20)];
    let drawn = (buffers, any::<bool>(), proptest::collection::vec(op, 1..20));
    let played = TestRunner::new(config).run(&drawn, |(buffer, gated, ops)| {
        let found = Victim::new(buffer, gated).play(&ops);
        found.map_err(|broken| TestCaseError::fail(format!("{broken:?}")))
    });
    if let Err(error) = played {
        panic!("{error}");
    }
}
