use super::*;
use crate::custom_schedulers::CustomSchedulers;

fn variant(scheduler: &str, seed: u64) -> Variant {
    let text = format!(
        "[transfer]\nduration = '2 s'\nscheduler = '{scheduler}'\nseed = {seed}\n\
         [[path]]\nname = 'wifi'\nrate = '1 Mbit/s'\nrtt = '20 ms'\nloss = 0.01\n\
         [[path]]\nname = 'lte'\nrate = '2 Mbit/s'\nrtt = '200 ms'\n"
    );
    let scenario = Scenario::parse(&text, "test.toml").expect("a sound scenario");
    Variant { label: scheduler.to_owned(), scenario }
}

/// The document without the fields that report computing time.
fn document(runs: &[Compared]) -> String {
    let mut comparison = Comparison::new(runs);
    for run in &mut comparison.runs {
        let result = run.result.as_mut().expect("a good run");
        (result.engine.cpu_s, result.engine.packets_per_cpu_s) = (0.0, 0.0);
    }
    serde_json::to_string(&comparison).expect("plain JSON")
}

#[test]
fn the_number_of_threads_does_not_show() {
    let variants = [variant("daps", 1), variant("round-robin", 1), variant("min-rtt", 1)];
    let of = |threads| {
        let options = CompareOptions {
            seeds: 2,
            threads,
            series: false,
            sequence: None,
            single_paths: false,
            custom_schedulers: CustomSchedulers::default(),
        };
        let options = CompareOptions { single_paths: true, ..options };
        document(&compare(&variants, &options, &|_| ()))
    };
    assert_eq!(of(1), of(4));
}

#[test]
fn each_variant_runs_with_each_seed_and_keeps_the_series_of_the_first() {
    let options = CompareOptions {
        seeds: 3,
        threads: 2,
        series: true,
        sequence: None,
        single_paths: false,
        custom_schedulers: CustomSchedulers::default(),
    };
    let most = std::sync::Mutex::new(0.0_f64);
    let on_progress = |share: f64| {
        let mut most = most.lock().expect("no panic");
        *most = most.max(share);
    };
    let runs = compare(&[variant("daps", 7), variant("backup", 7)], &options, &on_progress);
    assert_eq!(most.into_inner().expect("no panic"), 1.0);
    let seeds: Vec<(&str, u64)> =
        runs.iter().map(|run| (run.label.as_str(), run.scenario.transfer.seed)).collect();
    let expected =
        [("daps", 7), ("daps", 8), ("daps", 9), ("backup", 7), ("backup", 8), ("backup", 9)];
    assert_eq!(seeds, expected);
    let kept: Vec<bool> =
        runs.iter().map(|run| run.outcome.as_ref().expect("a run").series.is_some()).collect();
    assert_eq!(kept, [true, false, false, true, false, false]);
    let comparison = Comparison::new(&runs);
    assert_eq!(comparison.summary.len(), 2);
    let goodput = comparison.summary[0].figures.get("goodput_bps").expect("good runs");
    assert_eq!(comparison.summary[0].runs, 3);
    assert!(goodput.mean > 1e6 && goodput.half_width.expect("three runs") > 0.0, "{goodput:?}");
}

#[test]
fn a_run_that_fails_is_told_and_does_not_spoil_the_others() {
    let mut dead = variant("daps", 1);
    for path in &mut dead.scenario.paths {
        path.up.loss = ropewalk_scenario::Loss::Bernoulli { rate: 1.0 };
    }
    let options = CompareOptions {
        seeds: 1,
        threads: 1,
        series: false,
        sequence: None,
        single_paths: false,
        custom_schedulers: CustomSchedulers::default(),
    };
    let comparison = Comparison::new(&compare(&[dead, variant("backup", 1)], &options, &|_| ()));
    assert!(comparison.runs[0].result.is_none() && comparison.runs[0].error.is_some());
    assert_eq!(
        (comparison.summary[0].runs, *comparison.summary[0].figures.get("goodput_bps")),
        (0, None)
    );
    assert!(comparison.runs[1].result.is_some());
}

