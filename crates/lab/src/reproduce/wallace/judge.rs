//! The claims of this paper: each over many points, of which the row shows the one that decides.

use super::super::csv::Table;
use super::super::data;
use super::super::expected::{Entry, Expected, Kind, Pick, Relation};
use super::super::judge::{Pair, blank, fraction, holds};
use super::super::plan::Runs;
use super::super::row::{Row, Verdict};
use super::super::text;
use super::sweep::{Model, Point};
use super::{PAPER, gain, heuristic, sweep};
use crate::compare::Estimate;

/// Judges one statement.
///
/// # Errors
/// What the statement lacks, or why a run failed, in words.
pub fn judge(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Vec<Row>, String> {
    if entry.kind == Kind::Table {
        return peer(expected, entry, runs);
    }
    let row = match entry.quantity.as_str() {
        "markov_bps" => model(expected, entry, runs, Model::Markov),
        "renewal_bps" => model(expected, entry, runs, Model::Renewal),
        "goodput_gain" => gained(expected, entry, runs),
        "throughput_lost" => lost(expected, entry),
        "throughput_bps" | "combinations" => not_rising(expected, entry),
        other => Err(format!("`{other}` is no quantity of this paper")),
    };
    row.map(|row| vec![row])
}

fn within(entry: &Entry, loss: f64) -> bool {
    entry.loss_range.is_none_or(|[least, most]| (least..=most).contains(&loss))
}

/// A model against packets: the point that is furthest off.
fn model(expected: &Expected, entry: &Entry, runs: &Runs, model: Model) -> Result<Row, String> {
    let sweep = sweep::sweep(&entry.group).ok_or("the item is no sweep")?;
    let mut worst: Option<(f64, Pair, f64)> = None;
    for (x, point) in sweep.points().filter(|(_, point)| within(entry, point.loss)) {
        let (says, is) = (point.model_bps(model)?, point.simulated_bps(runs)?.mean);
        let pair = Pair { subject: says, reference: is };
        let off = fraction(says, is).ok_or("nothing was delivered")?;
        if worst.is_none_or(|(_, _, before)| off.abs() > before.abs()) {
            worst = Some((x, pair, off));
        }
    }
    let (x, pair, off) = worst.ok_or("no point in this range of losses")?;
    let allowed = entry.tolerance.map_or(0.0, |t| t.around(1.0));
    let bound = format!("off by {} or less (most at {x})", text::quantity(allowed, "ratio"));
    Ok(Row {
        paper_value: Some(bound.into()),
        model_value: Some(pair.subject.into()),
        simulated_value: Some(pair.reference.into()),
        reference_value: Some(pair.reference),
        difference: Some(off),
        verdict: Verdict::of_claim(holds(entry, Relation::Near, pair)),
        ..blank(expected, entry)
    })
}

/// Gain of static limits: the point that the statement picks, or the mean over its points.
fn gained(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Row, String> {
    let relation = entry.relation.ok_or("a claim without its relation")?;
    let limit = entry.paper_value.ok_or("a gain without its bound")?;
    let curves = gain::curves(&entry.group).into_iter();
    let chosen = |label: &str| entry.curves.is_empty() || entry.curves.iter().any(|c| c == label);
    let mut points: Vec<(String, Estimate)> = Vec::new();
    for curve in curves.filter(|curve| chosen(curve.label)) {
        for loss in gain::LOSSES.into_iter().filter(|loss| within(entry, *loss)) {
            points.push((format!("{}, p_1 = {loss}", curve.label), curve.gain(loss, runs)?));
        }
    }
    let (place, value) = picked(entry.pick.ok_or("many points and no pick")?, &points)?;
    let sign = match relation {
        Relation::Greater => ">",
        Relation::Less => "<",
        Relation::NotLess => "≥",
        _ => "≈",
    };
    let bound = format!("{sign} {} ({place})", text::quantity(limit, "ratio"));
    let pair = Pair { subject: value, reference: limit };
    Ok(Row {
        paper_value: Some(bound.into()),
        simulated_value: Some(value.into()),
        reference_value: Some(limit),
        difference: None,
        verdict: Verdict::of_claim(holds(entry, relation, pair)),
        ..blank(expected, entry)
    })
}

/// Where, with the half-width of its confidence interval, and how much.
fn picked(pick: Pick, points: &[(String, Estimate)]) -> Result<(String, f64), String> {
    let key = |point: &&(String, Estimate)| match pick {
        Pick::Least => -point.1.mean,
        Pick::Widest => point.1.mean.abs(),
        Pick::Best | Pick::Mean => point.1.mean,
    };
    if pick == Pick::Mean && !points.is_empty() {
        let sum: f64 = points.iter().map(|(_, gain)| gain.mean).sum();
        let count = points.len();
        return Ok((format!("mean of {count}"), sum / count as f64));
    }
    let decides = points.iter().max_by(|a, b| key(a).total_cmp(&key(b)));
    let (place, gain) = decides.ok_or("no curve or loss of this name")?;
    let width = gain.half_width.map_or(String::new(), |width| {
        format!(", ±{}", text::quantity((width * 1000.0).round() / 1000.0, "ratio"))
    });
    Ok((format!("{place}{width}"), gain.mean))
}

/// What the coarsest step loses at the smallest rate.
fn lost(expected: &Expected, entry: &Entry) -> Result<Row, String> {
    let printed = entry.paper_value.ok_or("a loss without its number")?;
    let bps =
        |step| Ok::<f64, String>(heuristic::found(heuristic::RATES_MBPS[0], step)?.throughput_bps);
    let [finest, .., coarsest] = heuristic::STEPS;
    let loss = fraction(bps(coarsest)?, bps(finest)?).ok_or("nothing is promised")?;
    let pair = Pair { subject: loss, reference: printed };
    Ok(Row {
        paper_value: Some(format!("≈ {}", text::quantity(printed, "ratio")).into()),
        model_value: Some(loss.into()),
        verdict: Verdict::of_claim(holds(entry, Relation::Near, pair)),
        ..blank(expected, entry)
    })
}

/// No larger step finds more, at any rate; the row shows the pair that comes nearest to it.
fn not_rising(expected: &Expected, entry: &Entry) -> Result<Row, String> {
    let mut worst: Option<(String, Pair, f64)> = None;
    for rate in heuristic::RATES_MBPS {
        let value = |step: u32| {
            let found = heuristic::found(rate, step)?;
            let throughput = entry.quantity == "throughput_bps";
            let value = if throughput { found.throughput_bps } else { found.combinations as f64 };
            Ok::<f64, String>(value)
        };
        for steps in heuristic::STEPS.windows(2) {
            let pair = Pair { subject: value(steps[1])?, reference: value(steps[0])? };
            let rise = fraction(pair.subject, pair.reference).ok_or("nothing is promised")?;
            if worst.as_ref().is_none_or(|(_, _, before)| rise > *before) {
                worst = Some((format!("k = {}, b_1 = {rate} Mbit/s", steps[1]), pair, rise));
            }
        }
    }
    let (place, pair, rise) = worst.ok_or("no step to compare")?;
    let bound = text::quantity(pair.reference, &blank(expected, entry).unit);
    Ok(Row {
        paper_value: Some(format!("≤ {bound} ({place})").into()),
        model_value: Some(pair.subject.into()),
        reference_value: Some(pair.reference),
        difference: Some(rise),
        verdict: Verdict::of_claim(holds(entry, Relation::NotRising, pair)),
        ..blank(expected, entry)
    })
}

/// Loss and what the peer delivers, bit/s.
///
/// # Errors
/// What is wrong with the table, in words.
pub fn peer_points() -> Result<Vec<(f64, f64)>, String> {
    let file = data::folder(PAPER).and_then(|folder| folder.file("ns2.csv"));
    let table = Table::parse(file.ok_or("there is no file ns2.csv")?)?;
    table.lines().map(|l| Ok((l.number("loss")?, l.number("goodput_mbps")? * 1e6))).collect()
}

/// Our packets against the peer's, point by point.
fn peer(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for (loss, theirs) in peer_points()? {
        let point = Point::at_loss(loss);
        let ours = point.simulated_bps(runs)?.mean;
        let allowed = entry.tolerance.map_or(0.0, |t| t.around(theirs));
        rows.push(Row {
            case: format!("{} = {loss}", entry.case),
            model_value: Some(point.model_bps(Model::Markov)?.into()),
            simulated_value: Some(ours.into()),
            peer_value: Some(theirs.into()),
            reference_value: Some(theirs),
            difference: fraction(ours, theirs),
            verdict: Verdict::of_value((ours - theirs).abs() <= allowed),
            ..blank(expected, entry)
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_point_that_decides_is_the_one_that_the_statement_picks() {
        let point = |name: &str, mean| (name.to_owned(), Estimate { mean, half_width: None });
        let points = [point("a", 0.05), point("b", -0.08), point("c", 0.0)];
        for (pick, place, value) in
            [(Pick::Best, "a", 0.05), (Pick::Least, "b", -0.08), (Pick::Widest, "b", -0.08)]
        {
            assert_eq!(picked(pick, &points), Ok((place.to_owned(), value)));
        }
        let (place, mean) = picked(Pick::Mean, &points).unwrap();
        assert!(place == "mean of 3" && (mean + 0.01).abs() < 1e-12);
        assert!(picked(Pick::Mean, &[]).is_err());
    }

    #[test]
    fn the_peer_has_the_losses_of_figure_5() {
        let losses: Vec<f64> = peer_points().unwrap().into_iter().map(|(loss, _)| loss).collect();
        let sweep = sweep::sweep("figure-5").unwrap();
        let ours: Vec<f64> = sweep.points().map(|(_, point)| point.loss).collect();
        assert_eq!(losses, ours);
    }
}
