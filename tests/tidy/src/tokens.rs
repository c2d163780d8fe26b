//! Rust source as a flat list of tokens with line numbers.
//!
//! Unlike text, tokens exclude comments and strings. Unlike a syntax tree, they include the bodies of macros
//! (`proptest!`, `macro_rules!`).

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::Finding;
use crate::tree::SourceFile;

/// One token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A word: identifier or keyword.
    Word(String),
    /// One character of punctuation.
    Punct(char),
    /// A literal as written, quotes included.
    Literal(String),
    /// An opening delimiter.
    Open(Delimiter),
    /// A closing delimiter.
    Close(Delimiter),
}

/// A token with its position.
#[derive(Clone, Debug)]
pub struct Token {
    /// Kind of token, with its text.
    pub kind: Kind,
    /// Line, counted from 1.
    pub line: usize,
}

impl Token {
    /// Whether this is the given word.
    pub fn is_word(&self, word: &str) -> bool {
        matches!(&self.kind, Kind::Word(own) if own == word)
    }

    /// Whether this is the given punctuation character.
    pub fn is_punct(&self, punct: char) -> bool {
        self.kind == Kind::Punct(punct)
    }

    /// Whether this is the given element: a word or one character of punctuation.
    pub fn is(&self, piece: &str) -> bool {
        match &self.kind {
            Kind::Word(own) => own == piece,
            Kind::Punct(own) => piece.chars().eq([*own]),
            _ => false,
        }
    }
}

/// Splits a Rust file into tokens.
///
/// # Errors
/// A finding if the file is not valid Rust (unbalanced delimiters, an unterminated string).
pub fn lex(file: &SourceFile) -> Result<Vec<Token>, Finding> {
    let stream: TokenStream = file.text.parse().map_err(|error: proc_macro2::LexError| {
        Finding::new(&file.path, error.span().start().line, "cannot be read as Rust")
    })?;
    let mut tokens = Vec::new();
    flatten(stream, &mut tokens);
    Ok(tokens)
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        let kind = match tree {
            TokenTree::Ident(word) => Kind::Word(word.to_string()),
            TokenTree::Punct(punct) => Kind::Punct(punct.as_char()),
            TokenTree::Literal(literal) => Kind::Literal(literal.to_string()),
            TokenTree::Group(group) => {
                let delimiter = group.delimiter();
                tokens.push(Token { kind: Kind::Open(delimiter), line });
                flatten(group.stream(), tokens);
                let line = group.span_close().start().line;
                tokens.push(Token { kind: Kind::Close(delimiter), line });
                continue;
            }
        };
        tokens.push(Token { kind, line });
    }
}

/// The index of the token that closes the delimiter opened at `open`.
pub fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Open(_) => depth += 1,
            Kind::Close(_) if depth == 1 => return index,
            Kind::Close(_) => depth -= 1,
            _ => {}
        }
    }
    // The lexer rejects unbalanced files, so this is reached only if `open` is wrong.
    tokens.len().saturating_sub(1)
}

/// An attribute, outer or inner: `#[…]`, `#![…]`.
#[derive(Clone, Copy, Debug)]
pub struct Attribute<'a> {
    /// The tokens between the brackets.
    pub inside: &'a [Token],
    /// The line of the `#`.
    pub line: usize,
    /// The index of the first token after the attribute.
    pub end: usize,
}

/// The attribute that begins at `index`, if one does.
pub fn attribute_at(tokens: &[Token], index: usize) -> Option<Attribute<'_>> {
    let hash = tokens.get(index).filter(|token| token.is_punct('#'))?;
    let bang = usize::from(tokens.get(index + 1).is_some_and(|token| token.is_punct('!')));
    let open = index + 1 + bang;
    if tokens.get(open)?.kind != Kind::Open(Delimiter::Bracket) {
        return None;
    }
    let close = closing(tokens, open);
    Some(Attribute { inside: &tokens[open + 1..close], line: hash.line, end: close + 1 })
}

/// All attributes of a file.
pub fn attributes(tokens: &[Token]) -> impl Iterator<Item = Attribute<'_>> {
    (0..tokens.len()).filter_map(|index| attribute_at(tokens, index))
}

/// The text of a plain string literal. `None` for any other token.
pub fn string_of(token: &Token) -> Option<&str> {
    match &token.kind {
        Kind::Literal(text) => text.strip_prefix('"')?.strip_suffix('"'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexed(text: &str) -> Vec<Token> {
        lex(&SourceFile { path: "a.rs".into(), text: text.into() }).expect("valid Rust")
    }

    #[test]
    fn words_in_comments_and_strings_are_not_words() {
        let tokens = lexed("// Instant\nfn f() { let s = \"Instant\"; }");
        assert!(!tokens.iter().any(|token| token.is_word("Instant")));
        assert!(tokens.iter().any(|token| token.is_word("fn") && token.line == 2));
    }

    #[test]
    fn a_half_written_file_is_a_finding() {
        let file = SourceFile { path: "a.rs".into(), text: "fn f() {".into() };
        assert!(lex(&file).is_err());
    }

    #[test]
    fn attributes_are_found_with_what_they_hold() {
        let tokens = lexed("#![allow(a)]\n#[ignore = \"slow\"] fn f() {}");
        let found: Vec<_> = attributes(&tokens).map(|a| (a.line, a.inside.len())).collect();
        assert_eq!(found, [(1, 4), (2, 3)]);
        assert_eq!(string_of(&attributes(&tokens).nth(1).expect("two").inside[2]), Some("slow"));
    }
}
