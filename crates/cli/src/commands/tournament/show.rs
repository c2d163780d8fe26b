//! A tournament as text: a table for each match, then the rankings.

use ropewalk_lab::RunResult;
use ropewalk_lab::compare::Estimate;
use ropewalk_lab::result::{Column, Figure, Unit, ranked};
use ropewalk_lab::tournament::{Match, MatchEntry, Ranking, Tournament, Worst};

use crate::commands::compare::{figure_legend, with_gain};
use crate::console::{width, wrapped};
use crate::printer::{percent, quantity};
use crate::table::Table;

/// The whole tournament. The ranking comes last, where a terminal keeps it visible.
pub fn text(play: &Tournament) -> String {
    let mut parts: Vec<String> = play.matches.iter().map(|one| one_match(one, play)).collect();
    parts.extend(play.rankings.iter().map(ranking));
    parts.push(legend());
    parts.join("\n")
}

/// The rankings alone; `--json` has the hundreds of matches.
pub fn rankings(play: &Tournament) -> String {
    let mut parts: Vec<String> = play.rankings.iter().map(ranking).collect();
    parts.push(legend());
    parts.join("\n")
}

fn one_match(one: &Match, play: &Tournament) -> String {
    let seeds = if play.seeds == 1 {
        "1 seed".to_owned()
    } else {
        format!("means of {} seeds", play.seeds)
    };
    let heading = format!("{}: {}, preset {}, {seeds}\n\n", one.scenario, one.protocol, one.preset);
    let headings = shown().into_iter().map(|figure| figure.heading());
    let headings: Vec<String> = std::iter::once("scheduler".to_owned())
        .chain(with_gain(&shown(), headings, "of best path".to_owned()))
        .chain(["score".to_owned()])
        .collect();
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    // Stable: equal ones stay in the order given.
    let mut entries: Vec<&MatchEntry> = one.entries.iter().collect();
    entries.sort_by(|a, b| b.score().total_cmp(&a.score()));
    for entry in entries {
        table.row(row(entry));
    }
    heading + &table.text(width())
}

/// The figures that a match shows.
fn shown() -> Vec<Figure<RunResult>> {
    let mut figures = ranked();
    figures.retain(|figure| figure.show.tournament == Column::Shown);
    figures
}

fn row(entry: &MatchEntry) -> Vec<String> {
    let cell = |mean: Option<Estimate>, unit: Unit| {
        mean.map_or_else(|| "-".to_owned(), |estimate| quantity(estimate.mean, unit))
    };
    let cells = shown().into_iter().enumerate().map(|(number, figure)| {
        if number == 0 && !entry.failures.is_empty() {
            return format!("{} failed", entry.failures.len());
        }
        cell(*entry.figures.get(&figure.column()), figure.show.unit)
    });
    let cells = with_gain(&shown(), cells, cell(entry.gain, Unit::Ratio));
    std::iter::once(entry.scheduler.clone()).chain(cells).chain([percent(entry.score())]).collect()
}

fn ranking(ranking: &Ranking) -> String {
    let mut of =
        ranking.protocol.as_ref().map_or_else(String::new, |name| format!(" under {name}"));
    if let Some(paths) = ranking.paths {
        of += &format!(" over {paths} paths");
    }
    let plural = if ranking.matches == 1 { "" } else { "es" };
    let heading = format!("Ranking over {} match{plural}{of}\n\n", ranking.matches);
    let mut table = Table::new(&[
        "scheduler",
        "score",
        "goodput",
        "delay",
        "near best goodput",
        "near best delay",
        "near both",
        "wins",
        "worst goodput",
        "worst delay",
    ]);
    let worst = |worst: &Worst| {
        let protocol =
            if ranking.protocol.is_some() { String::new() } else { format!(" {}", worst.protocol) };
        format!("{} {}{protocol}", percent(worst.ratio), worst.scenario)
    };
    for rank in &ranking.ranks {
        table.row(vec![
            rank.scheduler.clone(),
            percent(rank.score),
            percent(rank.goodput),
            percent(rank.delay),
            rank.near_goodput.to_string(),
            rank.near_delay.to_string(),
            rank.near_both.to_string(),
            rank.wins.to_string(),
            worst(&rank.worst_goodput),
            worst(&rank.worst_delay),
        ]);
    }
    heading + &table.text(width()) + "\n" + &certainty(ranking, &worst)
}

/// The confidence of a ranking, and how often the throughput of the best single path is kept.
fn certainty(ranking: &Ranking, worst: &dyn Fn(&Worst) -> String) -> String {
    let mut table = Table::new(&[
        "scheduler",
        "score, 95 %",
        "place, 95 %",
        "first",
        "keeps best path",
        "of best path",
        "worst of best path",
    ]);
    for rank in &ranking.ranks {
        let spread = rank.spread.as_ref();
        let cell = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        table.row(vec![
            rank.scheduler.clone(),
            cell(spread.map(|s| format!("{} to {}", percent(s.score[0]), percent(s.score[1])))),
            cell(spread.map(|s| format!("{} to {}", s.place[0], s.place[1]))),
            cell(spread.map(|s| percent(s.first))),
            cell(rank.kept.map(|kept| format!("{kept} of {}", ranking.matches))),
            cell(rank.gain.map(percent)),
            cell(rank.worst_gain.as_ref().map(worst)),
        ]);
    }
    table.text(width())
}

/// What the headings mean.
fn legend() -> String {
    let figures = figure_legend(&shown());
    let others = [
        ("of best path", "goodput over that of the best path alone, with the same protocol"),
        ("score", "goodput over the best goodput, times the best p99 delay over its own"),
        ("ranking", "geometric means over the matches; a match with a failed run counts 0"),
        ("near best", "matches within 5 % of the best"),
        ("near both", "goodput is, and delay is within 5 % of the best of all whose goodput is"),
        (
            "95 %",
            "interval, were the scenarios drawn again (bootstrap); first: share of these draws",
        ),
        ("keeps", "matches with at least 98 % of the goodput of the best path alone"),
    ];
    let others = others.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let lines = figures.into_iter().chain(others);
    let width = width();
    lines.map(|(name, text)| wrapped(&format!("{name:<15}"), &text, width)).collect()
}
