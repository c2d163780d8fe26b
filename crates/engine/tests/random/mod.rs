//! Random associations over random networks: no data is lost, duplicated or reordered, bounds are met at
//! every step, and once the network heals the transfer finishes.
//!
//! `ROPEWALK_CASES` sets the number of cases, `ROPEWALK_SEED` their seed. A failing case is printed in
//! its minimal form, and belongs in `kept.rs`.

mod case;
mod datagrams;
mod end;
mod kept;
mod play;
mod promises;

use proptest::test_runner::{
    Config, FileFailurePersistence, RngAlgorithm, TestCaseError, TestRng, TestRunner,
};

use self::case::any_case;
use self::play::play;

/// Number of cases unless the environment sets it.
const CASES: u32 = 10_000;
/// Cases per runner: small, so that threads share the work evenly.
const BATCH: u32 = 250;
/// File of failures, which are tried first from then on.
const FAILURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/transfers.txt");

fn from_environment(name: &str, otherwise: u32) -> u32 {
    let text = std::env::var(name).ok();
    text.map_or(otherwise, |t| t.parse().unwrap_or_else(|_| panic!("{name} = {t}: not a number")))
}

/// One batch of cases, all from `seed`.
fn run_batch(seed: u32, batch: u32, cases: u32) -> Result<(), String> {
    let config = Config {
        cases,
        max_shrink_iters: 3000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(FAILURES))),
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&seed.to_le_bytes());
    bytes[4..8].copy_from_slice(&batch.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let verdict = runner.run(&any_case(), |case| play(&case).map_err(TestCaseError::fail));
    verdict.map_err(|error| format!("ROPEWALK_SEED={seed}, batch {batch}: {error}"))
}

#[test]
fn every_transfer_ends_whole_and_in_order_once_the_network_heals() {
    let cases = from_environment("ROPEWALK_CASES", CASES);
    let seed = from_environment("ROPEWALK_SEED", 1);
    let batches = cases.div_ceil(BATCH);
    let threads = std::thread::available_parallelism().map_or(2, usize::from) as u32;
    let failures: Vec<String> = std::thread::scope(|scope| {
        let work = |thread: u32| {
            let mine = (thread..batches).step_by(threads as usize);
            mine.filter_map(|batch| run_batch(seed, batch, BATCH.min(cases)).err()).take(1).next()
        };
        let workers: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        workers.into_iter().filter_map(|w| w.join().expect("a worker")).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
