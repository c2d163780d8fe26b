//! `ropewalk reproduce`: compares what the papers print with the models and the simulator.

use std::path::{Path, PathBuf};

use clap::Args;
use ropewalk_lab::report::{Report, ReportKind};
use ropewalk_lab::reproduce::{
    self, ITEMS, Item, Options, Reproduction, Row, Verdict, find, reproduce, simulations, text,
};

use crate::args::command_line;
use crate::console::{Console, width, wrapped};
use crate::failure::Failure;
use crate::files::{VERSION, check_report, save_report};
use crate::output;
use crate::progress::{Progress, with_bar};
use crate::table::Table;

mod sensitivity;

/// Arguments of `reproduce`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ropewalk reproduce --list\n  \
    ropewalk reproduce kuhn2014/throughput sarwar2013/table2\n  \
    ropewalk reproduce kuhn --json\n  \
    ropewalk reproduce --all --report papers.html\n  \
    ropewalk reproduce kuhn2014 --sensitivity\n\n\
    A number that differs or a claim that fails is a result, not an error: the exit status stays 0\n\
    unless a run failed. With --strict it is 1 if one of them has no reason, too.")]
pub struct ReproduceArgs {
    /// Items to reproduce: paper/item, or a paper for all of its items; a prefix that fits only one item is
    /// enough. All items by default
    #[arg(value_name = "ITEM", conflicts_with = "all")]
    items: Vec<String>,
    /// Reproduce everything
    #[arg(long)]
    all: bool,
    /// List what can be reproduced, without running anything
    #[arg(long)]
    list: bool,
    /// Print one JSON document: a list of rows
    #[arg(long)]
    json: bool,
    /// Write a report with all figures, one file that opens in any browser
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Vary the settings that the paper leaves open, one at a time, and count the items that hold
    #[arg(long, conflicts_with_all = ["all", "list", "report", "strict"])]
    sensitivity: bool,
    /// Fail if a row is off and has no reason
    #[arg(long)]
    strict: bool,
}

/// Reproduces the chosen items and shows the results.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &ReproduceArgs, console: Console) -> Result<(), Failure> {
    let items = chosen(&args.items)?;
    if args.list {
        return list(&items, args.json);
    }
    if args.sensitivity {
        return sensitivity::execute(&items, args.json, console);
    }
    if let Some(path) = &args.report {
        check_report(path)?;
    }
    let done = run(&items, console)?;
    if let Some(path) = &args.report {
        write_report(path, &done, console)?;
    }
    if args.json {
        output::print_json(&done.rows)?;
    } else {
        output::print(&shown(&done))?;
    }
    verdict(&done, args.strict)
}

/// The items with these names, in the order of the list.
fn chosen(names: &[String]) -> Result<Vec<Item>, Failure> {
    let mut wanted = Vec::new();
    for name in names {
        let found = find(name);
        if found.is_empty() {
            return Err(Failure::input(not_found(name), hint(name)));
        }
        wanted.extend(found);
    }
    let is_wanted = |item: &&Item| names.is_empty() || wanted.contains(item);
    Ok(ITEMS.iter().filter(is_wanted).copied().collect())
}

/// Names of items that begin with `name`.
fn begins(name: &str) -> Vec<String> {
    let begins = |item: &&Item| {
        !name.is_empty() && (item.full_name().starts_with(name) || item.name.starts_with(name))
    };
    ITEMS.iter().filter(begins).map(Item::full_name).collect()
}

fn not_found(name: &str) -> String {
    if begins(name).len() > 1 {
        return format!("`{name}` fits more than one item");
    }
    format!("there is no item `{name}` to reproduce")
}

