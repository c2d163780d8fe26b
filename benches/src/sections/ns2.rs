//! Round robin in the packet engine compared with ns-2, row by row of `papers/peers/ns2`.
//!
//! The rows and tolerances are those of `ropewalk reproduce ns2`. Only unlimited queues count here:
//! where queues of 50 packets overflow, the two recover from loss by different rules.

use ropewalk_lab::reproduce::{Options, Row as Compared, find, reproduce};

use crate::progress::progress;
use crate::row::{Findings, Row};

/// Tables in which goodput is compared. Others compare blocking times.
const GOODPUT: [&str; 2] = ["sarwar", "kuhn"];

pub fn measure() -> Result<Findings, String> {
    let shown = |done: usize, all: usize, _: &str| progress("ns2", done, all);
    let options = Options { progress: &shown, ..Options::default() };
    let done = reproduce(&find("ns2"), &options)?;
    if let Some(failure) = done.failures.first() {
        return Err(failure.clone());
    }
    let of = |items: &[&str], quantity: &str| -> Vec<Compared> {
        let wanted = |row: &&Compared| {
            items.contains(&row.item.as_str())
                && row.quantity == quantity
                && !row.case.contains("queue")
        };
        done.rows.iter().filter(wanted).cloned().collect()
    };
    let steady = of(&GOODPUT, "goodput_wire_bps");
    let whole = of(&GOODPUT, "goodput_wire_bps.whole_run");
    let mean_waits = of(&["blocking"], "blocking_time_s.mean");
    let waits = of(&["blocking"], "blocking_time_s.max");
    let mut findings = Findings::default();
    for (what, rows, tolerance) in [
        ("goodput in steady state", steady, "10 %"),
        ("goodput over the whole run", whole, "10 %"),
        ("mean wait in the receive buffer", mean_waits, "15 %"),
        ("longest wait in the receive buffer", waits, "15 %"),
    ] {
        findings.rows.extend(judged(what, &rows, tolerance));
        findings.notes.extend(off(what, &rows));
    }
    Ok(findings)
}

fn judged(what: &str, rows: &[Compared], tolerance: &str) -> [Row; 2] {
    let good = rows.iter().filter(|row| row.verdict.is_good()).count();
    let count = Row::told(
        format!("{what} within {tolerance} of ns-2"),
        good as f64,
        format!("{good} of {}", rows.len()),
    );
    let largest = rows
        .iter()
        .filter_map(|row| row.difference)
        .fold(0.0, |most: f64, next| if next.abs() > most.abs() { next } else { most });
    let text = format!("{:+.2} %", largest * 100.0);
    [
        count.with_target(format!("{0} of {0}", rows.len()), good == rows.len()),
        Row::told(format!("{what}, largest deviation"), largest, text),
    ]
}

/// The rows outside their tolerance, with their numbers.
fn off(what: &str, rows: &[Compared]) -> Vec<String> {
    let off = rows.iter().filter(|row| !row.verdict.is_good());
    let line = |row: &Compared| {
        let deviation = row.difference.unwrap_or(f64::NAN) * 100.0;
        format!("{what} is off by {deviation:+.1} % in {}, {}", row.item, row.case)
    };
    off.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ropewalk_lab::reproduce::Verdict;

    fn compared(case: &str, difference: f64, verdict: Verdict) -> Compared {
        Compared {
            paper: "ns2".to_owned(),
            item: "kuhn".to_owned(),
            case: case.to_owned(),
            quantity: "goodput_wire_bps".to_owned(),
            unit: "bit/s".to_owned(),
            difference: Some(difference),
            verdict,
            ..Compared::default()
        }
    }

    #[test]
    fn the_largest_deviation_keeps_its_sign_and_rows_that_are_off_are_named() {
        let rows =
            [compared("small", 0.05, Verdict::Agrees), compared("large", -0.125, Verdict::Differs)];
        let [count, largest] = judged("goodput", &rows, "10 %");
        assert_eq!((count.measured.as_str(), count.met), ("1 of 2", Some(false)));
        assert_eq!((largest.measured.as_str(), largest.value), ("-12.50 %", Some(-0.125)));
        assert_eq!(off("goodput", &rows), ["goodput is off by -12.5 % in kuhn, large"]);
    }
}
