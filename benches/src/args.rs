//! Arguments: names of sections, `--json`.

use crate::sections::{SECTIONS, Section};

/// What to do.
#[derive(Debug)]
pub enum Command {
    /// Print the help.
    Help,
    /// Measure the memory of this many idle associations.
    Idle(u32),
    /// Measure sections.
    Measure(Args),
}

/// The selected sections and the output format.
#[derive(Debug)]
pub struct Args {
    /// In the order of the table.
    pub sections: Vec<&'static Section>,
    /// Print one JSON document instead of Markdown.
    pub json: bool,
}

impl Args {
    /// Parses the arguments, without the program's name.
    ///
    /// # Errors
    /// A message with the problem and the valid values.
    pub fn parse(given: impl IntoIterator<Item = String>) -> Result<Command, String> {
        let (mut names, mut json) = (Vec::new(), false);
        let mut given = given.into_iter();
        while let Some(argument) = given.next() {
            match argument.as_str() {
                "--help" | "-h" => return Ok(Command::Help),
                "--json" => json = true,
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
        Ok(Command::Measure(Self { sections, json }))
    }
}

fn number<T: std::str::FromStr>(option: &str, value: Option<String>) -> Result<T, String> {
    let value = value.ok_or_else(|| format!("{option} needs a number, such as `{option} 50`"))?;
    value.parse().map_err(|_| format!("{option} needs a number, not `{value}`"))
}

/// The text of `--help`.
pub fn help() -> String {
    let mut text = "Measures the figures that docs/figures.md quotes, each beside its target.\n\n\
                    cargo run --release -p ropewalk-bench -- [SECTION]... [--json]\n\n\
                    Sections (all unless named):\n"
        .to_owned();
    for section in &SECTIONS {
        text += &format!("  {:8} {}\n", section.name, section.title);
    }
    text + "\n--json     one JSON document on stdout, in place of Markdown\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Command, String> {
        Args::parse(text.split_whitespace().map(str::to_owned))
    }

    fn measured(text: &str) -> (Vec<&'static str>, bool) {
        match parse(text) {
            Ok(Command::Measure(args)) => {
                (args.sections.iter().map(|s| s.name).collect(), args.json)
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn sections_come_in_the_order_of_the_table_and_all_without_a_name() {
        assert_eq!(measured("speed ns2 --json"), (vec!["ns2", "speed"], true));
        assert_eq!(measured("").0.len(), SECTIONS.len());
    }

    #[test]
    fn what_is_wrong_is_named_with_what_would_be_right() {
        let cases = [
            ("sped", "there is no section `sped`; there are ns2, speed"),
            ("--jsn", "there is no option `--jsn`"),
            ("--idle", "--idle needs a number, such as"),
            ("--idle many", "not `many`"),
        ];
        for (given, expected) in cases {
            let message = parse(given).expect_err(given);
            assert!(message.contains(expected), "{given}: {message}");
        }
    }
}