/// Suggests items that begin with `name` or share a word with it, else the option that lists all.
fn hint(name: &str) -> String {
    const ALL: &str = "`ropewalk reproduce --list` shows every item";
    let words: Vec<&str> = name.split(['/', '-', ' ']).filter(|word| word.len() > 2).collect();
    let alike = |item: &&Item| words.iter().any(|word| item.full_name().contains(word));
    let mut alike: Vec<String> = ITEMS.iter().filter(alike).map(Item::full_name).collect();
    let begins = begins(name);
    if begins.len() > 1 {
        alike = begins;
    }
    if alike.is_empty() {
        return ALL.to_owned();
    }
    format!("did you mean {}? {ALL}", alike.join(", "))
}

fn list(items: &[Item], json: bool) -> Result<(), Failure> {
    if json {
        let entry = |item: &Item| serde_json::json!({ "paper": item.paper, "item": item.name, "title": item.title });
        return output::print_json(&items.iter().map(entry).collect::<Vec<_>>());
    }
    let width = items.iter().map(|item| item.full_name().len()).max().unwrap_or(0);
    let line = |item: &Item| format!("{:width$}   {}\n", item.full_name(), item.title);
    output::print(&items.iter().map(line).collect::<String>())
}

fn run(items: &[Item], console: Console) -> Result<Reproduction, Failure> {
    // A failure here is a defect of the files embedded in the binary, not of the input.
    let total = simulations(items).map_err(Failure::Run)?;
    let progress = Progress::steps(total as u64);
    let step = |_: usize, _: usize, _: &str| progress.step();
    let options = Options { progress: &step, ..Options::default() };
    with_bar(console, "reproducing", &progress, || reproduce(items, &options)).map_err(Failure::Run)
}

fn write_report(path: &Path, done: &Reproduction, console: Console) -> Result<(), Failure> {
    let title = "Papers reproduced".to_owned();
    let mut report = Report::new(title, ReportKind::Reproduce, VERSION.to_owned(), command_line());
    let cannot = |error: &dyn core::fmt::Display| {
        Failure::Run(format!("--report {} cannot be written: {error}", path.display()))
    };
    let rows = done.rows.iter().map(serde_json::to_value).collect::<Result<_, _>>();
    report.rows = rows.map_err(|e| cannot(&e))?;
    let figures = done.figures.iter().map(serde_json::to_value).collect::<Result<_, _>>();
    report.figures = figures.map_err(|e| cannot(&e))?;
    save_report(path, &report, console)
}

/// Whether the command fails because of the results.
fn verdict(done: &Reproduction, strict: bool) -> Result<(), Failure> {
    if !done.failures.is_empty() {
        let failures = done.failures.join("\n  ");
        return Err(Failure::Run(format!("some runs failed:\n  {failures}")));
    }
    let unexplained: Vec<&Row> = done.unexplained().collect();
    if !strict || unexplained.is_empty() {
        return Ok(());
    }
    let name = |row: &&Row| format!("{}/{} {} {}", row.paper, row.item, row.case, row.quantity);
    let names: Vec<String> = unexplained.iter().map(name).collect();
    Err(Failure::Run(format!("off without a reason:\n  {}", names.join("\n  "))))
}

/// A section per paper, and a count of the verdicts.
fn shown(done: &Reproduction) -> String {
    let mut text = String::new();
    for (i, row) in done.rows.iter().enumerate() {
        let first = i == 0 || done.rows[i - 1].paper != row.paper;
        if first {
            let rows: Vec<&Row> = done.rows.iter().filter(|r| r.paper == row.paper).collect();
            text.push_str(&section(&row.paper, &rows));
        }
    }
    text.push_str(&summary(done));
    text
}

