//! Random operations; then everything is finished, and must come to an end.

use proptest::prelude::*;

use crate::world::{STREAMS, World};

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

fn apply(world: &mut World, op: &Op) {
    let user = |world: &World, at: usize, choice: usize| {
        let n = world.ends[at].users.len();
        (n > 0).then(|| choice % n)
    };
    match *op {
        Op::Open(at) => {
            world.open(at);
        }
        Op::Transmit(at) => {
            world.transmit(at);
        }
        Op::Deliver(at, choice) => {
            world.deliver(at, choice);
        }
        Op::Answer(at, u, yes) => {
            if let Some(u) = user(world, at, u) {
                world.answer(at, u, yes);
            }
        }
        Op::Write(at, u, n) => {
            if let Some(u) = user(world, at, u) {
                world.write(at, u, n);
            }
        }
        Op::Read(at, u, n) => {
            if let Some(u) = user(world, at, u) {
                world.read(at, u, n);
            }
        }
        Op::Finish(at, u) => {
            if let Some(u) = user(world, at, u) {
                world.finish(at, u);
            }
        }
        Op::Release(at, u) => {
            if let Some(u) = user(world, at, u) {
                world.release(at, u);
            }
        }
    }
    world.check_memory(0);
    world.check_memory(1);
}

/// Delivers and reads until nothing moves any more.
fn settle(world: &mut World) {
    loop {
        let mut moved = false;
        for at in 0..2 {
            while world.transmit(at) {
                moved = true;
            }
            let mut choice = 0;
            while world.deliver(at, choice) {
                moved = true;
                choice += 1;
            }
            for user in 0..world.ends[at].users.len() {
                world.answer(at, user, true);
                while world.read(at, user, 10_000) > 0 {
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
        let mut world = World::new();
        for op in &ops {
            apply(&mut world, op);
        }
        settle(&mut world);
        for at in 0..2 {
            for user in 0..world.ends[at].users.len() {
                world.finish(at, user);
            }
        }
        settle(&mut world);
        for (number, tracks) in world.tracks.iter().enumerate() {
            if !world.broken[number] {
                for track in tracks {
                    prop_assert!(track.ended, "stream {} has no end: {:?}", number, track);
                    prop_assert_eq!(track.read, track.written);
                }
            }
        }
        for at in 0..2 {
            while !world.ends[at].users.is_empty() {
                world.release(at, 0);
            }
        }
        settle(&mut world);
        for at in 0..2 {
            prop_assert!(world.ends[at].mux.is_empty(), "forgotten: {:?}", world.ends[at].mux);
            prop_assert_eq!(world.ends[at].mux.reserved(), 0);
            let opened = (0..STREAMS).take_while(|_| world.open(at)).count();
            prop_assert_eq!(opened, usize::from(STREAMS / 2), "all numbers are free again");
        }
    }
}
