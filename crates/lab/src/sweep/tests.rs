mod adding;
mod flows;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use serde_json::Value as Json;

use super::*;
use crate::custom_schedulers::CustomSchedulers;
use crate::run::run;
use crate::setup::RunOptions;

const SCENARIO: &str = "[transfer]\nduration = '2 s'\nseed = 7\nreceive_buffer = '30 kB'\n\
    [[path]]\nname = 'wifi'\nrate = '1 Mbit/s'\nrtt = '20 ms'\nloss = 0.02\n\
    [[path]]\nname = 'lte'\nrate = '2 Mbit/s'\nrtt = '200 ms'\n";

fn source() -> Source {
    Source {
        text: SCENARIO.into(),
        name: "two.toml".into(),
        sets: Vec::new(),
        seed: None,
        custom_schedulers: CustomSchedulers::default(),
    }
}

fn plan_of(vary: &[&str], seeds: u32) -> Result<SweepPlan, SweepError> {
    plan_with(vary, Seeds::first(seeds).expect("a number of seeds"))
}

fn plan_with(vary: &[&str], seeds: Seeds) -> Result<SweepPlan, SweepError> {
    let axes = vary.iter().map(|vary| Axis::parse(vary)).collect::<Result<_, _>>()?;
    SweepPlan::new(source(), axes, seeds)
}

/// Three by two points, three seeds each.
fn plan() -> SweepPlan {
    let vary = ["path.lte.rtt=50ms..200ms/3", "transfer.scheduler=round-robin,daps"];
    plan_of(&vary, 3).expect("a sound plan")
}

/// A temporary directory, removed when this value is dropped.
struct Room(PathBuf);

