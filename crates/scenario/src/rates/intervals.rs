//! Samples as intervals of constant rate.

use super::{Interval, RateLogError};

/// A time without samples is left out if it is longer than this many usual intervals.
const GAP_INTERVALS: f64 = 10.0;
/// Highest rate of a scenario, bit/s.
const MOST_BPS: f64 = 1e12;
/// Longest log, s: the longest duration of a scenario.
const MOST_SECONDS: f64 = 1e6;

/// A rate at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) line: usize,
    pub(super) at_s: f64,
    pub(super) bps: f64,
}

/// Intervals from each sample to the next one, and the times that were left out: their number and sum, s.
///
/// Samples of the same time count as their mean. The last interval, and the one before a gap, have the usual length.
pub(super) fn of_samples(
    samples: &[Sample],
) -> Result<(Vec<Interval>, (usize, f64)), RateLogError> {
    for pair in samples.windows(2) {
        if pair[1].at_s < pair[0].at_s {
            let back = pair[0].at_s - pair[1].at_s;
            return Err(RateLogError::new(
                pair[1].line,
                format!("the time is {back} s before that of line {}", pair[0].line),
                "times must ascend; if the file has several runs, choose one with --where COLUMN=VALUE",
            ));
        }
    }
    let merged: Vec<(f64, f64)> = samples
        .chunk_by(|a, b| a.at_s == b.at_s)
        .map(|same| (same[0].at_s, same.iter().map(|one| one.bps).sum::<f64>() / same.len() as f64))
        .collect();
    let mut lengths: Vec<f64> = merged.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    let usual = median(&lengths).ok_or_else(|| {
        let line = samples.first().map_or(0, |sample| sample.line);
        RateLogError::new(
            line,
            "there are no two rows with different times and a rate",
            "a log of rates needs at least two",
        )
    })?;
    lengths.push(usual);
    let gaps = lengths.iter().filter(|length| **length > usual * GAP_INTERVALS);
    let gaps = gaps.fold((0, 0.0), |(count, sum), length| (count + 1, sum + length - usual));
    let seconds = |length: f64| if length > usual * GAP_INTERVALS { usual } else { length };
    let intervals = merged.iter().zip(lengths);
    let intervals =
        intervals.map(|(sample, length)| Interval { seconds: seconds(length), bps: sample.1 });
    Ok((intervals.collect(), gaps))
}

fn median(lengths: &[f64]) -> Option<f64> {
    let mut sorted = lengths.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// Refuses a rate that exceeds the limits of a scenario.
pub(super) fn checked_bps(line: usize, bps: f64) -> Result<f64, RateLogError> {
    if (0.0..=MOST_BPS).contains(&bps) {
        return Ok(bps);
    }
    let message = format!("a rate of {bps} bit/s; possible are 0 bit/s to 1000 Gbit/s");
    Err(RateLogError::new(line, message, "check the column and the unit: --column, --unit"))
}

/// Refuses logs that exceed the limits of a scenario.
pub(super) fn check(intervals: &[Interval]) -> Result<(), RateLogError> {
    let seconds: f64 = intervals.iter().map(|one| one.seconds).sum();
    if intervals.is_empty() {
        return Err(RateLogError::new(
            0,
            "there is no row with a rate",
            "a log of rates needs at least two",
        ));
    }
    if !(1e-3..=MOST_SECONDS).contains(&seconds) {
        return Err(RateLogError::new(
            0,
            format!("the log takes {seconds} s; possible are 1 ms to 1000000 s"),
            "check the column and the unit of the times",
        ));
    }
    if intervals.iter().all(|one| one.bps == 0.0) {
        return Err(RateLogError::new(0, "all rates are 0", "check the column: --column"));
    }
    Ok(())
}
