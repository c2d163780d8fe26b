//! Any text in a file or an override gives a result and never a panic, and every accepted scenario
//! can be written and parsed again.

use proptest::prelude::*;
use ropewalk_scenario::Scenario;

const FULL: &str = include_str!("full.toml");

/// Pieces that make a valid file invalid in interesting ways.
const PIECES: &[&str] = &[
    "",
    "\"",
    "=",
    "[",
    "]",
    "{",
    "}",
    "0",
    "-1",
    "nan",
    "inf",
    "1e999",
    "\"1e400 s\"",
    "\"0 B\"",
    "\"3 BDP\"",
    "\"\"",
    "\"20 ms\"",
    "\"5 Mbit/s\"",
    "1979-05-27",
    "true",
    "[[path]]\n",
    "é",
    "\"100 packets\"",
    "99999999999999999999",
    "\"unlimited\"",
    "{ }",
    "[ ]",
    "\n",
    "\u{0}",
    "\"0.000000000001 Gbit/s\"",
    "\"18446744073709551615 ns\"",
    "0x7f",
    "\"7 ns\"",
    "\"2 B/s\"",
];

/// Checks that a text is either refused with valid positions, or accepted with a stable canonical
/// text.
fn check(text: &str, sets: &[String]) -> Result<(), TestCaseError> {
    match Scenario::parse_with(text, "any.toml", sets) {
        Err(error) => {
            prop_assert!(!error.to_string().is_empty());
            for problem in &error.problems {
                prop_assert!(problem.line >= 1 && problem.column >= 1 && problem.length >= 1);
                prop_assert!(!problem.message.is_empty());
            }
        }
        Ok(scenario) => {
            let written = scenario.to_toml();
            let again = Scenario::parse(&written, "any.toml");
            prop_assert_eq!(again.as_ref().map_err(ToString::to_string), Ok(&scenario));
        }
    }
    Ok(())
}

/// Replaces the value of one line, or a piece of the text.
fn spoil(text: &str, at: usize, length: usize, piece: &str, whole_value: bool) -> String {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    if whole_value {
        let lines: Vec<_> = text.lines().filter(|line| line.contains(" = ")).collect();
        let line = lines[at % lines.len()];
        let key = line.split(" = ").next().unwrap_or_default();
        return text.replacen(line, &format!("{key} = {piece}"), 1);
    }
    let (from, to) = (floor(at), floor(at + length));
    format!("{}{piece}{}", &text[..from], &text[to..])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn spoilt_files_get_an_answer_and_accepted_ones_are_stable(
        spoils in prop::collection::vec(
            (0usize..4000, 0usize..20, prop::sample::select(PIECES), any::<bool>()), 1..4)
    ) {
        let text = spoils.iter().fold(FULL.to_owned(), |text, (at, length, piece, whole)| {
            spoil(&text, *at, *length, piece, *whole)
        });
        check(&text, &[])?;
    }

    #[test]
    fn overrides_get_an_answer(
        key in "(transfer|path\\[[0-2]\\]|path\\.a|link|cross\\[0\\]|sctp|[a-z.\\[\\]\"]{0,6})\
                (\\.(seed|rtt|rate|loss|loss\\.model|queue|queue\\.limit|steps\\[0\\]|rto_min))?",
        value in prop::sample::select(PIECES),
    ) {
        check(FULL, &[format!("{key}={value}")])?;
    }

    #[test]
    fn any_text_at_all_gets_an_answer(text in "\\PC{0,200}", set in "\\PC{0,40}") {
        check(&text, &[])?;
        check(FULL, &[set])?;
    }
}