impl Room {
    fn new(name: &str) -> Self {
        let dir =
            std::env::temp_dir().join(format!("ropewalk-sweep-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a temporary directory");
        Self(dir)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the room");
        let names = entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn options<'a>(out: &'a Path, shard: Option<&str>) -> SweepOptions<'a> {
    let shard = shard.map(|shard| shard.parse().expect("a shard"));
    SweepOptions { out: Some(out), shard, fresh: false }
}

/// Executes all remaining runs; returns their number.
fn finish(plan: &SweepPlan, options: SweepOptions<'_>, threads: usize) -> (Tables, u64) {
    let runs = AtomicU64::new(0);
    let sweep = Sweep::open(plan, options).expect("a good place");
    let left = sweep.left().len() as u64;
    let count = || {
        runs.fetch_add(1, Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    let table = sweep.finish(threads, &count).expect("a result");
    assert_eq!(runs.load(Ordering::Relaxed), left);
    (table, left)
}

fn floats(table: &RecordBatch, name: &str) -> Vec<f64> {
    table[name].as_primitive::<Float64Type>().values().to_vec()
}

#[test]
fn the_bytes_show_neither_threads_nor_shards() {
    let dir = Room::new("bytes");
    let plan = plan();
    let mut files = Vec::new();
    for threads in [1, 2, 5] {
        let out = dir.file(&format!("{threads}.parquet"));
        finish(&plan, options(&out, None), threads);
        files.push(fs::read(out).expect("a result"));
    }
    let shards: Vec<PathBuf> =
        ["1/2", "2/2"].map(|name| dir.file(&format!("s{}.parquet", &name[..1]))).into();
    for (shard, out) in ["1/2", "2/2"].iter().zip(&shards) {
        let (tables, runs) = finish(&plan, options(out, Some(shard)), 2);
        assert_eq!((tables.means.num_rows(), runs), (3, 9), "{shard}");
    }
    // In any order.
    for order in [[0, 1], [1, 0]] {
        let merged = merge(&order.map(|at| shards[at].clone())).expect("all shards");
        write(&dir.file("merged.parquet"), &merged.runs).expect("a writable room");
        files.push(fs::read(dir.file("merged.parquet")).expect("the merged result"));
    }
    assert!(files.iter().all(|file| *file == files[0]), "all five files are one");
    assert_eq!(dir.names().iter().filter(|name| name.ends_with("journal")).count(), 0);
}

#[test]
fn a_row_has_the_mean_of_its_runs_and_the_first_of_them_is_that_of_the_scenario() {
    let plan = plan();
    let (Tables { runs, means: table }, _) = finish(&plan, SweepOptions::default(), 2);
    assert_eq!(floats(&table, "path.lte.rtt_s"), [0.05, 0.05, 0.125, 0.125, 0.2, 0.2]);
    let schedulers = table["transfer.scheduler"].as_string::<i32>();
    assert_eq!(schedulers.iter().flatten().take(2).collect::<Vec<_>>(), ["round-robin", "daps"]);
    assert_eq!(plan.grid().seed(1), 7);
    let goodputs: Vec<f64> = (1..=3)
        .map(|seed| {
            let mut scenario = plan.grid().scenario(3).expect("a sound point");
            scenario.transfer.seed = plan.grid().seed(seed);
            run(&scenario, &RunOptions::default()).expect("a run").result.goodput_bps
        })
        .collect();
    assert_eq!(floats(&runs, "goodput_bps")[9..12], goodputs);
    let numbers = runs["seed_number"].as_primitive::<UInt64Type>().values().to_vec();
    assert_eq!(numbers, [1, 2, 3].repeat(6));
    let seeds = runs["seed"].as_primitive::<UInt64Type>().values().to_vec();
    assert_eq!(seeds, [1, 2, 3].map(|number| plan.grid().seed(number)).repeat(6));
    assert_eq!(floats(&runs, "path.lte.rtt_s")[9..12], [0.125; 3]);
    let estimate = crate::compare::estimate(&goodputs).expect("three runs");
    assert_eq!(floats(&table, "goodput_bps")[3], estimate.mean);
    let half = estimate.half_width.expect("three runs");
    assert_eq!(floats(&table, "goodput_bps_half_width")[3], half);
    assert!(half > 0.0, "the seeds differ");
    assert_eq!(table["runs"].as_primitive::<UInt64Type>().values().to_vec(), [3; 6]);
    assert!(floats(&table, "blocked_share").iter().all(|share| (0.0..=1.0).contains(share)));
}

#[test]
fn what_is_in_the_journal_is_not_done_again_and_half_a_line_is() {
    let dir = Room::new("resume");
    let plan = plan();
    let whole = dir.file("whole.parquet");
    let (tables, _) = finish(&plan, options(&whole, None), 2);
    // The journal of a sweep that was killed while writing its fourth run.
    let out = dir.file("cut.parquet");
    let journal = journal_of(&out);
    let header = journal::Header::new(plan.identity().clone(), None, plan.grid().columns().len());
    let (mut writer, rows) =
        journal::Journal::open(&journal, &header, false).expect("a new journal");
    assert!(rows.is_empty());
    for (point, seed) in [(4, 1), (0, 3), (0, 1), (5, 2)] {
        writer.add(&plan.grid().run(point, seed)).expect("a writable room");
    }
    // The lock excludes other processes.
    let busy = Sweep::open(&plan, options(&out, None)).expect_err("a lock").to_string();
    assert!(busy.contains("another sweep is writing it"), "{busy}");
    drop(writer);
    let bytes = fs::read(&journal).expect("the journal");
    fs::write(&journal, &bytes[..bytes.len() - 9]).expect("a writable room");
    let estimated = estimate(&plan, &options(&out, None)).expect("an estimate");
    assert_eq!((estimated.points, estimated.points_left, estimated.runs_left), (6, 6, 15));
    assert!(estimated.run_cpu_s.expect("runs are left") > 0.0);
    let (resumed, runs) = finish(&plan, options(&out, None), 2);
    assert_eq!((runs, &resumed), (15, &tables));
    assert_eq!(fs::read(&out).expect("a result"), fs::read(&whole).expect("a result"));
    // In a second run, nothing is left to do, and the result is the same, even if a kill between the last two
    // steps left the journal.
    fs::write(&journal, &bytes).expect("a writable room");
    let (again, runs) = finish(&plan, options(&out, None), 2);
    assert_eq!((runs, &again), (0, &tables));
    assert_eq!(estimate(&plan, &options(&out, None)).expect("an estimate").points_left, 0);
    let fresh = SweepOptions { fresh: true, ..options(&out, None) };
    assert_eq!(finish(&plan, fresh, 2), (tables, 18));
    assert_eq!(dir.names(), ["cut.parquet", "whole.parquet"]);
}

#[test]
fn a_sweep_that_is_stopped_keeps_what_is_finished() {
    let dir = Room::new("stop");
    let plan = plan();
    let out = dir.file("x.parquet");
    let runs = AtomicU64::new(0);
    let stop_after_five_runs = || match runs.fetch_add(1, Ordering::Relaxed) {
        0..4 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    };
    let sweep = Sweep::open(&plan, options(&out, None)).expect("a good place");
    let error = sweep.finish(1, &stop_after_five_runs).expect_err("a stop");
    assert!(matches!(error, SweepError::Stopped), "{error}");
    assert_eq!(runs.load(Ordering::Relaxed), 5, "nothing runs after the stop");
    assert_eq!(dir.names(), ["x.parquet.journal"]);
    assert_eq!(finish(&plan, options(&out, None), 1).1, 13);
}

#[test]
fn runs_that_were_done_elsewhere_make_the_same_tables() {
    let dir = Room::new("elsewhere");
    let plan = plan_of(&["path.lte.rtt=50ms..200ms/3"], 2).expect("a sound plan");
    let [here, there] = ["here", "there"].map(|name| dir.file(&format!("{name}.parquet")));
    let (tables, _) = finish(&plan, options(&here, None), 1);
    let mut sweep = Sweep::open(&plan, options(&there, None)).expect("a good place");
    for (point, seed) in [(2, 1), (0, 2), (2, 2), (0, 1), (1, 2)] {
        sweep.keep(plan.grid().run(point, seed)).expect("a run that is left");
    }
    assert_eq!(sweep.left(), [(1, 1)]);
    for (point, seed) in [(2, 1), (3, 1), (1, 3)] {
        let row = RunRow { point, seed, ..plan.grid().run(2, 1) };
        let error = sweep.keep(row).expect_err("not left").to_string();
        assert!(error.contains(&format!("seed {seed} of point {point}")), "{error}");
    }
    drop(sweep);
    // Supplied runs are in the journal, and missing ones are reported.
    let sweep = Sweep::open(&plan, options(&there, None)).expect("a good place");
    let early = sweep.close().expect_err("a run is left").to_string();
    assert!(early.contains("1 runs"), "{early}");
    let mut sweep = Sweep::open(&plan, options(&there, None)).expect("a good place");
    sweep.keep(plan.grid().run(1, 1)).expect("the last run");
    assert_eq!(sweep.close().expect("all runs"), tables);
    assert_eq!(fs::read(here).expect("a result"), fs::read(there).expect("a result"));
}

#[test]
fn the_work_of_another_sweep_is_never_resumed_nor_overwritten() {
    let dir = Room::new("other");
    let begun = dir.file("begun.parquet");
    let over = dir.file("over.parquet");
    let plan = plan_of(&["path.lte.rtt=50ms,100ms"], 1).expect("a sound plan");
    drop(Sweep::open(&plan, options(&begun, None)).expect("a journal"));
    finish(&plan, options(&over, None), 2);
    let other_values = plan_of(&["path.lte.rtt=50ms,101ms"], 1).expect("a sound plan");
    let axes = vec![Axis::parse("path.lte.rtt=50ms,100ms").expect("an axis")];
    let changed = Source { sets: vec!["transfer.receive_buffer=31kB".into()], ..source() };
    let one = Seeds::first(1).expect("a number of seeds");
    let changed = SweepPlan::new(changed, axes.clone(), one.clone()).expect("a sound plan");
    let root =
        SweepPlan::new(Source { seed: Some(8), ..source() }, axes, one).expect("a sound plan");
    for (other, reason) in [
        (&root, "its scenario has `seed = 7`, this one"),
        (&other_values, "it has --vary path.lte.rtt=50 ms,100 ms, this one"),
        (&changed, "its scenario has `receive_buffer = \"30 kB\"`, this one"),
    ] {
        let error = Sweep::open(other, options(&begun, None)).expect_err(reason).to_string();
        assert!(error.contains(reason) && error.contains("--fresh"), "{error}");
        let error = Sweep::open(other, options(&over, None)).expect_err(reason).to_string();
        assert!(error.contains("has the result of another sweep"), "{error}");
    }
    // A restarted sweep that replaces another can be resumed.
    let fresh = SweepOptions { fresh: true, ..options(&over, None) };
    let mut sweep = Sweep::open(&other_values, fresh).expect("a fresh start");
    sweep.keep(other_values.grid().run(0, 1)).expect("a run that is left");
    drop(sweep);
    let sweep = Sweep::open(&other_values, options(&over, None)).expect("its own journal");
    assert_eq!(sweep.left(), [(1, 1)]);
    let shard = options(&begun, Some("1/2"));
    let error = Sweep::open(&plan, shard).expect_err("a shard").to_string();
    assert!(error.contains("it is of all points, this is 1/2"), "{error}");
    let damaged = dir.file("damaged.parquet");
    let good = fs::read_to_string(journal_of(&begun)).expect("a journal");
    fs::write(journal_of(&damaged), good + "nonsense\n").expect("a writable room");
    let error = Sweep::open(&plan, options(&damaged, None)).expect_err("damage").to_string();
    assert!(error.contains("line 2") && error.contains("damaged"), "{error}");
    // A journal of another format or version is rejected.
    let old = fs::read_to_string(journal_of(&begun)).expect("a journal");
    fs::write(journal_of(&damaged), old.replace("journal/2", "journal/1")).expect("a room");
    let error = Sweep::open(&plan, options(&damaged, None)).expect_err("a format").to_string();
    assert!(error.contains("journal/1") && error.contains("--fresh"), "{error}");
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    let older = old.replace(&version, "\"version\":\"0.0.9\"");
    fs::write(journal_of(&damaged), older).expect("a room");
    let error = Sweep::open(&plan, options(&damaged, None)).expect_err("a version").to_string();
    assert!(error.contains("it is of version 0.0.9, this is"), "{error}");
    let (tables, _) = finish(&plan, SweepOptions::default(), 2);
    let means = dir.file("means.parquet");
    write(&means, &tables.means).expect("a writable room");
    let error = Sweep::open(&plan, options(&means, None)).expect_err("means").to_string();
    assert!(error.contains("not of `ropewalk.sweep-runs/1`"), "{error}");
}

#[test]
fn shards_that_do_not_make_one_sweep_are_refused() {
    let dir = Room::new("merge");
    let plan = plan_of(&["path.lte.rtt=50ms..200ms/9"], 1).expect("a sound plan");
    let other = plan_of(&["path.lte.rtt=50ms,100ms"], 1).expect("a sound plan");
    let names = ["a", "b", "c", "other", "text"].map(|name| dir.file(&format!("{name}.parquet")));
    let [a, b, c, of_other, text] = &names;
    for (out, shard) in [(a, "1/3"), (b, "2/3"), (c, "3/3")] {
        finish(&plan, options(out, Some(shard)), 2);
    }
    finish(&other, options(of_other, Some("1/2")), 2);
    // Seed 2 of only a third of the points.
    let more = dir.file("more.parquet");
    let second = "2..2".parse().expect("a seed");
    let second = plan_with(&["path.lte.rtt=50ms..200ms/9"], second).expect("a sound plan");
    finish(&second, options(&more, Some("1/3")), 2);
    fs::write(text, "no table").expect("a writable room");
    assert_eq!(merge(&[c, a, b].map(PathBuf::clone)).expect("all").means.num_rows(), 9);
    let absent = dir.file("absent.parquet");
    for (files, reason) in [
        (vec![], "nothing to merge"),
        (vec![a, b], "3 of 9 points are missing: 2, 5, 8"),
        (vec![a], "6 of 9 points are missing: 1, 2, 4, 5, 7, ..."),
        (vec![a, b, c, b], "both have point 1 with seed 1"),
        (vec![a, b, c, &more], "6 of 18 runs are missing: point 1 with seed 2, point 2 with"),
        (vec![a, of_other], "different sweeps"),
        (vec![a, text], "is no result of a sweep"),
        (vec![a, &absent], "is its shard done?"),
    ] {
        let files: Vec<PathBuf> = files.into_iter().cloned().collect();
        let error = merge(&files).expect_err(reason).to_string();
        assert!(error.contains(reason) && error.contains("help:"), "{error}");
    }
}

#[test]
fn a_plan_that_cannot_run_is_refused_before_anything_does() {
    for (vary, seeds, reasons) in [
        (&[][..], 1, &["nothing varies", "--vary"][..]),
        (&["path.lte.rt=1ms"], 1, &["did you mean `rtt`?", "--vary path.lte.rt=1 ms"]),
        (&["path.lte.rtt=1ms,5kB"], 1, &["5 kB", "--vary"]),
        (&["transfer.scheduler=daps,dasp"], 1, &["dasp", "did you mean `daps`?"]),
        (&["path.lte.rtt=1ms,2ms", "path.lte.rtt=3ms"], 1, &["the key is given twice"]),
        (&["path.lte.rtt=1ms,2ms", "path[1].delay=3ms,4ms"], 1, &["this point equals another"]),
        (
            &["path.lte.rtt=1ms..9s/1000", "path.wifi.rtt=1ms..9s/1000"],
            1,
            &["1000000 points", "up to 100000"],
        ),
    ] {
        let error = plan_of(vary, seeds).expect_err("a refusal").to_string();
        for reason in reasons {
            assert!(error.contains(reason), "{vary:?}: {error}");
        }
    }
    for (out, reason) in [("x.csv", ".parquet"), ("x", ".parquet"), ("no/where.parquet", "`no`")] {
        let error = check_out("--out", Path::new(out)).expect_err(out).to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_run_that_fails_is_told_in_its_row() {
    let plan = plan_of(&["path.wifi.loss=0.0,1.0"], 2).expect("a sound plan");
    let mut source = source();
    source.sets = vec!["path.lte.loss=1.0".into(), "transfer.duration=20 s".into()];
    let seeds = plan.grid().seeds().clone();
    let plan = SweepPlan::new(source, plan.grid().axes().to_vec(), seeds).expect("a sound plan");
    let (tables, _) = finish(&plan, SweepOptions::default(), 2);
    let document: Json = serde_json::from_str(&to_json(&tables.runs)).expect("one JSON document");
    assert_eq!(document["schema"], RUNS_SCHEMA);
    let runs = document["runs"].as_array().expect("a list of runs");
    assert_eq!(
        runs.iter().map(|run| run["error"].is_null()).collect::<Vec<_>>(),
        [true, true, false, false]
    );
    assert!(runs[2]["goodput_bps"].is_null() && runs[2]["seed"] == 7);
    let document: Json = serde_json::from_str(&to_json(&tables.means)).expect("one JSON document");
    assert_eq!(document["schema"], MEANS_SCHEMA);
    assert_eq!(document["seeds"][0], "7");
    let [good, bad] = [0, 1].map(|point| &document["points"][point]);
    assert_eq!((&good["runs"], &good["failed"]), (&2.into(), &0.into()));
    assert!(good["goodput_bps"].as_f64().expect("a mean") > 1e5 && good["error"].is_null());
    assert_eq!((&bad["runs"], &bad["failed"]), (&0.into(), &2.into()));
    assert!(bad["goodput_bps"].is_null());
    assert!(bad["error"].as_str().expect("a reason").contains("stopped"));
}

#[test]
fn the_columns_of_varied_keys_have_their_type() {
    for (vary, name, kind) in [
        ("path.lte.rtt=1ms,2ms", "path.lte.rtt_s", "Float64"),
        ("path.lte.rate=1 Mbit/s,2 Mbit/s", "path.lte.rate_bps", "Float64"),
        ("transfer.receive_buffer=45kB,1MB", "transfer.receive_buffer_bytes", "UInt64"),
        ("path.lte.queue=10 packets,20 packets", "path.lte.queue_packets", "UInt64"),
        ("path.lte.queue=0.5 BDP,2 BDP", "path.lte.queue_bdp", "Float64"),
        ("path.lte.queue=2 BDP,20 packets", "path.lte.queue", "Utf8"),
        ("world.associations=1,2", "world.associations", "UInt64"),
        ("path.lte.loss=0,0.01", "path.lte.loss", "Float64"),
        ("transfer.unordered=true,false", "transfer.unordered", "Boolean"),
        ("transfer.scheduler='daps',backup", "transfer.scheduler", "Utf8"),
    ] {
        let plan = plan_of(&[vary], 1).unwrap_or_else(|error| panic!("{vary}: {error}"));
        let rows =
            [0, 1].map(|point| RunRow::new(point, 1, Err("not run".into()), plan.grid().columns()));
        let table = runs_table(&plan, None, &rows).expect("a table");
        assert_eq!(means(&table).expect("means").schema().field(1), table.schema().field(1));
        let schema = table.schema();
        let field = schema.field(1);
        assert_eq!((field.name().as_str(), field.data_type().to_string()), (name, kind.into()));
    }
}
