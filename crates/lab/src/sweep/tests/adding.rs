//! Adding seeds to a finished sweep: the result equals that of a sweep with all seeds, and no run is
//! repeated.

use proptest::prelude::*;

use super::*;

const VARY: [&str; 2] = ["path.lte.rtt=50ms,200ms", "transfer.scheduler=round-robin,daps"];
const POINTS: u64 = 4;

fn seeds(text: &str) -> SweepPlan {
    plan_with(&VARY, text.parse().expect(text)).expect("a sound plan")
}

/// Both tables and the file of a sweep with these seeds in one piece.
fn at_once(dir: &Room, text: &str) -> (Tables, Vec<u8>) {
    let out = dir.file("at-once.parquet");
    let fresh = SweepOptions { fresh: true, ..options(&out, None) };
    let (tables, _) = finish(&seeds(text), fresh, 2);
    (tables, fs::read(out).expect("a result"))
}

#[test]
fn seeds_can_be_added_in_any_order_without_running_the_former_ones_again() {
    let dir = Room::new("adding");
    for (first, second, new, all) in [
        ("2", "3..4", 2, "4"),
        ("2", "4", 2, "4"),
        ("3..4", "2", 2, "4"),
        ("2..2", "1..3", 2, "3"),
        ("1,5", "3", 2, "1..3,5"),
        ("3", "1", 0, "3"),
    ] {
        let out = dir.file("x.parquet");
        let fresh = SweepOptions { fresh: true, ..options(&out, None) };
        finish(&seeds(first), fresh, 2);
        let estimated = estimate(&seeds(second), &options(&out, None)).expect("an estimate");
        assert_eq!(estimated.runs_left, new * POINTS, "{first} and then {second}");
        let (tables, runs) = finish(&seeds(second), options(&out, None), 2);
        assert_eq!(runs, new * POINTS, "{first} and then {second}");
        let (expected, bytes) = at_once(&dir, all);
        assert_eq!(tables, expected, "{first} and then {second}");
        assert!(fs::read(&out).expect("a result") == bytes, "{first} and then {second}");
        let count = all.parse::<Seeds>().expect(all).count();
        assert!(tables.means["runs"].as_primitive::<UInt64Type>().iter().all(|n| n == Some(count)));
    }
    assert_eq!(dir.names(), ["at-once.parquet", "x.parquet"]);
}

#[test]
fn sweeps_with_different_seeds_are_joined_like_shards() {
    let dir = Room::new("joining");
    let files = ["2", "5..5", "3..4"].map(|text| {
        let out = dir.file(&format!("{text}.parquet"));
        finish(&seeds(text), options(&out, None), 2);
        out
    });
    let joined = merge(&files).expect("every run once");
    let (expected, bytes) = at_once(&dir, "5");
    assert_eq!(joined, expected);
    let out = dir.file("joined.parquet");
    write(&out, &joined.runs).expect("a writable room");
    assert!(fs::read(&out).expect("a result") == bytes);
    // A merged result can be continued.
    assert_eq!(finish(&seeds("6"), options(&out, None), 2).1, POINTS);
    assert!(fs::read(&out).expect("a result") == at_once(&dir, "6").1);
}

#[test]
fn a_shard_takes_further_seeds() {
    let dir = Room::new("shard-seeds");
    let parts = ["1/2", "2/2"].map(|shard| {
        let out = dir.file(&format!("{}.parquet", &shard[..1]));
        finish(&seeds("2"), options(&out, Some(shard)), 2);
        assert_eq!(finish(&seeds("3"), options(&out, Some(shard)), 2).1, POINTS / 2);
        out
    });
    assert_eq!(merge(&parts).expect("both shards"), at_once(&dir, "3").0);
}