fn section(paper: &str, rows: &[&Row]) -> String {
    let mut text = format!("{paper}: {}\n", reproduce::title(paper));
    let readings = reproduce::readings(paper);
    if !readings.is_empty() {
        let sets: Vec<&str> = readings.iter().map(|reading| reading.set.as_str()).collect();
        text += &wrapped("Read as ", &sets.join(", "), width());
    }
    let mut reasons: Vec<&str> = Vec::new();
    // A setting that is the same in successive rows is printed once, above them.
    let mut groups: Vec<(&str, &str)> = Vec::new();
    for row in rows {
        let group = (row.item.as_str(), row.quantity.as_str());
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for (item, quantity) in groups {
        let rows = rows.iter().filter(|row| row.item == item && row.quantity == quantity);
        text += &format!("\n{item}: {quantity}\n");
        text += &table(&rows.copied().collect::<Vec<_>>(), &mut reasons);
    }
    text += &beside(rows);
    if !reasons.is_empty() {
        text.push('\n');
    }
    for (i, reason) in reasons.iter().enumerate() {
        text += &wrapped(&format!("[{}] ", i + 1), reason, width());
    }
    text + "\n"
}

/// The columns without and with the guard, a row for each scenario and quantity. Verdicts refer to the
/// schedulers as published.
fn beside(rows: &[&Row]) -> String {
    let headings =
        ["case", "baseline", "as published", "baseline, guard", "with guard", "guard adds"];
    let mut text = String::new();
    let mut quantities: Vec<&str> = rows.iter().map(|row| row.quantity.as_str()).collect();
    quantities.dedup();
    let mut seen = Vec::new();
    for quantity in quantities {
        if seen.contains(&quantity) {
            continue;
        }
        seen.push(quantity);
        let mut table = Table::new(&headings);
        let mut cases: Vec<&str> = Vec::new();
        for row in rows.iter().filter(|row| row.quantity == quantity) {
            let Some(known) = &row.beside else { continue };
            // "2-100-35, guard, bound" is another statement about the runs of "2-100-35".
            let set_up = row.case.split(", ").next().unwrap_or(&row.case);
            if cases.contains(&set_up) {
                continue;
            }
            cases.push(set_up);
            let value = |value| text::quantity(value, &known.unit);
            let case = known.scenario.as_ref().map_or_else(
                || row.case.clone(),
                |file| format!("{}: {}", row.case, file.trim_end_matches(".toml")),
            );
            table.row(vec![
                case,
                value(known.baseline),
                value(known.as_published),
                value(known.baseline_guarded),
                value(known.guarded),
                text::difference(known.guard_change),
            ]);
        }
        if !cases.is_empty() {
            text += &format!("\n{quantity} without and with the guard\n");
            text += &table.text(width());
        }
    }
    text
}

/// Table of the rows of one quantity; `reasons` collects the footnotes.
fn table<'a>(rows: &[&'a Row], reasons: &mut Vec<&'a str>) -> String {
    let some = |value: fn(&Row) -> bool| rows.iter().any(|row| value(row));
    let (model, peer) =
        (some(|row| row.model_value.is_some()), some(|row| row.peer_value.is_some()));
    let simulated = some(|row| row.simulated_value.is_some());
    let columns = [
        ("case", true),
        ("paper", true),
        ("model", model),
        ("simulated", simulated),
        ("peer", peer),
        ("off by", some(|row| row.difference.is_some())),
        ("interval", some(|row| row.interval.is_some())),
        ("verdict", true),
    ];
    let shown = columns.iter().filter(|(_, shown)| *shown);
    let mut table = Table::new(&shown.map(|(name, _)| *name).collect::<Vec<_>>());
    for row in rows {
        let mark = row.reason.as_deref().map(|reason| number(reasons, reason));
        let value = |value| text::value(Option::as_ref(value), &row.unit);
        let cells = [
            row.case.clone(),
            value(&row.paper_value),
            value(&row.model_value),
            value(&row.simulated_value),
            value(&row.peer_value),
            text::difference(row.difference),
            interval(row),
            mark.map_or(word(row.verdict).to_owned(), |mark| {
                format!("{} [{mark}]", word(row.verdict))
            }),
        ];
        let shown = cells.into_iter().zip(columns).filter(|(_, (_, shown))| *shown);
        table.row(shown.map(|(cell, _)| cell).collect());
    }
    table.text(width())
}

