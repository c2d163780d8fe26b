//! `ropewalk reproduce`: compares results printed in papers with the models and the simulator.

use std::path::{Path, PathBuf};

use clap::Args;
use ropewalk_lab::report::{Report, ReportKind};
use ropewalk_lab::reproduce::{
    ITEMS, Item, Options, Reproduction, Row, find, reproduce, simulations,
};
use ropewalk_scenario::nearest;

use crate::args::command_line;
use crate::console::Console;
use crate::failure::Failure;
use crate::files::{VERSION, check_report, save_report};
use crate::format::{Captioned, Format, FormatArgs, print_markdown};
use crate::output;
use crate::progress::{Progress, with_bar};
use crate::table::Table;

mod sensitivity;
mod show;

/// Arguments of `reproduce`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ropewalk reproduce --list\n  \
    ropewalk reproduce kuhn2014/throughput sarwar2013/table2\n  \
    ropewalk reproduce kuhn --json\n  \
    ropewalk reproduce --all --report papers.html\n  \
    ropewalk reproduce kuhn2014 --sensitivity\n\n\
    A number that differs or a claim that fails is a result, not an error: the exit status stays 0 \
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
    #[command(flatten)]
    format: FormatArgs,
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
        return list(&items, args.format.format());
    }
    if args.sensitivity {
        return sensitivity::execute(&items, args.format.format(), console);
    }
    if let Some(path) = &args.report {
        check_report(path)?;
    }
    let done = run(&items, console)?;
    if let Some(path) = &args.report {
        write_report(path, &done, console)?;
    }
    match args.format.format() {
        Format::Json => output::print_json(&done.rows)?,
        Format::Csv => output::print(&show::flat(&done.rows).csv())?,
        Format::Markdown => print_markdown(&show::tables(&done.rows))?,
        Format::Text => output::print(&show::text(&done))?,
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
        let names: Vec<String> = ITEMS.iter().map(Item::full_name).collect();
        let short = ITEMS.iter().map(|item| item.name);
        let names: Vec<&str> = names.iter().map(String::as_str).chain(short).collect();
        alike.extend(nearest(name, &names).map(str::to_owned));
    }
    if alike.is_empty() {
        return ALL.to_owned();
    }
    format!("did you mean {}? {ALL}", alike.join(", "))
}

fn list(items: &[Item], format: Format) -> Result<(), Failure> {
    let table = || {
        let mut table = Table::new(&["item", "title"]);
        items.iter().for_each(|item| table.row(vec![item.full_name(), item.title.to_owned()]));
        table
    };
    match format {
        Format::Json => {
            let entry = |item: &Item| serde_json::json!({ "paper": item.paper, "item": item.name, "title": item.title });
            output::print_json(&items.iter().map(entry).collect::<Vec<_>>())
        }
        Format::Csv => output::print(&table().csv()),
        Format::Markdown => print_markdown(&[Captioned::new("", table())]),
        Format::Text => {
            let width = items.iter().map(|item| item.full_name().len()).max().unwrap_or(0);
            let line = |item: &Item| format!("{:width$}   {}\n", item.full_name(), item.title);
            output::print(&items.iter().map(line).collect::<String>())
        }
    }
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
    report.add(&done.rows, &done.figures);
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
        assert!(hint("thruoghput").contains("did you mean throughput?"));
    }
}
