//! Random operations over random paths: no data is lost, duplicated or reordered. Then the network heals
//! and all data must arrive.

use proptest::prelude::*;
use ropewalk_base::{Duration, Seed, Time};
use ropewalk_engine::mptcp::{Config, Reinjection, Reordering};
use ropewalk_engine::scheduler::Scheduler;

use super::driver::{Fate, LEFT, Pair, RIGHT, config};

/// A random case.
#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    scheduler: usize,
    delays: Vec<u64>,
    buffer: u64,
    writes: Vec<u64>,
    loss: f64,
    late: f64,
    twice: f64,
    by_time: bool,
    sack: bool,
    on_loss: bool,
    nagle: bool,
    multipath: bool,
    /// Interval between two writes, ms.
    spacing: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let delays = proptest::collection::vec(1u64..150, 1..4);
    let writes = proptest::collection::vec(1u64..40_000, 1..12);
    let rates = (0.0..0.3, 0.0..0.2, 0.0..0.1);
    let flags = [any::<bool>(); 5];
    let spacing = prop_oneof![1u64..20, Just(500)];
    let names = 0..Scheduler::NAMES.len();
    (any::<u64>(), names, delays, 3_000u64..200_000, writes, rates, flags, spacing).prop_map(
        |(seed, scheduler, delays, buffer, writes, (loss, late, twice), flags, spacing)| {
            let [by_time, sack, on_loss, nagle, multipath] = flags;
            Case {
                seed,
                scheduler,
                delays,
                buffer,
                writes,
                loss,
                late,
                twice,
                by_time,
                sack,
                on_loss,
                nagle,
                multipath,
                spacing,
            }
        },
    )
}

fn configured(case: &Case) -> Config {
    Config {
        reordering: if case.by_time { Reordering::RackTlp } else { Reordering::None },
        sack: case.sack,
        reinjection: if case.on_loss { Reinjection::OnLoss } else { Reinjection::OnTimeout },
        nagle: case.nagle,
        // Plain TCP has one path.
        multipath: case.multipath || case.delays.len() > 1,
        max_retransmissions: 1_000,
        ..config(case.delays.len(), case.buffer)
    }
}

/// Writes, with disturbances for twenty seconds and none afterwards.
fn play(case: &Case) -> (Pair, u64) {
    let both = configured(case);
    let name = Scheduler::NAMES[case.scheduler];
    let mut pair = Pair::of([both.clone(), both], name, &case.delays);
    let mut rng = Seed::root(case.seed).rng();
    let (loss, late, twice) = (case.loss, case.late, case.twice);
    pair.script(move |sent| {
        if sent.at >= Time::from_secs(20) {
            return Fate::Arrive;
        }
        let draw = rng.unit();
        if draw < loss {
            Fate::Drop
        } else if draw < loss + late {
            Fate::Late(Duration::from_millis(rng.below(200)))
        } else if draw < loss + late + twice {
            Fate::Twice
        } else {
            Fate::Arrive
        }
    });
    let mut written = 0;
    for (i, bytes) in case.writes.iter().enumerate() {
        let bytes = (*bytes).min(pair.ends[LEFT].send_room());
        if bytes > 0 {
            pair.write(written, bytes);
            written += bytes;
        }
        pair.run_until(case.spacing * (i as u64 + 1));
        let (held, window) = pair.ends[RIGHT].receive_occupancy();
        assert!(held <= case.buffer && window <= case.buffer, "held {held}, window {window}");
    }
    pair.run_until(300_000);
    (pair, written)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn everything_arrives_once_and_in_order(case in case()) {
        let (pair, written) = play(&case);
        prop_assert!(
            pair.has_read(written),
            "{} of {written} bytes read; {:?}", pair.read[RIGHT].len(), pair.ends[LEFT].state()
        );
        prop_assert!(pair.ends[LEFT].is_flushed());
    }
}
