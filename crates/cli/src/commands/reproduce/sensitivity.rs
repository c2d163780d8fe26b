//! `ropewalk reproduce --sensitivity`: which items hold when a setting that the paper leaves open has another value.

use ropewalk_lab::reproduce::{Item, Options, Sensitivity, sensitivity, sensitivity_simulations};

use crate::console::{Console, width};
use crate::failure::Failure;
use crate::output;
use crate::progress::{Progress, with_bar};
use crate::table::Table;

/// A table for each paper of `items` whose readings can be varied.
///
/// # Errors
/// [`Failure`].
pub fn execute(items: &[Item], json: bool, console: Console) -> Result<(), Failure> {
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
    if json {
        return output::print_json(&lines);
    }
    output::print(&shown(&lines))
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
            text += &table(&of_paper);
            text.push('\n');
        }
    }
    text
}

fn table(lines: &[&Sensitivity]) -> String {
    let mut table =
        Table::new(&["changed", "hold", "undecided", "fail", "newly hold", "no longer"]);
    for line in lines {
        table.row(vec![
            line.name.clone(),
            line.hold.to_string(),
            line.undecided.to_string(),
            line.fail.to_string(),
            line.gained.len().to_string(),
            line.lost.len().to_string(),
        ]);
    }
    table.text(width())
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
            guarded: false,
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
