//! Size limits: files under 600 lines, functions under 70.

use proc_macro2::Delimiter;

use crate::Finding;
use crate::tokens::{Kind, Token, closing, lex};
use crate::tree::{SourceFile, Tree};

/// Exclusive limit on the lines of a file.
pub const FILE_LINES: usize = 600;
/// Exclusive limit on the lines of a function, from `fn` to its closing brace.
pub const FUNCTION_LINES: usize = 70;

/// Extensions of the files whose length is limited.
const SOURCES: [&str; 9] = ["rs", "py", "pyi", "js", "mjs", "ts", "css", "html", "sh"];

/// Third-party files, kept unchanged.
const VENDORED: &str = "web/vendor/";

/// Finds source files that are too long.
pub fn long_files(tree: &Tree) -> Vec<Finding> {
    let own = tree.with_extension(&SOURCES).filter(|file| !file.path.starts_with(VENDORED));
    let long = own.map(|file| (file, file.text.lines().count()));
    let long = long.filter(|(_, lines)| *lines >= FILE_LINES);
    long.map(|(file, lines)| {
        let message = format!("{lines} lines; a file stays under {FILE_LINES}: split it");
        Finding::new(&file.path, 0, message)
    })
    .collect()
}

/// Finds Rust functions that are too long, in tests and macros too.
pub fn long_functions(tree: &Tree) -> Vec<Finding> {
    tree.with_extension(&["rs"])
        .flat_map(|file| match functions(file) {
            Ok(functions) => functions.iter().filter_map(|f| f.finding(&file.path)).collect(),
            Err(finding) => vec![finding],
        })
        .collect()
}

/// A function with its extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Name of the function.
    pub name: String,
    /// The line of `fn` (or `def`), counted from 1.
    pub line: usize,
    /// Number of lines, signature and comments included.
    pub lines: usize,
}

impl Function {
    /// A finding if the function is too long.
    pub fn finding(&self, path: &str) -> Option<Finding> {
        let Self { name, line, lines } = self;
        (*lines >= FUNCTION_LINES).then(|| {
            let message =
                format!("`{name}` has {lines} lines; a function stays under 70: split it");
            Finding::new(path, *line, message)
        })
    }
}

fn functions(file: &SourceFile) -> Result<Vec<Function>, Finding> {
    let tokens = lex(file)?;
    let named = tokens.windows(2).enumerate().filter_map(|(index, pair)| match &pair[1].kind {
        // `fn(u8)` is a type: only `fn name` begins a function.
        Kind::Word(name) if pair[0].is_word("fn") => Some((index, name.clone())),
        _ => None,
    });
    let with_body = named.filter_map(|(index, name)| {
        let end = body_end(&tokens, index)?;
        let line = tokens[index].line;
        Some(Function { name, line, lines: tokens[end].line - line + 1 })
    });
    Ok(with_body.collect())
}

/// Index of the brace that closes the function whose `fn` is at `start`. `None` for a function without a
/// body.
fn body_end(tokens: &[Token], start: usize) -> Option<usize> {
    let mut index = start;
    while let Some(token) = tokens.get(index) {
        match token.kind {
            Kind::Open(delimiter) => {
                let close = closing(tokens, index);
                // `Foo<{ N }>` in a signature is a constant expression, not the body.
                let constant = tokens.get(close + 1).is_some_and(|next| next.is_punct('>'));
                if delimiter == Delimiter::Brace && !constant {
                    return Some(close);
                }
                index = close;
            }
            Kind::Punct(';') | Kind::Close(_) => return None,
            _ => {}
        }
        index += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_tidy;

    #[test]
    fn the_files_in_the_tree_are_short() {
        assert_tidy(long_files(Tree::real()));
    }

    #[test]
    fn the_rust_functions_in_the_tree_are_short() {
        assert_tidy(long_functions(Tree::real()));
    }

    #[test]
    fn a_file_of_600_lines_is_refused_and_one_of_599_is_not() {
        let long = "x\n".repeat(600);
        let short = "x\n".repeat(599);
        let tree = Tree::of(&[("a.js", &long), ("b.rs", &short), ("web/vendor/plot.js", &long)]);
        let found: Vec<String> = long_files(&tree).into_iter().map(|f| f.path).collect();
        assert_eq!(found, ["a.js"]);
    }

    /// A function that spans exactly `lines` lines.
    fn function(lines: usize) -> String {
        format!("fn f(a: [u8; 2]) -> u8 {{\n{}}}\n", "    // why\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_of_70_lines_is_refused_wherever_it_stands() {
        let (short, long) = (function(69), function(70));
        let places = [
            ("free", long.clone(), 1),
            ("short", short, 0),
            ("in an impl", format!("impl T {{ {long} }}"), 1),
            ("in a trait", format!("trait T {{ fn g(); {long} }}"), 1),
            ("in a test module", format!("#[cfg(test)] mod tests {{ {long} }}"), 1),
            ("in a macro", format!("proptest! {{ {long} }}"), 1),
            ("after a constant argument", format!("fn g(x: A<{{ 1 }}>) {{ {long} }}"), 2),
            ("a type alone", format!("type F = fn(u8);{}", "\n".repeat(80)), 0),
        ];
        for (place, text, expected) in places {
            let found = long_functions(&Tree::of(&[("a.rs", &text)]));
            assert_eq!(found.len(), expected, "{place}: {found:?}");
        }
    }
}