/// `+4.7 to +5.3 %`; empty for a single run.
fn interval(row: &Row) -> String {
    let ends = row.interval.map(|ends| ends.map(|end| format!("{:+.1}", end * 100.0 + 0.0)));
    ends.map_or_else(String::new, |[least, most]| format!("{least} to {most} %"))
}

/// A verdict in a narrow column. The column of bounds shows whether the row is a claim.
const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::ClaimHolds => "holds",
        Verdict::ClaimFails => "fails",
        other => other.as_str(),
    }
}

/// The number of the footnote with this text, which is added if it is new.
fn number<'a>(reasons: &mut Vec<&'a str>, reason: &'a str) -> usize {
    let known = reasons.iter().position(|text| *text == reason);
    known.unwrap_or_else(|| {
        reasons.push(reason);
        reasons.len() - 1
    }) + 1
}

fn summary(done: &Reproduction) -> String {
    let counts = done.counts().into_iter();
    let counts: Vec<String> = counts.map(|(verdict, n)| counted(verdict, n)).collect();
    let unexplained = done.unexplained().count();
    let open = match unexplained {
        0 => String::new(),
        n => format!("; {n} without a reason"),
    };
    let (rows, runs) = (done.rows.len(), done.simulations);
    format!("{rows} numbers and claims, {runs} simulations: {}{open}\n", counts.join(", "))
}

fn counted(verdict: Verdict, n: usize) -> String {
    match (verdict, n) {
        (Verdict::Agrees, 1) => "1 agrees".to_owned(),
        (Verdict::Agrees, n) => format!("{n} agree"),
        (Verdict::Differs, 1) => "1 differs".to_owned(),
        (Verdict::Differs, n) => format!("{n} differ"),
        (Verdict::ClaimHolds, 1) => "1 claim holds".to_owned(),
        (Verdict::ClaimHolds, n) => format!("{n} claims hold"),
        (Verdict::ClaimFails, 1) => "1 claim fails".to_owned(),
        (Verdict::ClaimFails, n) => format!("{n} claims fail"),
        (Verdict::Shown, n) => format!("{n} shown"),
        (Verdict::Undecided, n) => format!("{n} undecided"),
        (Verdict::Failed, n) => format!("{n} failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_asked_for_is_everything_and_the_order_is_that_of_the_list() {
        assert_eq!(chosen(&[]).unwrap().len(), ITEMS.len());
        let two = ["sarwar2013/table1".to_owned(), "kuhn2014/throughput".to_owned()];
        let names: Vec<String> = chosen(&two).unwrap().iter().map(Item::full_name).collect();
        assert_eq!(names, ["kuhn2014/throughput", "sarwar2013/table1"]);
    }

    #[test]
    fn an_unknown_item_is_wrong_input_and_the_hint_names_those_alike() {
        let error = chosen(&["kuhn2014/throughputs-small".to_owned()]).unwrap_err();
        assert!(matches!(error, Failure::Input(_)));
        assert!(error.to_string().contains("kuhn2014/occupancy-small"), "{error}");
        assert!(hint("xyz").contains("--list"));
    }

    #[test]
    fn one_reason_is_one_footnote_however_many_rows_it_explains() {
        let mut reasons = Vec::new();
        let numbers = ["a", "b", "a"].map(|text| number(&mut reasons, text));
        assert_eq!((numbers, reasons), ([1, 2, 1], vec!["a", "b"]));
    }

    #[test]
    fn a_section_shows_every_row_and_what_differs_only_where_it_does() {
        let done = reproduce(&find("sarwar2013/table1"), &Options::default()).unwrap();
        let text = shown(&done);
        assert_eq!(text.matches("slot.table").count(), 1, "what all rows share stands above them");
        assert_eq!(text.lines().filter(|line| line.ends_with("agrees")).count(), 7, "{text}");
        assert!(text.contains("7 numbers and claims, 0 simulations: 7 agree\n"), "{text}");
        assert!(verdict(&done, true).is_ok());
    }
}
