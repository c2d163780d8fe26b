//! A value that is one of several names.

use crate::suggest;

/// A name that a key may have, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// As written in the file.
    pub name: &'static str,
    /// One sentence for the reference.
    pub doc: &'static str,
}

/// An enum whose variants are [`Choice`]s.
pub trait Named: Copy + Sized + 'static {
    /// Every name, in the order of the variants.
    const CHOICES: &'static [Choice];
    /// Every variant, in the order of [`Named::CHOICES`].
    const ALL: &'static [Self];
}

/// A name is not in its list of choices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {help}")]
pub struct UnknownName {
    /// What is wrong.
    pub message: String,
    /// A hint: what would be valid.
    pub help: String,
}

/// The index of `text` in `choices`.
pub(crate) fn find_name(text: &str, choices: &[Choice]) -> Result<usize, UnknownName> {
    if let Some(at) = choices.iter().position(|c| c.name == text) {
        return Ok(at);
    }
    let names: Vec<_> = choices.iter().map(|c| c.name).collect();
    let valid = format!("valid: {}", suggest::quoted_or_list(&names));
    let help = suggest::hint(text, &names, valid);
    Err(UnknownName { message: format!("there is no `{text}`"), help })
}
