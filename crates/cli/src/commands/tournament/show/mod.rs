//! A tournament as text: a table for each match, then the rankings, then the comparison with single paths.

mod aggregation;

use ropewalk_lab::RunResult;
use ropewalk_lab::compare::Estimate;
use ropewalk_lab::result::{Column, Figure, Unit, ranked};
use ropewalk_lab::tournament::{Match, MatchEntry, Ranking, Tournament, Worst};

use crate::commands::compare::{figure_legend, with_gain};
use crate::console::{width, wrapped};
use crate::format::Captioned;
use crate::printer::percent;
use crate::table::{Cell, Table};

/// All tables and a legend. Rankings follow the matches, so that they remain visible on a terminal.
pub fn text(play: &Tournament, with_matches: bool) -> String {
    let tables = tables(play, with_matches);
    let parts = tables.iter().map(Captioned::text).chain([legend()]);
    parts.collect::<Vec<_>>().join("\n")
}

/// All tables with their captions. With `with_matches`, begins with one table per match.
pub fn tables(play: &Tournament, with_matches: bool) -> Vec<Captioned> {
    let matches = play.matches.iter().filter(|_| with_matches).map(|one| one_match(one, play));
    let rankings = play.rankings.iter().flat_map(ranking);
    matches.chain(rankings).chain(aggregation::tables(play)).collect()
}

/// Every scheduler of every match in its own row. After an empty line, the comparison with single
/// paths follows.
pub fn csv(play: &Tournament) -> String {
    format!("{}\n{}", flat(play).csv(), aggregation::csv(play))
}

fn flat(play: &Tournament) -> Table {
    let mut table = Table::empty();
    for name in ["scenario", "setting", "protocol", "preset", "scheduler"] {
        table.name(name, name);
    }
    add_columns(&mut table);
    let returns = ["return_share", "return_utilisation"];
    table.column("of sum", "of_sum");
    table.columns(&returns.map(|column| (column, column)));
    for one in &play.matches {
        for entry in &one.entries {
            let Match { scenario, setting, protocol, preset, .. } = one;
            let names = [scenario, setting, protocol, preset, &entry.scheduler];
            let mut row: Vec<Cell> = names.map(|name| Cell::from(name.clone())).to_vec();
            row.extend(cells(entry));
            row.push(Cell::known(entry.of_sum, Unit::Ratio));
            row.extend(returns.map(|column| {
                let mean = *entry.figures.get(column);
                Cell::known(mean.map(|one| one.mean), Unit::Ratio)
            }));
            table.row(row);
        }
    }
    table
}

fn one_match(one: &Match, play: &Tournament) -> Captioned {
    let seeds = if play.seeds == 1 {
        "1 seed".to_owned()
    } else {
        format!("means of {} seeds", play.seeds)
    };
    let order = if one.setting.ends_with("-unordered") { ", unordered" } else { "" };
    let Match { scenario, protocol, preset, .. } = one;
    let caption = format!("{scenario}: {protocol}, preset {preset}{order}, {seeds}");
    let mut table = Table::new(&["scheduler"]);
    add_columns(&mut table);
    // The sort is stable: equal ones keep their order.
    let mut entries: Vec<&MatchEntry> = one.entries.iter().collect();
    entries.sort_by(|a, b| b.score().total_cmp(&a.score()));
    for entry in entries {
        table.row(std::iter::once(entry.scheduler.clone().into()).chain(cells(entry)).collect());
    }
    Captioned::new(caption, table)
}

/// The columns of a match after the names.
fn add_columns(table: &mut Table) {
    let figures = shown();
    let own = figures.iter().map(|figure| (figure.heading(), figure.column()));
    let gain = ("of best path".to_owned(), "gain".to_owned());
    for (heading, key) in with_gain(&figures, own, gain) {
        table.column(&heading, &key);
    }
    table.column("score", "score");
}

/// The figures of a match.
fn shown() -> Vec<Figure<RunResult>> {
    let mut figures = ranked();
    figures.retain(|figure| figure.show.tournament == Column::Shown);
    figures
}

