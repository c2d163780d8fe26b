//! Measures how good the advice is: compares it with exhaustive simulation on drawn bundles.
//!
//! ```text
//! cargo run --release -p ropewalk-lab --example advise_accuracy -- test 2,3 10 > accuracy.jsonl
//! ```
//!
//! For each bundle, every combination of links, scheduler, congestion control and three receive buffers runs once.
//! The ten best, one for each combination of links, scheduler and congestion control, and the advice then run with
//! five further seeds. One JSON document per bundle goes to stdout.
//!
//! `reach` in place of `2,3` checks `tune --reach` instead.

use cpu_time::ProcessTime;
use ropewalk_lab::advise::{AdviseOptions, Goal, advise, exhaustive};
use ropewalk_lab::draw::{Draw, DrawSet};
use ropewalk_lab::tune::{CheckOptions, simulate_reach, tune};
use serde_json::json;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [set, paths, count] = &words[..] else {
        eprintln!("usage: advise_accuracy test|training PATHS,PATHS|reach COUNT");
        std::process::exit(2);
    };
    let set = if set == "test" { DrawSet::Test } else { DrawSet::Training };
    let count: u64 = count.parse().expect("a number of bundles");
    if paths == "reach" {
        return check_reach(set, count);
    }
    let paths: Vec<usize> =
        paths.split(',').map(|text| text.parse().expect("a number of paths")).collect();
    for draw in Draw::first(set, &paths, count) {
        let scenario = draw.scenario();
        let options = AdviseOptions { goal: Goal::Throughput, seeds: 5, threads: 1 };
        let before = ProcessTime::now();
        let found = advise(&scenario, &options, &|_| ()).expect("advice");
        let advise_s = before.elapsed().as_secs_f64();
        let before = ProcessTime::now();
        let check = exhaustive(&scenario, &options, &found);
        let document = json!({
            "draw": draw.to_string(), "advise_cpu_s": advise_s, "exhaustive_cpu_s": before.elapsed().as_secs_f64(),
            "advice": found, "check": check,
        });
        println!("{document}");
    }
}

/// 90 % of what the largest buffer reaches must be reached by the answer, and missed by 5 % less.
fn check_reach(set: DrawSet, count: u64) {
    let mut left = count;
    for draw in Draw::first(set, &[2, 3], 1000) {
        let scenario = draw.scenario();
        let options = CheckOptions { seeds: 3, threads: 1, custom_schedulers: Default::default() };
        let Ok(all) = tune(&scenario, Some(1.0)) else { continue };
        let most =
            simulate_reach(&scenario, &all, &options, &|_| ()).expect("a share is requested");
        let most = most.trials.iter().map(|trial| trial.share.mean).fold(0.0, f64::max);
        let before = ProcessTime::now();
        let tuning = tune(&scenario, Some(0.9 * most)).expect("the same links");
        let found = simulate_reach(&scenario, &tuning, &options, &|_| ()).expect("a share");
        let document = json!({
            "draw": draw.to_string(), "target": 0.9 * most, "cpu_s": before.elapsed().as_secs_f64(),
            "found": found,
        });
        println!("{document}");
        left -= 1;
        if left == 0 {
            return;
        }
    }
}
