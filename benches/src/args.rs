//! Arguments: names of sections, `--json`, `--draws N`, `--schedulers NAME,NAME`.

use ropewalk_scenario::{Named, SchedulerName};

use crate::sections::{SECTIONS, Section};

/// Drawn scenarios for each number of paths, unless said otherwise.
const DRAWS: u64 = 5;

/// What to do.
#[derive(Debug)]
pub enum Command {
    /// Say how.
    Help,
    /// Measure the memory that so many idle associations take.
    Idle(u32),
    /// Measure sections.
    Measure(Args),
}

/// What to measure.
#[derive(Debug)]
pub struct Args {
    /// In the order of the table.
    pub sections: Vec<&'static Section>,
    /// One JSON document in place of Markdown.
    pub json: bool,
    /// Drawn scenarios for each number of paths.
    pub draws: u64,
    /// Schedulers that they are run with.
    pub schedulers: Vec<&'static str>,
}

impl Args {
    /// Reads the arguments, the program's name left out.
    ///
    /// # Errors
    /// What is wrong, and what would be right, in words.
    pub fn parse(given: impl IntoIterator<Item = String>) -> Result<Command, String> {
        let (mut names, mut json, mut draws) = (Vec::new(), false, DRAWS);
        let mut schedulers = all_schedulers();
        let mut given = given.into_iter();
        while let Some(argument) = given.next() {
            match argument.as_str() {
                "--help" | "-h" => return Ok(Command::Help),
                "--json" => json = true,
                "--draws" => draws = number("--draws", given.next())?,
                "--schedulers" => schedulers = scheduler_names(given.next())?,
                "--idle" => return Ok(Command::Idle(number("--idle", given.next())?)),
                option if option.starts_with('-') => {
                    return Err(format!("there is no option `{option}`; `--help` lists them"));
                }
                _ => names.push(argument),
            }
        }
        let unknown = names.iter().find(|name| SECTIONS.iter().all(|s| s.name != **name));
        if let Some(name) = unknown {
            let known: Vec<_> = SECTIONS.iter().map(|s| s.name).collect();
            return Err(format!("there is no section `{name}`; there are {}", known.join(", ")));
        }
        let wanted = |s: &&Section| names.is_empty() || names.iter().any(|name| name == s.name);
        let sections = SECTIONS.iter().filter(wanted).collect();
        Ok(Command::Measure(Self { sections, json, draws, schedulers }))
    }
}

fn all_schedulers() -> Vec<&'static str> {
    SchedulerName::CHOICES.iter().map(|choice| choice.name).collect()
}

fn scheduler_names(value: Option<String>) -> Result<Vec<&'static str>, String> {
    let valid = || format!("names out of {}, with commas between", all_schedulers().join(", "));
    let value = value.ok_or_else(|| format!("--schedulers needs {}", valid()))?;
    let known = |name: &str| all_schedulers().into_iter().find(|known| *known == name);
    let find =
        |name: &str| known(name).ok_or_else(|| format!("no scheduler `{name}`; use {}", valid()));
    value.split(',').map(|name| find(name.trim())).collect()
}

fn number<T: std::str::FromStr>(option: &str, value: Option<String>) -> Result<T, String> {
    let value = value.ok_or_else(|| format!("{option} needs a number, such as `{option} 50`"))?;
    value.parse().map_err(|_| format!("{option} needs a number, not `{value}`"))
}

/// The text of `--help`.
pub fn help() -> String {
    let mut text = "Measures the figures that docs/figures.md quotes, each beside its target.\n\n\
                    cargo run --release -p ropewalk-bench -- [SECTION]... [--json] [--draws N] \
                    [--schedulers NAME,...]\n\n\
                    Sections (all unless named):\n"
        .to_owned();
    for section in &SECTIONS {
        text += &format!("  {:8} {}\n", section.name, section.title);
    }
    text += &format!(
        "\n--json     one JSON document on stdout, in place of Markdown\n\
         --draws N  random scenarios ({DRAWS})\n\
         --schedulers NAME,NAME  the schedulers that these are run with (all)\n"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Command, String> {
        Args::parse(text.split_whitespace().map(str::to_owned))
    }

    fn measured(text: &str) -> (Vec<&'static str>, bool, u64) {
        match parse(text) {
            Ok(Command::Measure(args)) => {
                (args.sections.iter().map(|s| s.name).collect(), args.json, args.draws)
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn sections_come_in_the_order_of_the_table_and_all_without_a_name() {
        assert_eq!(measured("random ns2 --json"), (vec!["ns2", "random"], true, DRAWS));
        assert_eq!(measured("--draws 5 daps"), (vec!["daps"], false, 5));
        assert_eq!(measured("").0.len(), SECTIONS.len());
    }

    #[test]
    fn what_is_wrong_is_named_with_what_would_be_right() {
        let cases = [
            ("sped", "there is no section `sped`; there are ns2, daps"),
            ("--jsn", "there is no option `--jsn`"),
            ("--draws", "--draws needs a number, such as"),
            ("--draws many", "not `many`"),
            ("--schedulers", "--schedulers needs names out of lay"),
            ("--schedulers daps,dasp", "no scheduler `dasp`; use names out of lay"),
        ];
        for (given, expected) in cases {
            let message = parse(given).expect_err(given);
            assert!(message.contains(expected), "{given}: {message}");
        }
    }
}
