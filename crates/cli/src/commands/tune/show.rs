//! The output of `tune`.

use ropewalk_lab::LossKind;
use ropewalk_lab::compare::Estimate;
use ropewalk_lab::result::Unit;
use ropewalk_lab::tune::{
    Check, Checked, Reach, RobustReach, SimulatedReach, Trial, TunedPath, Tuning,
};

use crate::console::{layout, width, wrapped};
use crate::format::Captioned;
use crate::printer::{count, percent, rate, size};
use crate::table::{Cell, Table};

/// The complete output.
pub fn text(title: &str, tuning: &Tuning, check: Option<&Check>) -> String {
    let heading = format!(
        "{title}: window limits for a receive buffer of {}, {} packets\n",
        size(tuning.receive_buffer_bytes as f64),
        count(tuning.buffer_packets.into())
    );
    let parts = [
        tuning.reach.as_ref().map(|reach| answer(title, tuning, reach)),
        Some(heading),
        Some(paths(&tuning.paths).text(layout())),
        Some(figures(tuning)),
        check.map(|check| checked(tuning, check)),
        Some(notes(tuning)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// All tables with their captions.
pub fn tables(tuning: &Tuning, check: Option<&Check>) -> Vec<Captioned> {
    let paths = Captioned::new("Limits", paths(&tuning.paths));
    let check = check.map(|check| Captioned::new("Simulated", managers(check)));
    [paths].into_iter().chain(check).collect()
}

/// The limit of each path.
pub fn paths(paths: &[TunedPath]) -> Table {
    let headings =
        ["path", "rate", "round trip", "loss", "limit packets", "of use", "predicted", "verdict"];
    let mut table = Table::new(&headings);
    for path in paths {
        table.row(vec![
            Cell::from(path.name.clone()),
            Cell::of(path.rate_bps, Unit::BitsPerSecond),
            Cell::of(path.round_trip_s, Unit::Seconds),
            Cell::from(loss(path)),
            Cell::count(path.limit_packets.into()),
            Cell::count(path.useful_packets.into()),
            Cell::of(path.predicted_bps, Unit::BitsPerSecond),
            Cell::from(if path.pays { "pays off" } else { "leave it out" }),
        ]);
    }
    table
}

/// Formats a loss rate: losses are small and differ by powers of ten.
fn loss(path: &TunedPath) -> String {
    match path.loss_kind {
        LossKind::None => "none".to_owned(),
        _ => format!("{:.3} %", path.loss * 100.0),
    }
}

fn figures(tuning: &Tuning) -> String {
    let over = |bps: f64| {
        if bps > 0.0 {
            format!("{:+.1} %", (tuning.predicted_bps / bps - 1.0) * 100.0)
        } else {
            "-".into()
        }
    };
    let unlimited = if tuning.predicted_bps > 0.999 * tuning.unlimited_bps {
        "if each path had the whole buffer: the limits are no larger, so there is little to divide"
    } else {
        "if each path had the whole buffer, which they have to share"
    };
    let equal = tuning.equal_split.predicted_bps;
    let mut lines = vec![
        (
            "with limits",
            rate(tuning.predicted_bps),
            format!("{} of the sum of the rates", percent(tuning.predicted_bps / tuning.rates_bps)),
        ),
        (
            "equal split",
            rate(equal),
            format!("each path the same part of the buffer; the limits give {}", over(equal)),
        ),
        ("unlimited", rate(tuning.unlimited_bps), unlimited.to_owned()),
    ];
    if tuning.paths.iter().any(|path| !path.pays) {
        let limits = tuning.paying.limits_packets.iter().zip(&tuning.paths);
        let kept = limits.filter(|(limit, _)| **limit > 0);
        let kept: Vec<String> = kept
            .map(|(limit, path)| format!("{} with {} packets", path.name, count((*limit).into())))
            .collect();
        let meaning = format!("only what pays off: {}", kept.join(", "));
        lines.push(("without the rest", rate(tuning.paying.predicted_bps), meaning));
    }
    lines_of(lines)
}

/// Lines of a name, a value and its meaning.
fn lines_of(lines: Vec<(&str, String, String)>) -> String {
    let line = |(name, value, meaning): (&str, String, String)| {
        wrapped(&format!("{name:<17}{value:>13}   "), &meaning, width())
    };
    lines.into_iter().map(line).collect()
}

/// The smallest buffer by simulation, followed by that of the models.
fn answer(title: &str, tuning: &Tuning, reach: &Reach) -> String {
    let heading = format!(
        "{title}: receive buffer for {} of the sum of the rates, with {} and the preset {}\n\n",
        percent(reach.share),
        tuning.scheduler,
        tuning.preset
    );
    let found = reach.simulated.as_ref();
    let robust = found.and_then(|found| found.robust.as_ref());
    let lines = robust
        .map(|robust| with_margin(reach.share, robust))
        .into_iter()
        .chain(found.map(|found| simulated(reach.share, found)))
        .chain([model(reach)]);
    heading + &lines_of(lines.collect())
}

/// The smallest buffer for links that differ slightly.
fn with_margin(asked: f64, found: &RobustReach) -> (&'static str, String, String) {
    let links = format!(
        "{} variations of the links: rates and round trips up to {} off, and up to {} of jitter",
        found.variations,
        percent(found.tolerance),
        format_args!("{} ms", found.jitter_s * 1e3)
    );
    let exact = found.trials.first().filter(|exact| exact.reached < found.variations);
    let cliff = exact.map_or_else(String::new, |exact| {
        format!(
            " {}, the least for exactly these links, misses it in {}, with {} at worst.",
            size(exact.receive_buffer_bytes as f64),
            found.variations - exact.reached,
            percent(exact.worst_share)
        )
    });
    match &found.least {
        Some(least) => {
            let meaning = format!(
                "transfer.receive_buffer = \"{} B\" reaches {} of the rates in all {links}.{cliff}",
                least.receive_buffer_bytes,
                percent(asked)
            );
            ("receive buffer", size(least.receive_buffer_bytes as f64), meaning)
        }
        None => {
            let meaning = format!(
                "no receive buffer tried reaches {} of the rates in all {links}.{cliff} A smaller --reach or --tolerance \
                 has an answer",
                percent(asked)
            );
            ("receive buffer", "-".to_owned(), meaning)
        }
    }
}

fn simulated(asked: f64, found: &SimulatedReach) -> (&'static str, String, String) {
    let runs = match found.seeds {
        1 => "one run has".to_owned(),
        n => format!("{n} runs have a mean of"),
    };
    let Some(least) = &found.least else {
        let most = found.trials.iter().max_by(|a, b| a.share.mean.total_cmp(&b.share.mean));
        let most = most.map_or_else(|| "-".to_owned(), share);
        let meaning = format!(
            "simulated: no receive buffer tried reaches {} of the rates; {runs} {most} at most",
            percent(asked)
        );
        return ("exact links", "-".to_owned(), meaning);
    };
    let less = found.less.as_ref();
    let less = less.map_or_else(String::new, |t| format!(", and {} with 5 % less", share(t)));
    let noisy = least.share.half_width.is_some_and(|half| half > 0.0);
    let range = found.interval_bytes.filter(|_| noisy).map_or_else(String::new, |(low, high)| {
        let low = size(low as f64);
        let range = high.map_or_else(
            || format!("Above {low}"),
            |high| format!("Between {low} and {}", size(high as f64)),
        );
        format!(" {range}, other seeds can give another answer.")
    });
    let meaning = format!(
        "simulated: the least that reaches {} of the rates on exactly these links: {runs} {}{less}. \
         Goodput {}.{range}",
        percent(asked),
        share(least),
        estimate(least.goodput_bps, rate),
    );
    ("exact links", size(least.receive_buffer_bytes as f64), meaning)
}

/// The share of the rates that a trial reached.
fn share(trial: &Trial) -> String {
    estimate(trial.share, percent)
}

fn model(reach: &Reach) -> (&'static str, String, String) {
    let asked = percent(reach.share);
    let trial = reach.simulated.as_ref().and_then(|found| found.model);
    let trial = trial.map_or_else(String::new, |t| format!("; simulated: {}", share(&t)));
    match &reach.least {
        Some(least) => {
            let limits: Vec<String> =
                least.limits_packets.iter().map(|limit| count((*limit).into())).collect();
            let meaning = format!(
                "the models' number, for comparison: {} with limits of {} packets{trial}",
                rate(least.predicted_bps),
                limits.join(" + ")
            );
            ("by the models", size(least.receive_buffer_bytes as f64), meaning)
        }
        None => {
            let meaning = format!(
                "the models: no receive buffer reaches {asked} of the rates; losses leave {} at most",
                percent(reach.most_share)
            );
            ("by the models", "-".to_owned(), meaning)
        }
    }
}

/// The goodput with each window manager.
fn managers(check: &Check) -> Table {
    let mut table = Table::new(&["simulated", "goodput", "gain over none", "of predicted"]);
    let last = check.managers.len() - 1;
    for (i, one) in check.managers.iter().enumerate() {
        let share = one.goodput_bps.filter(|_| i == last);
        table.row(vec![
            Cell::from(one.window_manager),
            one.goodput_bps
                .map_or("failed".into(), |found| Cell::mean(Some(found), Unit::BitsPerSecond)),
            Cell::from(gain(one, i)),
            Cell::known(share.map(|found| found.mean / check.predicted_goodput_bps), Unit::Ratio),
        ]);
    }
    table
}

fn checked(tuning: &Tuning, check: &Check) -> String {
    let table = managers(check);
    let runs = match check.seeds {
        1 => "one run of each".to_owned(),
        n => {
            let note = table.interval_note().map_or(String::new(), |note| format!("; ±: {note}"));
            format!("{n} runs of each{note}")
        }
    };
    let meaning = format!(
        "goodput counts no headers: of the {} predicted it can be {}; {runs}",
        rate(tuning.predicted_bps),
        rate(check.predicted_goodput_bps)
    );
    table.text(layout()) + &wrapped("", &meaning, width()) + &verdict(check)
}

/// Gives advice if the simulation shows with confidence that the limits do not help.
fn verdict(check: &Check) -> String {
    let last = check.managers.last().and_then(|last| last.gain);
    match last {
        Some(Estimate { mean, half_width: Some(half) }) if mean + half < 1.0 => wrapped(
            "",
            "In simulation the limits cost throughput: leave transfer.window_manager as it is.",
            width(),
        ),
        _ => String::new(),
    }
}

/// Relative gain over no window manager, run by run.
fn gain(one: &Checked, position: usize) -> String {
    match one.gain {
        None => "-".to_owned(),
        Some(_) if position == 0 => "-".to_owned(),
        Some(gain) => {
            let more = format!("{:+.1} %", (gain.mean - 1.0) * 100.0);
            let half = gain.half_width.filter(|half| *half > 0.0);
            half.map_or(more.clone(), |half| format!("{more} ± {}", percent(half)))
        }
    }
}

fn estimate(found: Estimate, show: fn(f64) -> String) -> String {
    // Nothing in the scenario is random, so all seeds give the same result.
    found
        .half_width
        .filter(|half| *half > 0.0)
        .map_or_else(|| show(found.mean), |half| format!("{} ± {}", show(found.mean), show(half)))
}

fn notes(tuning: &Tuning) -> String {
    let headers = "predictions are rates on the wire, headers included; `of use` is the largest window \
                   that fills the path, and no limit is above it";
    let notes = std::iter::once(headers.to_owned()).chain(tuning.notes.iter().cloned());
    notes.map(|note| wrapped("note: ", &note, width())).collect()
}