#[test]
fn a_sweep_that_was_interrupted_is_finished_with_all_seeds_that_it_began() {
    let dir = Room::new("begun-seeds");
    let out = dir.file("x.parquet");
    let mut sweep = Sweep::open(&seeds("3"), options(&out, None)).expect("a good place");
    for run in sweep.left().into_iter().take(4) {
        sweep.keep(seeds("3").grid().run(run.0, run.1)).expect("a run that is left");
    }
    drop(sweep);
    let sweep = Sweep::open(&seeds("5..5"), options(&out, None)).expect("its own journal");
    assert_eq!((sweep.seeds().to_string(), sweep.runs()), ("1..3,5".into(), 16));
    drop(sweep);
    assert_eq!(finish(&seeds("5..5"), options(&out, None), 2).1, 12);
    assert!(fs::read(&out).expect("a result") == at_once(&dir, "1..3,5").1);
}

#[test]
fn a_kill_at_any_byte_of_the_journal_costs_only_what_was_not_written() {
    let dir = Room::new("cut-anywhere");
    let out = dir.file("x.parquet");
    finish(&seeds("1"), options(&out, None), 2);
    let before = fs::read(&out).expect("a result");
    let mut sweep = Sweep::open(&seeds("3"), options(&out, None)).expect("a good place");
    let plan = seeds("3");
    let rows: Vec<RunRow> =
        sweep.left().iter().map(|(point, seed)| plan.grid().run(*point, *seed)).collect();
    for row in &rows {
        sweep.keep(row.clone()).expect("a run that is left");
    }
    drop(sweep);
    let journal = fs::read(journal_of(&out)).expect("the journal");
    let bytes = at_once(&dir, "3").1;
    for cut in (0..=journal.len()).step_by(37).chain([journal.len()]) {
        fs::write(&out, &before).expect("a writable room");
        fs::write(journal_of(&out), &journal[..cut]).expect("a writable room");
        let whole = journal[..cut].iter().filter(|byte| **byte == b'\n').count();
        let mut sweep = Sweep::open(&plan, options(&out, None)).expect("a cut journal");
        let left = sweep.left();
        assert_eq!(left.len(), rows.len() - whole.saturating_sub(1), "cut at {cut}");
        for row in rows.iter().filter(|row| left.contains(&(row.point, row.seed))) {
            sweep.keep(row.clone()).expect("a run that is left");
        }
        sweep.close().expect("all runs");
        assert!(fs::read(&out).expect("a result") == bytes, "cut at {cut}");
        assert!(!journal_of(&out).exists());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Requests seeds in any number of steps. Each step may be stopped after some runs.
    #[test]
    fn any_course_of_stops_and_further_seeds_runs_each_run_once(
        steps in prop::collection::vec((1..6u32, 0..3u32, prop::option::of(1..9u64), 1..4usize), 1..5),
    ) {
        let dir = Room::new("course");
        let out = dir.file("x.parquet");
        let done = AtomicU64::new(0);
        for (first, more, stop, threads) in steps {
            let plan = seeds(&format!("{first}..{}", first + more));
            let until = done.load(Ordering::Relaxed) + stop.unwrap_or(u64::MAX / 2);
            let count = || match done.fetch_add(1, Ordering::Relaxed) + 1 {
                runs if runs < until => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            };
            let sweep = Sweep::open(&plan, options(&out, None)).expect("a good place");
            match sweep.finish(threads, &count) {
                Ok(_) | Err(SweepError::Stopped) => {}
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            }
        }
        // The last step requests no new seeds.
        let sweep = Sweep::open(&seeds("1"), options(&out, None)).expect("a good place");
        let (all, left, text) = (sweep.runs(), sweep.left().len() as u64, sweep.seeds().to_string());
        prop_assert_eq!(done.load(Ordering::Relaxed) + left, all, "nothing ran twice");
        drop(sweep);
        let (tables, runs) = finish(&seeds("1"), options(&out, None), 2);
        prop_assert_eq!(runs, left);
        let (expected, bytes) = at_once(&dir, &text);
        prop_assert_eq!(tables, expected);
        prop_assert!(fs::read(&out).expect("a result") == bytes);
    }
}