fn cells(entry: &MatchEntry) -> Vec<Cell> {
    let cell = |mean: Option<Estimate>, unit: Unit| Cell::known(mean.map(|one| one.mean), unit);
    let own = shown().into_iter().enumerate().map(|(number, figure)| {
        if number == 0 && !entry.failures.is_empty() {
            return Cell::Text(format!("{} failed", entry.failures.len()));
        }
        cell(*entry.figures.get(&figure.column()), figure.show.unit)
    });
    let mut cells = with_gain(&shown(), own, cell(entry.gain, Unit::Ratio));
    cells.push(Cell::of(entry.score(), Unit::Ratio));
    cells
}

/// The ranking, and how certain it is.
fn ranking(ranking: &Ranking) -> [Captioned; 2] {
    let mut of = ranking.setting.as_ref().map_or_else(String::new, |name| format!(" under {name}"));
    if let Some(paths) = ranking.paths {
        of += &format!(" over {paths} paths");
    }
    let plural = if ranking.matches == 1 { "" } else { "es" };
    let caption = format!("Ranking over {} match{plural}{of}", ranking.matches);
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
        let setting =
            if ranking.setting.is_some() { String::new() } else { format!(" {}", worst.setting) };
        format!("{} {}{setting}", percent(worst.ratio), worst.scenario)
    };
    for rank in &ranking.ranks {
        table.row(vec![
            Cell::from(rank.scheduler.clone()),
            Cell::of(rank.score, Unit::Ratio),
            Cell::of(rank.goodput, Unit::Ratio),
            Cell::of(rank.delay, Unit::Ratio),
            Cell::from(rank.near_goodput.to_string()),
            Cell::from(rank.near_delay.to_string()),
            Cell::from(rank.near_both.to_string()),
            Cell::from(rank.wins.to_string()),
            Cell::from(worst(&rank.worst_goodput)),
            Cell::from(worst(&rank.worst_delay)),
        ]);
    }
    [Captioned::new(caption, table), Captioned::new("", certainty(ranking))]
}

/// The confidence of a ranking.
fn certainty(ranking: &Ranking) -> Table {
    let mut table = Table::new(&["scheduler", "score, 95 %", "place, 95 %", "first"]);
    for rank in &ranking.ranks {
        let spread = rank.spread.as_ref();
        let cell = |text: Option<String>| text.map_or(Cell::Unknown, Cell::from);
        table.row(vec![
            Cell::from(rank.scheduler.clone()),
            cell(spread.map(|s| format!("{} to {}", percent(s.score[0]), percent(s.score[1])))),
            cell(spread.map(|s| format!("{} to {}", s.place[0], s.place[1]))),
            Cell::known(spread.map(|s| s.first), Unit::Ratio),
        ]);
    }
    table
}

/// Explanation of the headings.
fn legend() -> String {
    let figures = figure_legend(&shown());
    let others = [
        (
            "of best path",
            "goodput over that of the best path alone, under the same setting; means over the seeds",
        ),
        ("of sum", "goodput over the sum of what each path carries alone"),
        ("score", "goodput over the best goodput, times the best p99 delay over its own"),
        ("ranking", "geometric means over the matches; a match with a failed run counts 0"),
        ("near best", "matches within 5 % of the best"),
        ("near both", "goodput is, and delay is within 5 % of the best of all whose goodput is"),
        (
            "95 %",
            "interval from drawing the scenarios again (bootstrap); first: share of these draws",
        ),
        (
            "keeps",
            "matches with at least 98 % of the goodput of the best path alone, with Wilson's 95 % interval",
        ),
        (
            "ample",
            "matches whose buffer is at least twice the sum of the paths' bandwidth-delay products",
        ),
        ("return traffic", "bytes on the return links over user data acknowledged"),
        ("return used", "share of its rate that the busiest return path carries"),
    ];
    let others = others.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let lines = figures.into_iter().chain(others);
    let width = width();
    lines.map(|(name, text)| wrapped(&format!("{name:<15}"), &text, width)).collect()
}
