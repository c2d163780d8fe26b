//! Phrases that are unusual in technical English have a budget in comments and pages.

use std::collections::BTreeMap;

use crate::Finding;
use crate::tree::Tree;
use crate::words::has_word;

/// Phrases, compared without case, and the usual wording.
const PHRASES: [(&str, &str); 14] = [
    ("at once", "immediately, at the same time"),
    ("beside", "next to, alongside, compared with"),
    ("any more", "no longer, further"),
    ("anew", "again"),
    ("beforehand", "first, in advance"),
    ("likewise", "also"),
    ("nobody", "the party's name: no client, no peer"),
    ("somebody", "the party's name"),
    ("whoever", "the party's name"),
    ("of which", "two sentences"),
    ("of whom", "two sentences"),
    ("goes on", "continues"),
    ("made good", "recovered, retransmitted"),
    ("one after the other", "in turn"),
];

/// Phrases per 1000 words that a folder may have.
const BUDGET: f64 = 0.5;

/// Finds folders that exceed their budget, with each phrase in them.
pub fn unusual_phrases(tree: &Tree) -> Vec<Finding> {
    let mut folders: BTreeMap<String, (usize, Vec<Finding>)> = BTreeMap::new();
    for file in &tree.files {
        let Some(folder) = folder(&file.path) else { continue };
        let (words, found) = folders.entry(folder).or_default();
        let is_page = file.path.ends_with(".md");
        for (index, line) in file.text.lines().enumerate() {
            let Some(text) = (if is_page { Some(line) } else { comment(line) }) else { continue };
            *words += text.split_whitespace().count();
            let lower = text.to_lowercase();
            let present = PHRASES.iter().filter(|(phrase, _)| has_word(&lower, phrase));
            found.extend(present.map(|(phrase, usual)| {
                Finding::new(&file.path, index + 1, format!("`{phrase}`: {usual}"))
            }));
        }
    }
    let folders = folders.into_values();
    let above =
        folders.filter(|(words, found)| found.len() as f64 * 1000.0 > BUDGET * *words as f64);
    above.flat_map(|(_, found)| found).collect()
}

/// The folder whose budget a file counts against: a crate or the pages.
fn folder(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["crates", name, .., file] if file.ends_with(".rs") => Some(format!("crates/{name}")),
        ["docs", .., file] if file.ends_with(".md") => Some("docs".to_owned()),
        _ => None,
    }
}

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_tidy;

    #[test]
    fn comments_and_pages_keep_their_budget_of_unusual_phrases() {
        assert_tidy(unusual_phrases(Tree::real()));
    }

    #[test]
    fn finds_phrases_in_comments_of_a_folder_above_its_budget() {
        let words = "// word ".to_owned() + &"word ".repeat(1999);
        for (path, line, expected) in [
            ("crates/a/src/a.rs", "// sent at once".to_owned(), 1),
            ("crates/a/src/a.rs", "let text = \"sent at once\";".to_owned(), 0),
            ("crates/a/src/a.rs", format!("// sent at once\n{words}"), 0),
            ("docs/a.md", "Sent at once, beside the other.".to_owned(), 2),
            ("papers/a.md", "Sent at once.".to_owned(), 0),
        ] {
            let found = unusual_phrases(&Tree::of(&[(path, &line)]));
            assert_eq!(found.len(), expected, "{path}: {line}: {found:?}");
        }
    }
}
