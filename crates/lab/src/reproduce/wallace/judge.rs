//! Judges the claims of this paper. Each covers many points, and its row shows the deciding one.
//!
//! A verdict on simulations follows from the interval: inside the accepted range the claim holds, outside it
//! fails, and otherwise it is undecided.

use super::super::csv::Table;
use super::super::data;
use super::super::decide::Spread;
use super::super::expected::{Entry, Expected, Kind, Pick, Relation};
use super::super::interval::{of_values, picked, verdict};
use super::super::judge::{Pair, empty_row, fraction, holds};
use super::super::plan::Runs;
use super::super::row::{Row, Seeds, Verdict};
use super::super::text;
use super::sweep::{Model, Sweep};
use super::{PAPER, gain, heuristic, printed, sweep};

/// Judges one statement.
///
/// # Errors
/// A message if the statement is incomplete, or if a run failed.
pub fn judge(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Vec<Row>, String> {
    match entry.kind {
        Kind::Table => return peer(expected, entry, runs),
        Kind::Value => return value(expected, entry).map(|row| vec![row]),
        Kind::Claim => {}
    }
    let row = match entry.quantity.as_str() {
        "markov_bps" => model(expected, entry, runs, Model::Markov),
        "renewal_bps" => model(expected, entry, runs, Model::Renewal),
        "renewal_excess" | "renewal_excess_bps" | "goodput_wire_bps" => {
            largest(expected, entry, runs)
        }
        "renewal_excess_chain" | "renewal_excess_chain_bps" => between_models(expected, entry),
        "goodput_gain" => gained(expected, entry, runs),
        "throughput_lost" => lost(expected, entry),
        "throughput_bps" => not_rising(expected, entry),
        other => Err(format!("`{other}` is no quantity of this paper")),
    };
    row.map(|row| vec![row])
}

fn value(expected: &Expected, entry: &Entry) -> Result<Row, String> {
    let paper_value = entry.paper_value.ok_or("a value without its number")?;
    let ours = printed::number(&entry.quantity)?;
    let allowed = entry.tolerance.map_or(0.0, |t| t.around(paper_value));
    Ok(Row {
        model_value: Some(ours.into()),
        difference: fraction(ours, paper_value),
        verdict: Verdict::of_value((ours - paper_value).abs() <= allowed),
        ..empty_row(expected, entry)
    })
}

fn within(entry: &Entry, loss: f64) -> bool {
    entry.loss_range.is_none_or(|[least, most]| (least..=most).contains(&loss))
}

fn sweep_of(entry: &Entry) -> Result<Sweep, String> {
    sweep::sweep(&entry.group).ok_or_else(|| "the item is no sweep".to_owned())
}

fn drawn(count: u64) -> Option<Seeds> {
    u32::try_from(count).ok().map(Seeds::Drawn)
}

/// Compares a model with simulations: its largest difference.
fn model(expected: &Expected, entry: &Entry, runs: &Runs, model: Model) -> Result<Row, String> {
    let sweep = sweep_of(entry)?;
    let chosen: Vec<_> = sweep.points().filter(|(_, point)| within(entry, point.loss)).collect();
    let mut points = Vec::new();
    for (x, point) in &chosen {
        let says = point.model_bps(model)?;
        let is = of_values(&point.simulated_bps(runs)?, chosen.len())?;
        points.push((x.to_string(), is.map(|bps| says / bps - 1.0), says));
    }
    let spreads: Vec<(String, Spread)> =
        points.iter().map(|(place, off, _)| (place.clone(), *off)).collect();
    let (place, off, all) = picked(Pick::Widest, &spreads)?;
    let says = points.iter().find(|point| point.0 == place).map_or(0.0, |point| point.2);
    let allowed = entry.tolerance.map_or(0.0, |t| t.around(1.0));
    let bound = format!("off by {} or less (most at {place})", text::quantity(allowed, "ratio"));
    let is = says / (1.0 + off.mean);
    Ok(Row {
        paper_value: Some(bound.into()),
        model_value: Some(says.into()),
        simulated_value: Some(is.into()),
        reference_value: Some(is),
        difference: Some(off.mean),
        interval: Some(off.ends()),
        seeds: drawn(sweep::SEEDS),
        verdict: verdict(Relation::Near, all, 0.0, allowed)?,
        ..empty_row(expected, entry)
    })
}

/// The largest value over a sweep, with its sign: the excess of the renewal model over simulations, as a
/// fraction or in bit/s, or the simulated throughput.
fn largest(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Row, String> {
    let sweep = sweep_of(entry)?;
    let count = sweep.points().count();
    let mut points = Vec::new();
    for (x, point) in sweep.points() {
        let says = point.model_bps(Model::Renewal)?;
        let is = of_values(&point.simulated_bps(runs)?, count)?;
        let found = match entry.quantity.as_str() {
            "renewal_excess" => is.map(|bps| says / bps - 1.0),
            "renewal_excess_bps" => is.map(|bps| says - bps),
            _ => is,
        };
        points.push((format!("largest, at {x}"), found));
    }
    let (place, own, all) = picked(Pick::Best, &points)?;
    bounded(expected, entry, (&place, own, all), sweep::SEEDS)
}

/// The largest excess of the renewal model over the chain, as a fraction or in bit/s.
fn between_models(expected: &Expected, entry: &Entry) -> Result<Row, String> {
    let limit = entry.paper_value.ok_or("a claim without its number")?;
    let mut largest: Option<(f64, f64)> = None;
    for (x, point) in sweep_of(entry)?.points() {
        let (renewal, chain) = (point.model_bps(Model::Renewal)?, point.model_bps(Model::Markov)?);
        let share = entry.quantity == "renewal_excess_chain";
        let excess = if share { renewal / chain - 1.0 } else { renewal - chain };
        if largest.is_none_or(|(_, before)| excess > before) {
            largest = Some((x, excess));
        }
    }
    let (x, excess) = largest.ok_or("a sweep without points")?;
    let pair = Pair { subject: excess, reference: limit };
    let bound = text::quantity(limit, &entry.unit);
    Ok(Row {
        paper_value: Some(format!("≈ {bound} (largest, at {x})").into()),
        model_value: Some(excess.into()),
        verdict: Verdict::of_claim(holds(entry, Relation::Near, pair)),
        ..empty_row(expected, entry)
    })
}

/// The gain of static limits: at the point that the statement selects, or the mean over its points.
fn gained(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Row, String> {
    let curves = gain::curves(&entry.group).into_iter();
    let chosen = |label: &str| entry.curves.is_empty() || entry.curves.iter().any(|c| c == label);
    let mut points: Vec<(String, Vec<f64>)> = Vec::new();
    for curve in curves.filter(|curve| chosen(curve.label)) {
        for loss in gain::LOSSES.into_iter().filter(|loss| within(entry, *loss)) {
            points.push((format!("{}, p_1 = {loss}", curve.label), curve.gains(loss, runs)?));
        }
    }
    let pick = entry.pick.ok_or("many points and no pick")?;
    if pick == Pick::Mean {
        let gains: Vec<&Vec<f64>> = points.iter().map(|(_, gains)| gains).collect();
        let mean = of_values(&means(&gains), 1)?;
        let place = format!("mean of {}", points.len());
        return bounded(expected, entry, (&place, mean, mean), gain::SEEDS);
    }
    let spread =
        |(place, gains): &(String, Vec<f64>)| Ok((place.clone(), of_values(gains, points.len())?));
    let spreads = points.iter().map(spread).collect::<Result<Vec<_>, String>>()?;
    let (place, own, all) = picked(pick, &spreads)?;
    bounded(expected, entry, (&place, own, all), gain::SEEDS)
}

/// The mean over the points for each seed.
fn means(points: &[&Vec<f64>]) -> Vec<f64> {
    let seeds = points.iter().map(|values| values.len()).min().unwrap_or(0);
    let mean = |seed: usize| points.iter().map(|values| values[seed]).sum::<f64>();
    (0..seeds).map(|seed| mean(seed) / points.len() as f64).collect()
}

/// A row about one number: `own` at the deciding place, `all` for the verdict.
fn bounded(
    expected: &Expected,
    entry: &Entry,
    (place, own, all): (&str, Spread, Spread),
    seeds: u64,
) -> Result<Row, String> {
    let relation = entry.relation.ok_or("a claim without its relation")?;
    let limit = entry.paper_value.ok_or("a claim without its number")?;
    let allowed = entry.tolerance.map_or(0.0, |t| t.around(limit));
    let sign = match relation {
        Relation::Greater => ">",
        Relation::Less => "<",
        Relation::NotLess => "≥",
        Relation::NotGreater => "≤",
        _ => "≈",
    };
    let bound = format!("{sign} {} ({place})", text::quantity(limit, &entry.unit));
    Ok(Row {
        paper_value: Some(bound.into()),
        simulated_value: Some(own.mean.into()),
        reference_value: Some(limit),
        interval: Some(own.ends()),
        seeds: drawn(seeds),
        verdict: verdict(relation, all, limit, allowed)?,
        ..empty_row(expected, entry)
    })
}

/// The loss of throughput by the coarsest step at the lowest rate.
fn lost(expected: &Expected, entry: &Entry) -> Result<Row, String> {
    let printed = entry.paper_value.ok_or("a loss without its number")?;
    let bps = |step| {
        Ok::<f64, String>(heuristic::search_results(heuristic::RATES_MBPS[0], step)?.throughput_bps)
    };
    let [finest, .., coarsest] = heuristic::STEPS;
    let loss = fraction(bps(coarsest)?, bps(finest)?).ok_or("nothing is promised")?;
    let pair = Pair { subject: loss, reference: printed };
    Ok(Row {
        paper_value: Some(format!("≈ {}", text::quantity(printed, "ratio")).into()),
        model_value: Some(loss.into()),
        verdict: Verdict::of_claim(holds(entry, Relation::Near, pair)),
        ..empty_row(expected, entry)
    })
}

/// Judges that no larger step finds a higher throughput, at any rate. The row shows the pair closest to a
/// violation.
fn not_rising(expected: &Expected, entry: &Entry) -> Result<Row, String> {
    let mut worst: Option<(String, Pair, f64)> = None;
    for rate in heuristic::RATES_MBPS {
        let bps =
            |step: u32| Ok::<f64, String>(heuristic::search_results(rate, step)?.throughput_bps);
        for steps in heuristic::STEPS.windows(2) {
            let pair = Pair { subject: bps(steps[1])?, reference: bps(steps[0])? };
            let rise = fraction(pair.subject, pair.reference).ok_or("nothing is promised")?;
            if worst.as_ref().is_none_or(|(_, _, before)| rise > *before) {
                worst = Some((format!("k = {}, b_1 = {rate} Mbit/s", steps[1]), pair, rise));
            }
        }
    }
    let (place, pair, rise) = worst.ok_or("no step to compare")?;
    let bound = text::quantity(pair.reference, &empty_row(expected, entry).unit);
    Ok(Row {
        paper_value: Some(format!("≤ {bound} ({place})").into()),
        model_value: Some(pair.subject.into()),
        reference_value: Some(pair.reference),
        difference: Some(rise),
        verdict: Verdict::of_claim(holds(entry, Relation::NotRising, pair)),
        ..empty_row(expected, entry)
    })
}

/// Loss rates and the peer's throughput, bit/s.
///
/// # Errors
/// A message if the table is malformed.
pub fn peer_points() -> Result<Vec<(f64, f64)>, String> {
    let file = data::folder(PAPER).and_then(|folder| folder.file("ns2.csv"));
    let table = Table::parse(file.ok_or("there is no file ns2.csv")?)?;
    table.lines().map(|l| Ok((l.number("loss")?, l.number("goodput_mbps")? * 1e6))).collect()
}

/// Compares our simulations with the peer's, point by point.
fn peer(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Vec<Row>, String> {
    let sweep = sweep_of(entry)?;
    let mut rows = Vec::new();
    for (loss, theirs) in peer_points()? {
        let point = sweep.points().find(|(known, _)| *known == loss);
        let (_, point) = point.ok_or_else(|| format!("there is no point at {loss}"))?;
        let ours = of_values(&point.simulated_bps(runs)?, 1)?;
        let off = ours.map(|bps| bps / theirs - 1.0);
        let allowed = entry.tolerance.map_or(0.0, |t| t.around(1.0));
        let decided = match verdict(Relation::Near, off, 0.0, allowed)? {
            Verdict::ClaimHolds => Verdict::Agrees,
            Verdict::ClaimFails => Verdict::Differs,
            other => other,
        };
        rows.push(Row {
            case: format!("{} = {loss}", entry.case),
            model_value: Some(point.model_bps(Model::Markov)?.into()),
            simulated_value: Some(ours.mean.into()),
            peer_value: Some(theirs.into()),
            reference_value: Some(theirs),
            difference: Some(off.mean),
            interval: Some(off.ends()),
            seeds: drawn(sweep::SEEDS),
            verdict: decided,
            ..empty_row(expected, entry)
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_over_points_is_taken_seed_by_seed() {
        let (a, b) = (vec![1.0, 2.0], vec![3.0, 6.0]);
        assert_eq!(means(&[&a, &b]), [2.0, 4.0]);
        assert!(means(&[]).is_empty());
    }

    #[test]
    fn the_peer_has_the_losses_of_figure_5() {
        let losses: Vec<f64> = peer_points().unwrap().into_iter().map(|(loss, _)| loss).collect();
        for item in ["figure-5", "ns2"] {
            let sweep = sweep::sweep(item).unwrap();
            let ours: Vec<f64> = sweep.points().map(|(_, point)| point.loss).collect();
            assert_eq!(losses, ours, "{item}");
        }
    }
}
