//! Random operations, after which everything is finished and must end.

use proptest::prelude::*;

use super::pair::{MuxPair, STREAMS};

#[derive(Clone, Debug)]
enum Op {
    Open(usize),
    Transmit(usize),
    Deliver(usize, usize),
    Answer(usize, usize, bool),
    Write(usize, usize, usize),
    Read(usize, usize, usize),
    Finish(usize, usize),
    Release(usize, usize),
}

fn op() -> impl Strategy<Value = Op> {
    let at = 0..2usize;
    let user = 0..64usize;
    prop_oneof![
        3 => at.clone().prop_map(Op::Open),
        30 => at.clone().prop_map(Op::Transmit),
        30 => (at.clone(), user.clone()).prop_map(|(a, u)| Op::Deliver(a, u)),
        6 => (at.clone(), user.clone(), prop::bool::weighted(0.85))
            .prop_map(|(a, u, y)| Op::Answer(a, u, y)),
        14 => (at.clone(), user.clone(), 1..12_000usize).prop_map(|(a, u, n)| Op::Write(a, u, n)),
        14 => (at.clone(), user.clone(), 1..30_000usize).prop_map(|(a, u, n)| Op::Read(a, u, n)),
        3 => (at.clone(), user.clone()).prop_map(|(a, u)| Op::Finish(a, u)),
        1 => (at, user).prop_map(|(a, u)| Op::Release(a, u)),
    ]
}

fn apply(pair_state: &mut MuxPair, op: &Op) {
    let user = |pair_state: &MuxPair, at: usize, choice: usize| {
        let n = pair_state.ends[at].users.len();
        (n > 0).then(|| choice % n)
    };
    match *op {
        Op::Open(at) => {
            pair_state.open(at);
        }
        Op::Transmit(at) => {
            pair_state.transmit(at);
        }
        Op::Deliver(at, choice) => {
            pair_state.deliver(at, choice);
        }
        Op::Answer(at, u, yes) => {
            if let Some(u) = user(pair_state, at, u) {
                pair_state.answer(at, u, yes);
            }
        }
        Op::Write(at, u, n) => {
            if let Some(u) = user(pair_state, at, u) {
                pair_state.write(at, u, n);
            }
        }
        Op::Read(at, u, n) => {
            if let Some(u) = user(pair_state, at, u) {
                pair_state.read(at, u, n);
            }
        }
        Op::Finish(at, u) => {
            if let Some(u) = user(pair_state, at, u) {
                pair_state.finish(at, u);
            }
        }
        Op::Release(at, u) => {
            if let Some(u) = user(pair_state, at, u) {
                pair_state.release(at, u);
            }
        }
    }
    pair_state.check_memory(0);
    pair_state.check_memory(1);
}

/// Delivers and reads until no more progress is possible.
fn settle(pair_state: &mut MuxPair) {
    loop {
        let mut moved = false;
        for at in 0..2 {
            while pair_state.transmit(at) {
                moved = true;
            }
            let mut choice = 0;
            while pair_state.deliver(at, choice) {
                moved = true;
                choice += 1;
            }
            for user in 0..pair_state.ends[at].users.len() {
                pair_state.answer(at, user, true);
                while pair_state.read(at, user, 10_000) > 0 {
                    moved = true;
                }
            }
        }
        if !moved {
            return;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn nothing_is_lost_order_is_kept_and_in_the_end_all_numbers_and_all_memory_are_free(
        ops in prop::collection::vec(op(), 1..600)
    ) {
        let mut pair_state = MuxPair::new();
        for op in &ops {
            apply(&mut pair_state, op);
        }
        settle(&mut pair_state);
        for at in 0..2 {
            for user in 0..pair_state.ends[at].users.len() {
                pair_state.finish(at, user);
            }
        }
        settle(&mut pair_state);
        for (number, tracks) in pair_state.tracks.iter().enumerate() {
            if !pair_state.broken[number] {
                for track in tracks {
                    prop_assert!(track.ended, "stream {} has no end: {:?}", number, track);
                    prop_assert_eq!(track.read, track.written);
                }
            }
        }
        for at in 0..2 {
            while !pair_state.ends[at].users.is_empty() {
                pair_state.release(at, 0);
            }
        }
        settle(&mut pair_state);
        for at in 0..2 {
            prop_assert!(pair_state.ends[at].mux.is_empty(), "forgotten: {:?}", pair_state.ends[at].mux);
            prop_assert_eq!(pair_state.ends[at].mux.reserved(), 0);
            let opened = (0..STREAMS).take_while(|_| pair_state.open(at)).count();
            prop_assert_eq!(opened, usize::from(STREAMS / 2), "all numbers are free again");
        }
    }
}
