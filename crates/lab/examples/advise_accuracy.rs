//! Measures how good the advice is: compares it with exhaustive simulation on drawn bundles.
//!
//! ```text
//! cargo run --release -p ropewalk-lab --example advise_accuracy -- test 2,3 10 20 > accuracy.jsonl
//! ```
//!
//! The words are the set, the numbers of paths, and the first and the last number, excluded.
//!
//! For each bundle, every combination of links, scheduler, congestion control and three receive buffers runs once.
//! The ten best, one for each combination of links, scheduler and congestion control, and the advice then run with
//! five further seeds. One JSON document per bundle goes to stdout.
//!
//! `reach` in place of `2,3` checks `tune --reach` instead.

use std::ops::Range;

use cpu_time::ProcessTime;
use ropewalk_lab::advise::{AdviseOptions, Goal, advise, exhaustive};
use ropewalk_lab::draw::{Draw, DrawSet, Family};
use ropewalk_lab::tune::{CheckOptions, simulate_reach, tune};
use serde_json::json;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [set, paths, from, to] = &words[..] else {
        eprintln!("usage: advise_accuracy test|training PATHS,PATHS|reach FROM TO");
        std::process::exit(2);
    };
    let set = if set == "test" { DrawSet::Test } else { DrawSet::Training };
    let numbers = from.parse::<u64>().expect("a number")..to.parse::<u64>().expect("a number");
    if paths == "reach" {
        return check_reach(set, numbers);
    }
    let paths: Vec<usize> =
        paths.split(',').map(|text| text.parse().expect("a number of paths")).collect();
    let draws = numbers.flat_map(|number| paths.iter().map(move |paths| (number, *paths)));
    for (number, paths) in draws {
        let draw = Draw { family: Family::Extreme, set, paths, number };
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
fn check_reach(set: DrawSet, numbers: Range<u64>) {
    for number in numbers {
        let draw = Draw { family: Family::Extreme, set, paths: 2 + (number % 2) as usize, number };
        let scenario = draw.scenario();
        let options = CheckOptions { seeds: 3, threads: 1, custom_schedulers: Default::default() };
        let Ok(all) = tune(&scenario, Some(1.0)) else { continue };
        let most =
            simulate_reach(&scenario, &all, 0.0, &options, &|_| ()).expect("a share is requested");
        let most = most.trials.iter().map(|trial| trial.share.mean).fold(0.0, f64::max);
        let before = ProcessTime::now();
        let tuning = tune(&scenario, Some(0.9 * most)).expect("the same links");
        let found = simulate_reach(&scenario, &tuning, 0.0, &options, &|_| ()).expect("a share");
        let document = json!({
            "draw": draw.to_string(), "target": 0.9 * most, "cpu_s": before.elapsed().as_secs_f64(),
            "found": found,
        });
        println!("{document}");
    }
}
