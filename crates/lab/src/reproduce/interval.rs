//! Simultaneous confidence intervals for several points, and verdicts from them.
//!
//! A claim about the largest or the worst of many points selects its point with the same runs that judge it.
//! Simultaneous intervals (Bonferroni) account for the selection.

use super::decide::{Accepted, Spread};
use super::expected::{Pick, Relation};
use super::row::Verdict;
use crate::compare::{mean_and_deviation, student_quantile};

/// Probability that an interval does not cover its value.
const MISSES: f64 = 0.05;

/// A mean of independent values, with an interval that is one of `points` simultaneous 95 % intervals.
///
/// # Errors
/// A message if there are fewer than two values.
pub fn of_values(values: &[f64], points: usize) -> Result<Spread, String> {
    let count = values.len();
    if count < 2 {
        return Err("an interval takes two seeds or more".to_owned());
    }
    let (mean, deviation) = mean_and_deviation(values);
    let quantile = student_quantile(1.0 - MISSES / (2.0 * points.max(1) as f64), count - 1);
    let half = quantile * deviation / (count as f64).sqrt();
    Ok(Spread { mean, least: mean - half, most: mean + half })
}

/// The absolute value of a mean, with its interval.
fn widest(Spread { mean, least, most }: Spread) -> Spread {
    let nearest = if least <= 0.0 && most >= 0.0 { 0.0 } else { least.abs().min(most.abs()) };
    Spread { mean: mean.abs(), least: nearest, most: least.abs().max(most.abs()) }
}

/// The point that a statement selects, and the interval of the selected quantity, whichever point really
/// has it. [`Pick::Mean`] selects none.
///
/// # Errors
/// A message if there is no point.
pub fn picked(pick: Pick, points: &[(String, Spread)]) -> Result<(String, Spread, Spread), String> {
    let seen = |spread: Spread| match pick {
        Pick::Widest => widest(spread),
        Pick::Least => spread.map(|value| -value),
        Pick::Best | Pick::Mean => spread,
    };
    let decides = points.iter().max_by(|a, b| seen(a.1).mean.total_cmp(&seen(b.1).mean));
    let (place, own) = decides.ok_or("no curve or loss of this name")?;
    let furthest = |end: fn(Spread) -> f64| {
        points.iter().map(|point| end(seen(point.1))).fold(f64::NEG_INFINITY, f64::max)
    };
    let whole =
        Spread { mean: seen(*own).mean, least: furthest(|s| s.least), most: furthest(|s| s.most) };
    let whole = if pick == Pick::Least { whole.map(|value| -value) } else { whole };
    Ok((place.clone(), *own, whole))
}

/// Verdict from an interval: inside the accepted range, outside, or partly in it.
///
/// # Errors
/// A message if the relation is not an inequality.
pub fn verdict(
    relation: Relation,
    found: Spread,
    limit: f64,
    allowed: f64,
) -> Result<Verdict, String> {
    use Relation::{Greater, Less, Near, NotGreater, NotLess};
    let inequality = matches!(relation, Greater | Less | Near | NotGreater | NotLess);
    let accepted = Accepted::of(relation, allowed).filter(|_| inequality).ok_or("no inequality")?;
    Ok(accepted.decide(found.map(|value| value - limit)).of_claim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(low: f64, high: f64) -> Spread {
        Spread { mean: f64::midpoint(low, high), least: low, most: high }
    }

    #[test]
    fn an_interval_is_inside_outside_or_across() {
        use Relation::{Greater, Less, Near, NotGreater, NotLess};
        use Verdict::{ClaimFails, ClaimHolds, Undecided};
        for (relation, low, high, expected) in [
            (Greater, 1.1, 1.2, ClaimHolds),
            (Greater, 0.9, 1.2, Undecided),
            (Greater, 0.8, 0.9, ClaimFails),
            (Less, 0.8, 0.9, ClaimHolds),
            (Less, 1.1, 1.2, ClaimFails),
            (NotLess, 0.95, 1.2, ClaimHolds),
            (NotLess, 0.8, 1.2, Undecided),
            (NotGreater, 1.05, 1.09, ClaimHolds),
            (NotGreater, 1.2, 1.3, ClaimFails),
            (Near, 0.95, 1.05, ClaimHolds),
            (Near, 1.05, 1.15, Undecided),
            (Near, 1.15, 1.2, ClaimFails),
            (Near, 0.5, 2.0, Undecided),
        ] {
            let found = verdict(relation, spread(low, high), 1.0, 0.1);
            assert_eq!(found, Ok(expected), "{relation:?} {low} {high}");
        }
        assert!(verdict(Relation::Gain, spread(0.0, 1.0), 1.0, 0.1).is_err());
    }

    #[test]
    fn the_picked_point_decides_with_the_ends_of_all_points() {
        let points = [
            ("a".to_owned(), spread(0.04, 0.06)),
            ("b".to_owned(), spread(-0.10, -0.06)),
            ("c".to_owned(), spread(-0.08, 0.09)),
        ];
        for (pick, place, low, high) in [
            (Pick::Best, "a", 0.04, 0.09),
            (Pick::Least, "b", -0.10, -0.06),
            (Pick::Widest, "b", 0.06, 0.10),
        ] {
            let (found, _, whole) = picked(pick, &points).unwrap();
            assert_eq!((found.as_str(), whole.least, whole.most), (place, low, high), "{pick:?}");
        }
        assert!(picked(Pick::Best, &[]).is_err());
    }

    #[test]
    fn more_points_widen_each_interval() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        let (one, many) = (of_values(&values, 1).unwrap(), of_values(&values, 20).unwrap());
        assert!((one.most - 3.0 - 2.7764 * 2.5_f64.sqrt() / 5.0_f64.sqrt()).abs() < 1e-3);
        assert!(many.least < one.least && many.most > one.most);
        assert!(of_values(&[1.0], 1).is_err());
    }
}
