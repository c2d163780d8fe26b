//! The tables of `validate`.

use ropewalk_lab::result::Unit;
use ropewalk_lab::validate::{Cell, LIMITS, Summary};

use crate::format::Captioned;
use crate::printer::percent;
use crate::table::{Cell as Shown, Table};

/// The verdicts of all cells, and the paths of Multipath TCP.
pub fn tables(cells: &[Cell], summary: &str) -> Vec<Captioned> {
    let mut tables = vec![Captioned::new(summary.trim_end(), verdicts(cells, false))];
    if cells.iter().any(|cell| cell.paths.len() > 1) {
        tables.push(Captioned::new("Paths of Multipath TCP", paths(cells)));
    }
    tables
}

/// All cells, one row each, in one table for programs.
pub fn flat(cells: &[Cell]) -> Table {
    verdicts(cells, true)
}

/// All cells, one row each. With `with_all`, also ranges of single runs and the share of the kernel's busiest
/// path.
fn verdicts(cells: &[Cell], with_all: bool) -> Table {
    let with_range = with_all || cells.iter().any(|cell| cell.kernel.len() > 1);
    let mut table = Table::empty();
    table.name("scenario", "scenario");
    table.name("transport", "transport");
    let columns = [
        ("goodput, kernel", "kernel_goodput_bps", true),
        ("least", "kernel_least_bps", with_range),
        ("most", "kernel_most_bps", with_range),
        ("goodput, simulated", "simulated_goodput_bps", true),
        ("least", "simulated_least_bps", with_range),
        ("most", "simulated_most_bps", with_range),
        ("ratio", "goodput_ratio", true),
        ("RTT, kernel", "kernel_rtt_s", true),
        ("RTT, simulated", "simulated_rtt_s", true),
        ("ratio", "rtt_ratio", true),
        ("queueing, kernel", "kernel_queueing_s", true),
        ("queueing, simulated", "simulated_queueing_s", true),
        ("resent, kernel", "kernel_retransmitted", true),
        ("resent, simulated", "simulated_retransmitted", true),
        ("window, kernel", "kernel_window_bytes", true),
        ("window, simulated", "simulated_window_bytes", true),
        ("busiest path", "busiest_path", with_all),
        ("its share, kernel", "kernel_share", with_all),
        ("its share, simulated", "simulated_share", with_all),
        ("lateness", "lateness_s", with_all),
        ("off", "off", true),
    ];
    for (shown, key, _) in columns.iter().filter(|(.., is_shown)| *is_shown) {
        table.column(shown, key);
    }
    for cell in cells {
        let values =
            columns.iter().zip(values(cell, with_all)).filter(|((.., is_shown), _)| *is_shown);
        let names = [cell.scenario.as_str(), cell.transport].map(Shown::from);
        table.row(names.into_iter().chain(values.map(|(_, value)| value)).collect());
    }
    table
}

/// The values of the columns of [`verdicts`]. `for_programs`: in base units.
fn values(cell: &Cell, for_programs: bool) -> [Shown; 21] {
    use Unit::{BitsPerSecond, Bytes, Ratio, Seconds};
    let (goodput, rtt) = (&cell.verdict.goodput_bps, cell.verdict.rtt_s);
    let queueing = cell.verdict.queueing_s;
    let (resent, window) = (&cell.verdict.retransmitted, cell.receive_window_bytes);
    let range = cell.goodput_range_bps;
    // The limit below which retransmissions are ignored needs two decimals.
    let part = |part: f64| match for_programs {
        true => Shown::of(part, Ratio),
        false => Shown::from(format!("{:.2} %", part * 1e2)),
    };
    let share = |path: &&ropewalk_lab::validate::ComparedPath| path.share.kernel.unwrap_or(0.0);
    let busiest = cell.paths.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
    [
        Shown::of(goodput.kernel, BitsPerSecond),
        Shown::of(range.kernel[0], BitsPerSecond),
        Shown::of(range.kernel[1], BitsPerSecond),
        Shown::of(goodput.simulated, BitsPerSecond),
        Shown::of(range.simulated[0], BitsPerSecond),
        Shown::of(range.simulated[1], BitsPerSecond),
        Shown::known(goodput.ratio, Ratio),
        Shown::known(rtt.map(|rtt| rtt.kernel), Seconds),
        Shown::known(rtt.map(|rtt| rtt.simulated), Seconds),
        Shown::known(rtt.and_then(|rtt| rtt.ratio), Ratio),
        Shown::known(queueing.map(|delay| delay.kernel), Seconds),
        Shown::known(queueing.map(|delay| delay.simulated), Seconds),
        part(resent.kernel),
        part(resent.simulated),
        Shown::known(window.kernel, Bytes),
        Shown::known(window.simulated, Bytes),
        busiest.map_or(Shown::Unknown, |path| path.name.as_str().into()),
        Shown::known(busiest.and_then(|path| path.share.kernel), Ratio),
        Shown::known(busiest.and_then(|path| path.share.simulated), Ratio),
        Shown::of(cell.lateness_s, Seconds),
        Shown::from(off(cell).join(", ")),
    ]
}

/// Each path of the cells with several paths.
fn paths(cells: &[Cell]) -> Table {
    let mut table = Table::empty();
    table.name("scenario", "scenario");
    table.name("path", "path");
    table.columns(&[
        ("share, kernel", "kernel_share"),
        ("share, simulated", "simulated_share"),
        ("RTT, kernel", "kernel_rtt_s"),
        ("RTT, simulated", "simulated_rtt_s"),
    ]);
    for cell in cells.iter().filter(|cell| cell.paths.len() > 1) {
        for path in &cell.paths {
            table.row(vec![
                Shown::from(cell.scenario.as_str()),
                Shown::from(path.name.as_str()),
                Shown::known(path.share.kernel, Unit::Ratio),
                Shown::known(path.share.simulated, Unit::Ratio),
                Shown::known(path.rtt_s.kernel, Unit::Seconds),
                Shown::known(path.rtt_s.simulated, Unit::Seconds),
            ]);
        }
    }
    table
}

/// The figures of a cell that disagree.
fn off(cell: &Cell) -> Vec<&'static str> {
    let verdict = &cell.verdict;
    let rtt = verdict.rtt_s.is_none_or(|rtt| rtt.within);
    let all = [
        ("goodput", verdict.goodput_bps.within),
        ("RTT", rtt),
        ("queueing", verdict.queueing_s.is_none_or(|delay| delay.within)),
        ("resent", verdict.retransmitted.within),
    ];
    all.into_iter().filter(|(_, within)| !within).map(|(name, _)| name).collect()
}

/// Number of cells that agree.
pub fn summary(summary: Summary, kernel: &str) -> String {
    let part = |count: usize, of: usize| percent(count as f64 / of.max(1) as f64);
    let Summary { cells, goodput, rtt, rtt_cells, queueing, retransmitted } = summary;
    format!(
        "kernel {kernel}: goodput within {} in {goodput} of {cells} ({}), RTT within {} in {rtt} of {rtt_cells} ({}), \
         queueing delay within {} in {queueing} of {rtt_cells} ({}), retransmissions within a factor of {} in {retransmitted} of {cells} ({})\n",
        percent(LIMITS.goodput),
        part(goodput, cells),
        percent(LIMITS.rtt),
        part(rtt, rtt_cells),
        percent(LIMITS.queueing),
        part(queueing, rtt_cells),
        LIMITS.retransmitted,
        part(retransmitted, cells),
    )
}
