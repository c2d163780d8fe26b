//! Every file in `scenarios/` is named on a page or in a test.

use crate::Finding;
use crate::tree::{SourceFile, Tree};

/// Finds files in `scenarios/` that are not named.
pub fn unnamed(tree: &Tree) -> Vec<Finding> {
    let speakers: Vec<&SourceFile> = tree.files.iter().filter(|file| mentions(file)).collect();
    let examples = tree.paths.iter().filter(|path| {
        let name = path.strip_prefix("scenarios/");
        name.is_some_and(|name| name.contains('.') && !name.ends_with(".md"))
    });
    let unnamed = examples.filter(|path| {
        let name = path.rsplit('/').next().unwrap_or(path);
        !speakers.iter().any(|file| names(&file.text, name))
    });
    let message = "no page and no test names this example: explain it, try it, or remove it";
    unnamed.map(|path| Finding::new(path, 0, message)).collect()
}

/// Whether names in this file count: pages, tests, and scenarios, which name their traces.
fn mentions(file: &SourceFile) -> bool {
    let page = file.extension() == "md";
    let test = file.path.starts_with("tests/") || file.path.contains("/tests/");
    // The bad examples of the tidy test name files that do not exist.
    (page || test || file.path.starts_with("scenarios/")) && !file.path.starts_with("tests/tidy/")
}

/// Whether a text contains a complete file name: `wifi-lte.toml` does not name `lte.toml`.
fn names(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"-_.".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_tidy;

    #[test]
    fn every_example_in_the_tree_is_named_somewhere() {
        assert_tidy(unnamed(Tree::real()));
    }

    #[test]
    fn an_example_that_nothing_names_is_found() {
        let tree = Tree::of(&[
            ("scenarios/wifi-lte.toml", "trace = \"traces/bus.mahi\""),
            ("scenarios/lte.toml", ""),
            ("scenarios/tested.toml", ""),
            ("scenarios/traces/bus.mahi", ""),
            ("README.md", "ropewalk run scenarios/wifi-lte.toml"),
            ("crates/lab/tests/whole.rs", "\"tested.toml\""),
            ("crates/lab/src/run.rs", "// lte.toml"),
        ]);
        let found: Vec<String> = unnamed(&tree).into_iter().map(|f| f.path).collect();
        assert_eq!(found, ["scenarios/lte.toml"]);
    }
}
