//! The text of the project is about the project only, not about the process of writing it, a machine, or a
//! tracker.
//!
//! This file contains the list of words and is therefore not checked.

use crate::Finding;
use crate::tree::{SourceFile, Tree};

/// Words and phrases about the process of writing, compared without case.
const DEVELOPMENT_WORDS: [&str; 22] = [
    "ai agent",
    "ai agents",
    "ai-generated",
    "anthropic",
    "as an ai",
    "chatgpt",
    "claude",
    "coding agent",
    "coding session",
    "copilot",
    "earlier session",
    "language model",
    "last session",
    "llm",
    "next session",
    "openai",
    "our session",
    "previous session",
    "subagent",
    "subagents",
    "work session",
    "working session",
];

/// Words that are terms of the field in the given places, where they are permitted.
const EXEMPT_FILES: [(&str, &[&str]); 4] = [
    // ns-2 calls its protocol end points agents.
    ("agent", &["tests/peers/", "docs/peers", "papers/", "benches/peers/"]),
    ("agents", &["tests/peers/", "docs/peers", "papers/", "benches/peers/"]),
    // An MPTCP session, an encrypted session, a terminal session.
    ("this session", &["crates/engine/src/mptcp/", "crates/runtime/", "crates/cli/src/"]),
    (
        "sessions",
        &["crates/engine/src/mptcp/", "crates/runtime/", "crates/lab/", "docs/", "README.md"],
    ),
];

/// Directories of a particular machine. `/tmp/` is banned in pages only: a script may need it.
const MACHINE_PATHS: [&str; 4] = ["/work/", "/root/", "/home/", "/Users/"];

/// Hosts of package registries. They are banned because the user's configuration selects the registry.
const REGISTRIES: [&str; 10] = [
    "crates.io",
    "deb.debian.org",
    "docker.io",
    "ghcr.io",
    "jsdelivr.net",
    "npmjs.org",
    "proxy.golang.org",
    "pypi.org",
    "pythonhosted.org",
    "unpkg.com",
];

/// Words before the number of a tracker item.
const TRACKED: [&str; 9] =
    ["issue", "issues", "pr", "pull request", "ticket", "bug", "fixes", "closes", "milestone"];

/// Whether the file is our own text. Lock files contain the origins of packages; vendored files and
/// licences are texts of others.
fn is_ours(file: &SourceFile) -> bool {
    let own_list = file.path == "tests/tidy/src/words.rs";
    let others = file.path.starts_with("web/vendor/") || file.path.starts_with("LICENSE");
    let lock = ["Cargo.lock", "package-lock.json"].iter().any(|name| file.path.ends_with(name));
    !own_list && !others && !lock
}

/// Finds lines with banned words.
pub fn foreign_words(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| is_ours(file)) {
        for (index, line) in file.text.lines().enumerate() {
            let objections = objections(&file.path, line);
            findings.extend(objections.into_iter().map(|o| Finding::new(&file.path, index + 1, o)));
        }
    }
    findings
}

fn objections(path: &str, line: &str) -> Vec<String> {
    let lower = line.to_lowercase();
    let making = DEVELOPMENT_WORDS.iter().filter(|word| has_word(&lower, word));
    let abroad = EXEMPT_FILES.iter().filter(|(word, homes)| {
        has_word(&lower, word) && !homes.iter().any(|home| path.starts_with(home))
    });
    let making = making.copied().chain(abroad.map(|(word, _)| *word));
    let mut found: Vec<String> =
        making.map(|word| format!("`{word}`: the text speaks of the project only")).collect();

    let in_page = path.ends_with(".md").then_some("/tmp/");
    let machine = MACHINE_PATHS.into_iter().chain(in_page).filter(|path| has_path(line, path));
    found.extend(machine.map(|path| format!("`{path}`: a path of one machine; make it relative")));

    let registries = REGISTRIES.iter().filter(|host| lower.contains(*host));
    found
        .extend(registries.map(|host| format!("`{host}`: leave the registry to the user's tools")));

    found.extend(tracker_number(&lower).map(|n| format!("`{n}`: say what it is about instead")));
    found
}

