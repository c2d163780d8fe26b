//! Tables of the aggregation of paths, compared with each path alone.

use ropewalk_lab::result::Unit;
use ropewalk_lab::tournament::{Aggregation, Rank, Ranking, RatioMean, Tournament};

use crate::format::Captioned;
use crate::printer::percent;
use crate::table::{Cell, Table};

/// The bundle compared with its paths alone, and the traffic on the return paths: a row for each ranking and
/// scheduler. Empty if no match has several paths.
pub fn tables(play: &Tournament) -> Vec<Captioned> {
    let rows = rows(play);
    if rows.is_empty() {
        return Vec::new();
    }
    let headings = [
        "under",
        "scheduler",
        "buffers",
        "keeps best path",
        "95 %",
        "below 95 %",
        "worst of best path",
        "of best path",
        "of sum",
    ];
    let mut table = table_with_names(3, &headings);
    for Row { under, rank, buffers, aggregation } in &rows {
        let Aggregation { kept, below, worst, of_best, of_sum } = aggregation;
        let setting = if worst.setting == *under { "" } else { &format!(" {}", worst.setting) };
        let names = [under, &rank.scheduler, *buffers].map(|name| Cell::from(name.to_owned()));
        let mut cells = names.to_vec();
        cells.extend([
            Cell::from(format!("{} of {}", kept.count, kept.of)),
            Cell::from(range(kept.interval)),
            Cell::from(below.to_string()),
            Cell::from(format!("{} {}{setting}", percent(worst.ratio), worst.scenario)),
            Cell::from(with_interval(of_best)),
            of_sum.as_ref().map_or(Cell::Unknown, |mean| Cell::from(with_interval(mean))),
        ]);
        table.row(cells);
    }
    vec![Captioned::new("Compared with the paths alone", table), return_traffic(play)]
}

/// One row of the comparison.
struct Row<'a> {
    under: String,
    rank: &'a Rank,
    buffers: &'static str,
    aggregation: &'a Aggregation,
}

fn rows(play: &Tournament) -> Vec<Row<'_>> {
    let ranks = play.rankings.iter().flat_map(|one| one.ranks.iter().map(move |rank| (one, rank)));
    let rows = ranks.flat_map(|(ranking, rank)| {
        let buffers = [("all", &rank.aggregation), ("ample", &rank.aggregation_ample)];
        buffers.into_iter().filter_map(move |(buffers, aggregation)| {
            let aggregation = aggregation.as_ref()?;
            Some(Row { under: under(ranking), rank, buffers, aggregation })
        })
    });
    rows.collect()
}

/// Short description of the matches in a ranking.
fn under(ranking: &Ranking) -> String {
    match (&ranking.setting, ranking.paths) {
        (Some(setting), _) => setting.clone(),
        (None, Some(paths)) => format!("{paths} paths"),
        (None, None) => "all".to_owned(),
    }
}

fn return_traffic(play: &Tournament) -> Captioned {
    let headings = ["under", "scheduler", "return traffic", "highest", "return used", "highest"];
    let mut table = table_with_names(2, &headings);
    for ranking in &play.rankings {
        for rank in &ranking.ranks {
            let Some(traffic) = rank.return_traffic else { continue };
            let shares =
                [traffic.share, traffic.share_max, traffic.utilisation, traffic.utilisation_max];
            let names = [under(ranking), rank.scheduler.clone()].map(Cell::from);
            table.row(names.into_iter().chain(shares.map(|s| Cell::of(s, Unit::Ratio))).collect());
        }
    }
    Captioned::new("Return paths", table)
}

fn table_with_names(names: usize, headings: &[&str]) -> Table {
    let mut table = Table::empty();
    for (i, heading) in headings.iter().enumerate() {
        if i < names { table.name(heading, heading) } else { table.column(heading, "") }
    }
    table
}

/// The same for CSV, with every number in its own column.
pub fn csv(play: &Tournament) -> String {
    let mut table = Table::empty();
    for name in ["under", "scheduler", "buffers"] {
        table.name(name, name);
    }
    for column in [
        "matches",
        "kept",
        "kept_share",
        "kept_low",
        "kept_high",
        "below",
        "worst_gain",
        "of_best",
        "of_best_low",
        "of_best_high",
        "of_sum",
        "of_sum_low",
        "of_sum_high",
        "return_share",
        "return_share_max",
        "return_utilisation",
        "return_utilisation_max",
    ] {
        table.column(column, column);
    }
    for row in rows(play) {
        let Aggregation { kept, below, worst, of_best, of_sum } = row.aggregation;
        let traffic = row.rank.return_traffic;
        let names = [&row.under, &row.rank.scheduler, row.buffers].map(str::to_owned);
        let counts = [kept.of, kept.count].map(|count| Cell::count(count as u64));
        let kept = [kept.share, kept.interval[0], kept.interval[1]];
        let means = [Some(*of_best), *of_sum].into_iter().flat_map(|mean| {
            let ends = mean.and_then(|mean| mean.interval);
            [mean.map(|mean| mean.mean), ends.map(|[low, _]| low), ends.map(|[_, high]| high)]
        });
        let ratio = |value: Option<f64>| Cell::known(value, Unit::Ratio);
        let mut cells: Vec<Cell> = names.map(Cell::from).into_iter().chain(counts).collect();
        cells.extend(kept.map(|share| ratio(Some(share))));
        cells.push(Cell::count(*below as u64));
        cells.extend([Some(worst.ratio)].into_iter().chain(means).map(ratio));
        cells.extend([
            ratio(traffic.map(|t| t.share)),
            ratio(traffic.map(|t| t.share_max)),
            ratio(traffic.map(|t| t.utilisation)),
            ratio(traffic.map(|t| t.utilisation_max)),
        ]);
        table.row(cells);
    }
    table.csv()
}

fn range([low, high]: [f64; 2]) -> String {
    format!("{} to {}", percent(low), percent(high))
}

fn with_interval(mean: &RatioMean) -> String {
    let interval = mean.interval.map_or_else(String::new, |ends| format!(" ({})", range(ends)));
    percent(mean.mean) + &interval
}
