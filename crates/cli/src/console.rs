//! Output for a person at a terminal, apart from the data: notes on stderr, and the width of lines.

use core::fmt;
use std::io::{IsTerminal, Write as _, stderr, stdout};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use crate::table::Layout;

/// Width of lines if the terminal's is unknown.
const WIDTH: usize = 100;
/// Minimum width that a layout needs.
const LEAST_WIDTH: usize = 40;

/// Writes notes to stderr, unless `--quiet` is given.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    quiet: bool,
}

impl Console {
    /// With `quiet`, only errors are written to stderr.
    pub const fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// Whether only errors are written.
    pub const fn is_quiet(self) -> bool {
        self.quiet
    }

    /// Prints a note, which is not part of the data.
    pub fn note(self, text: impl fmt::Display) {
        if !self.quiet {
            write_error(text);
        }
    }

    /// Whether progress is shown: stderr is a terminal, and notes are not silenced.
    pub fn has_viewer(self) -> bool {
        !self.quiet && stderr().is_terminal()
    }
}

/// Writes lines to stderr, with their marks coloured where colours are shown. Errors are ignored, because
/// the reader may be gone: `ropewalk run a.toml 2>&1 | head`.
pub fn write_error(text: impl fmt::Display) {
    let text = text.to_string();
    let text = if stderr_has_colour() { marked(&text) } else { text };
    let _ = writeln!(stderr().lock(), "{text}");
}

/// Whether colours are shown on stderr: `--color`, `NO_COLOR` and the terminal decide.
pub fn stderr_has_colour() -> bool {
    AutoStream::choice(&stderr()) != ColorChoice::Never
}

/// Words that begin a line of a message, with their styles.
const MARKS: [(&str, Style); 4] = [
    ("error:", AnsiColor::Red.on_default().bold()),
    ("warning:", AnsiColor::Yellow.on_default().bold()),
    ("hint:", AnsiColor::Cyan.on_default().bold()),
    ("= help:", AnsiColor::Cyan.on_default().bold()),
];

/// `text` with escape sequences around the mark of each line.
fn marked(text: &str) -> String {
    let line = |line: &str| {
        let trimmed = line.trim_start();
        let indent = &line[..line.len() - trimmed.len()];
        let found =
            MARKS.iter().find_map(|(mark, style)| Some((mark, style, trimmed.strip_prefix(mark)?)));
        found.map_or_else(
            || line.to_owned(),
            |(mark, style, rest)| format!("{indent}{style}{mark}{style:#}{rest}"),
        )
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Width of stdout, and whether it shows colours.
pub fn layout() -> Layout {
    let colour = !cfg!(test) && AutoStream::choice(&stdout()) != ColorChoice::Never;
    Layout { width: width(), colour }
}

/// Characters per line of output: the width of the terminal, otherwise 100.
pub fn width() -> usize {
    let shown = terminal_size::terminal_size_of(stdout()).map(|(columns, _)| columns.0.into());
    shown.unwrap_or(WIDTH).max(LEAST_WIDTH)
}

/// `text` after `head` in lines of at most `width` characters. All lines but the first are indented
/// by the width of `head`. Longer words are not split, and neither are numbers and their units.
pub fn wrapped(head: &str, text: &str, width: usize) -> String {
    let indent = head.chars().count();
    let mut out = head.to_owned();
    let mut used = indent;
    for word in words(text) {
        let length = word.chars().count();
        if used > indent && used + 1 + length > width {
            out.extend(["\n", &" ".repeat(indent)]);
            used = indent;
        } else if used > indent {
            out.push(' ');
            used += 1;
        }
        out.push_str(&word);
        used += length;
    }
    out.push('\n');
    out
}

/// The words of `text`; a number and the word after it form one word.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            Some(last) if last.ends_with(|c: char| c.is_ascii_digit()) => last.extend([" ", word]),
            _ => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_at_the_beginning_of_lines_are_coloured_and_nothing_else() {
        for (text, shown) in [
            ("error: no", "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m no"),
            ("a\n = help: b", "a\n \u{1b}[1m\u{1b}[36m= help:\u{1b}[0m b"),
            ("no error: here", "no error: here"),
        ] {
            assert_eq!(marked(text), shown);
        }
    }

    #[test]
    fn long_text_goes_on_below_itself() {
        for (head, text, width, expected) in [
            ("why  ", "it is its turn", 40, "why  it is its turn\n"),
            ("why  ", "it is its turn", 12, "why  it is\n     its\n     turn\n"),
            ("", "a limit of 2.6 Mbit/s", 16, "a limit of\n2.6 Mbit/s\n"),
            ("", "averyveryverylongword and more", 10, "averyveryverylongword\nand more\n"),
        ] {
            assert_eq!(wrapped(head, text, width), expected);
        }
    }
}