/// Whether `text` has `word` with no letter, digit, `_` or `-` at either side.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || "_-".contains(c);
    text.match_indices(word).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        !before.is_some_and(inside) && !after.is_some_and(inside)
    })
}

/// Whether `text` has an absolute path that begins with `prefix`; `docs/work/` does not count.
fn has_path(text: &str, prefix: &str) -> bool {
    text.match_indices(prefix).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"._-/~)}".contains(c))
    })
}

/// Finds `issue 12`, `PR #12`, or a bare `#12` in running text; colours and anchors of links do not count.
fn tracker_number(line: &str) -> Option<String> {
    for (hash, _) in line.match_indices('#') {
        let digits = leading_digits(&line[hash + 1..]);
        let after = line[hash + 1 + digits.len()..].chars().next();
        let before = &line[..hash];
        let bare = before.is_empty() || before.ends_with([' ', '(', '[']);
        // `color: #333` is a colour.
        let colour = before.trim_end().ends_with([':', '"', '\'', '=', ',']);
        let ends = after.is_none_or(|c| !c.is_alphanumeric() && !"-_".contains(c));
        if !digits.is_empty() && bare && ends && !colour {
            return Some(format!("#{digits}"));
        }
    }
    TRACKED.iter().find_map(|word| {
        line.match_indices(word).find_map(|(start, _)| {
            let before = line[..start].chars().next_back();
            let rest = line[start + word.len()..].strip_prefix(' ')?;
            let digits = leading_digits(rest.strip_prefix('#').unwrap_or(rest));
            let whole = !before.is_some_and(|c| c.is_alphanumeric() || "_-".contains(c));
            (whole && !digits.is_empty()).then(|| format!("{word} {digits}"))
        })
    })
}

fn leading_digits(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_tidy;

    #[test]
    fn the_project_describes_itself_only() {
        assert_tidy(foreign_words(Tree::real()));
    }

    #[test]
    fn foreign_words_are_found() {
        let table = [
            ("docs/a.md", "In this session we measured", 1),
            ("docs/a.md", "The MPTCP session ends", 0),
            ("docs/a.md", "An MPTCP subflow joins; sessions survive", 0),
            ("src/a.rs", "// written by an agent", 1),
            ("tests/peers/a.md", "Agent/SCTP/CMT is the agent", 0),
            ("src/a.rs", "// the user-agent header", 0),
            ("src/a.rs", "// Claude wrote it", 1),
            ("src/a.rs", "// issue 12", 1),
            ("src/a.rs", "// see PR #12", 1),
            ("docs/a.md", "fixed (#12)", 1),
            ("docs/a.md", "#12", 1),
            ("docs/a.md", "[files](#1-files)", 0),
            ("docs/a.md", "# 1 Files", 0),
            ("web/a.css", "color: #333;", 0),
            ("web/a.js", "line('#333')", 0),
            ("src/a.rs", "// RFC 9260, errata 1; debug 3", 0),
            ("src/a.rs", "// from /work/main/papers", 1),
            ("src/a.rs", "// crates/work/main", 0),
            ("docs/a.md", "put it in /tmp/out", 1),
            ("tests/a.sh", "cd /tmp/out", 0),
            ("README.md", "from https://pypi.org/project/x", 1),
            ("web/vendor/plot.js", "/home/me unpkg.com #12", 0),
            ("Cargo.lock", "registry+https://github.com/rust-lang/crates.io-index", 0),
            ("python/Cargo.lock.md", "crates.io", 1),
        ];
        for (path, line, expected) in table {
            let found = foreign_words(&Tree::of(&[(path, line)]));
            assert_eq!(found.len(), expected, "{path}: {line}: {found:?}");
        }
    }
}
