//! Text chosen by a peer that a terminal or a log will show.
//!
//! A file name, a host name or a refusal may contain escape sequences that move the cursor, change the window
//! title or imitate other output. [`PeerText`] can only be shown with all such characters escaped.

use std::fmt::{self, Write};

/// Longest text that is shown, in input characters. The rest is replaced by an ellipsis.
const SHOWN_LIMIT: usize = 256;

/// Text from a peer. `Display` and `Debug` escape it; [`PeerText::unescaped`] is for programs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PeerText(String);

impl PeerText {
    /// Wraps text from a peer.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Wraps bytes from a peer. Invalid UTF-8 is replaced by U+FFFD.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(String::from_utf8_lossy(bytes).into_owned())
    }

    /// The text as the peer sent it, for comparisons and for documents with their own encoding. Never write
    /// it to a terminal.
    pub fn unescaped(&self) -> &str {
        &self.0
    }

    /// The complete text, escaped as `Display` does, for texts that already have a length limit.
    pub fn escaped(&self) -> String {
        let mut escaped = String::with_capacity(self.0.len());
        // A String takes every write.
        let _ = self.0.chars().try_for_each(|character| escape(character, &mut escaped));
        escaped
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for PeerText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for PeerText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for PeerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut characters = self.0.chars();
        for character in characters.by_ref().take(SHOWN_LIMIT) {
            escape(character, f)?;
        }
        if characters.next().is_some() { f.write_char('…') } else { Ok(()) }
    }
}

impl fmt::Debug for PeerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

fn escape(character: char, to: &mut impl Write) -> fmt::Result {
    if acts_on_terminals(character) {
        write!(to, "{}", character.escape_unicode())
    } else {
        to.write_char(character)
    }
}

/// Whether a character has effects beyond its display: C0 and C1 controls, line and paragraph separators,
/// invisible characters, and characters that change the direction of writing (CVE-2021-42574).
const fn acts_on_terminals(character: char) -> bool {
    matches!(
        character,
        '\u{0}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_on_is_printed() {
        for (text, shown) in [
            ("film.mkv", "film.mkv"),
            ("Grüße 雪.txt", "Grüße 雪.txt"),
            ("\x1b]0;owned\x07", "\\u{1b}]0;owned\\u{7}"),
            ("one\r\ntwo\ttabs", "one\\u{d}\\u{a}two\\u{9}tabs"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("gpj.\u{202e}exe", "gpj.\\u{202e}exe"),
            ("zero\u{200b}width", "zero\\u{200b}width"),
        ] {
            assert_eq!(PeerText::from(text).to_string(), shown);
            assert_eq!(PeerText::from(text).escaped(), shown);
            assert_eq!(PeerText::from(text).unescaped(), text);
        }
        assert_eq!(format!("{:?}", PeerText::from("a\x1b")), "\"a\\u{1b}\"");
    }

    #[test]
    fn a_long_text_is_cut() {
        let shown = PeerText::new("x".repeat(10_000)).to_string();
        assert_eq!(shown.chars().count(), SHOWN_LIMIT + 1);
        assert!(shown.ends_with('…'));
        assert_eq!(PeerText::from_bytes(b"\xff").to_string(), "\u{fffd}");
    }
}
