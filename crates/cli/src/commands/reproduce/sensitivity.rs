//! `ropewalk reproduce --sensitivity`: shows which items still hold with other values of settings that the paper
//! leaves open.

use ropewalk_lab::reproduce::{Item, Options, Sensitivity, sensitivity, sensitivity_simulations};

use crate::console::{Console, layout};
use crate::failure::Failure;
use crate::format::{Captioned, Format, print_markdown};
use crate::output;
use crate::progress::{Progress, with_bar};
use crate::table::{Cell, Table};

/// A table for each paper of `items` whose readings can be varied.
///
/// # Errors
/// [`Failure`].
pub fn execute(items: &[Item], format: Format, console: Console) -> Result<(), Failure> {
    let mut papers: Vec<&str> = items.iter().map(|item| item.paper).collect();
    papers.dedup();
    papers.retain(|paper| sensitivity_simulations(paper).is_ok());
    if papers.is_empty() {
        let message = "none of these papers has readings to vary".to_owned();
        return Err(Failure::input(message, "kuhn2014 and slides2013 have".to_owned()));
    }
    let mut lines = Vec::new();
    for paper in papers {
        lines.extend(run(paper, console)?);
    }
    let all: Vec<&Sensitivity> = lines.iter().collect();
    match format {
        Format::Json => output::print_json(&lines),
        Format::Csv => output::print(&table(&all).csv()),
        Format::Markdown => print_markdown(&[Captioned::new("", table(&all))]),
        Format::Text => output::print(&shown(&lines)),
    }
}

fn run(paper: &str, console: Console) -> Result<Vec<Sensitivity>, Failure> {
    let total = sensitivity_simulations(paper).map_err(Failure::Run)?;
    let progress = Progress::steps(total as u64);
    let step = |_: usize, _: usize, _: &str| progress.step();
    let options = Options { progress: &step, ..Options::default() };
    with_bar(console, paper, &progress, || sensitivity(paper, &options)).map_err(Failure::Run)
}

fn shown(lines: &[Sensitivity]) -> String {
    let mut text = String::new();
    for (i, line) in lines.iter().enumerate() {
        if i == 0 || lines[i - 1].paper != line.paper {
            let of_paper: Vec<_> = lines.iter().filter(|l| l.paper == line.paper).collect();
            text += &format!("{}: simulated items, one reading changed at a time\n\n", line.paper);
            text += &table(&of_paper).text(layout());
            text.push('\n');
        }
    }
    text
}

fn table(lines: &[&Sensitivity]) -> Table {
    let mut table = Table::empty();
    let papers = lines.iter().any(|line| line.paper != lines[0].paper);
    if papers {
        table.name("paper", "paper");
    }
    table.name("changed", "changed");
    for name in ["hold", "undecided", "fail", "newly hold", "no longer"] {
        table.column(name, "");
    }
    for line in lines {
        let counts = [
            line.hold as u64,
            line.undecided as u64,
            line.fail as u64,
            line.gained.len() as u64,
            line.lost.len() as u64,
        ];
        let paper = papers.then(|| Cell::from(line.paper.as_str()));
        let names = paper.into_iter().chain([Cell::from(line.name.as_str())]);
        table.row(names.chain(counts.map(Cell::count)).collect());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paper_has_one_table_with_a_line_for_each_change() {
        let line = |paper: &str, name: &str| Sensitivity {
            paper: paper.to_owned(),
            name: name.to_owned(),
            sets: Vec::new(),
            hold: 3,
            undecided: 1,
            fail: 2,
            gained: vec!["x".to_owned()],
            lost: Vec::new(),
        };
        let text = shown(&[line("a", "one"), line("a", "two"), line("b", "one")]);
        assert_eq!(text.matches("one reading changed").count(), 2);
        assert_eq!(text.matches("two").count(), 1);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}