#[test]
fn what_the_best_path_does_alone_stands_beside_every_run() {
    let options = CompareOptions {
        seeds: 2,
        threads: 2,
        series: false,
        sequence: None,
        single_paths: true,
        custom_schedulers: CustomSchedulers::default(),
    };
    let runs = compare(&[variant("daps", 1), variant("backup", 1)], &options, &|_| ());
    let best: Vec<_> = runs.iter().map(|run| run.best_path.clone().expect("two paths")).collect();
    assert!(best.iter().all(|best| best.name == "wifi" && best.goodput_bps > 9e5), "{best:?}");
    // A single-path run does not depend on the scheduler.
    assert_eq!((&best[0], &best[1]), (&best[2], &best[3]));
    let comparison = Comparison::new(&runs);
    let gain = comparison.summary[0].gain.expect("two paths").mean;
    let goodputs =
        runs[..2].iter().map(|run| run.outcome.as_ref().expect("a run").result.goodput_bps);
    let alone = best[..2].iter().map(|best| best.goodput_bps);
    assert!((gain - goodputs.sum::<f64>() / alone.sum::<f64>()).abs() < 1e-12, "{gain}");
    for (run, best) in runs.iter().zip(&best) {
        let single = &run.single_paths_bps;
        assert_eq!((single.len(), single[0]), (2, Some(best.goodput_bps)), "wifi is the first");
    }
}

#[test]
fn repeated_runs_have_a_mean_of_every_figure_and_of_every_path() {
    let options = CompareOptions {
        seeds: 3,
        threads: 1,
        series: false,
        sequence: None,
        single_paths: false,
        custom_schedulers: CustomSchedulers::default(),
    };
    let runs = compare(&[variant("daps", 1)], &options, &|_| ());
    let repeated = Repeated::new(&runs).expect("good runs");
    assert_eq!((repeated.succeeded, repeated.runs.len()), (3, 3));
    let goodputs: Vec<f64> = runs
        .iter()
        .map(|run| run.outcome.as_ref().expect("a good run").result.goodput_bps)
        .collect();
    assert_eq!(*repeated.figures.get("goodput_bps"), estimate(&goodputs));
    assert_eq!(*repeated.figures.get("completion_s"), None, "no number of bytes was set");
    let names: Vec<&str> = repeated.paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(names, ["wifi", "lte"]);
    let used = repeated.paths[1].figures.get("utilisation").expect("a mean");
    assert!(used.mean > 0.0 && used.half_width.is_some());
}

#[test]
fn series_keep_peaks_and_losses_and_leave_a_gap_where_a_path_has_failed() {
    let text = "[transfer]\nduration = '20 s'\nscheduler = 'round-robin'\n\
        [[path]]\nname = 'wifi'\nrate = '1 Mbit/s'\nrtt = '20 ms'\nloss = 0.01\n\
        outages = [{ from = '8 s', to = '16 s' }]\n\
        [[path]]\nname = 'lte'\nrate = '2 Mbit/s'\nrtt = '200 ms'\n";
    let scenario = Scenario::parse(text, "test.toml").expect("a sound scenario");
    let options = RunOptions { series: true, ..RunOptions::default() };
    let run = crate::run::run(&scenario, &options).expect("a good run");
    let series = run.series.expect("series were requested");
    let peaks = &series.receive_buffer_peak_bytes;
    assert_eq!(peaks.iter().max(), Some(&run.result.receive_buffer.max_bytes));
    assert!(peaks.iter().zip(&series.receive_buffer_bytes).all(|(peak, held)| peak >= held));
    let lost: u64 = series.paths[0].lost_packets.iter().sum();
    assert_eq!(lost, run.result.paths[0].lost_packets);
    assert!(lost > 0);
    let at = |seconds: f64| {
        let sample = series.time_s.iter().position(|time| *time >= seconds);
        series.paths[0].srtt_s[sample.expect("a sample")]
    };
    assert!(at(7.0).is_some(), "before the outage");
    assert_eq!(at(15.0), None, "the path has failed");
    let delays = run.delays.distributions().app_delay_s;
    assert!(delays.values.is_sorted() && delays.shares.is_sorted());
    assert_eq!(delays.values.last(), Some(&run.result.app_delay_s.max));
    let median = delays.shares.iter().position(|share| *share == 0.5).expect("a step");
    assert_eq!(delays.values[median], run.result.app_delay_s.p50);
}
