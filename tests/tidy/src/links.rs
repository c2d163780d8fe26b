//! Relative links of the docs have existing targets: files, directories and headings.

use crate::Finding;
use crate::markdown::{anchors, link_targets, prose};
use crate::tree::{SourceFile, Tree};

/// Finds links of Markdown pages whose target does not exist.
pub fn broken_links(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in tree.with_extension(&["md"]) {
        for (line, text) in prose(page) {
            let targets = link_targets(text);
            let broken = targets.iter().filter_map(|target| objection(tree, page, target));
            findings.extend(broken.map(|message| Finding::new(&page.path, line, message)));
        }
    }
    findings
}

fn objection(tree: &Tree, page: &SourceFile, target: &str) -> Option<String> {
    // Links to other sites are not checked, because a test must not need the network.
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let directory = page.path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let other = match path {
        "" => page.path.clone(),
        path => match resolve(directory, path) {
            Some(resolved) => resolved,
            None => return Some(format!("link `{target}` leaves the repository")),
        },
    };
    if !other.is_empty() && !tree.paths.contains(&other) {
        return Some(format!("link `{target}` leads nowhere: no `{other}`"));
    }
    let page = tree.file(&other).filter(|file| file.extension() == "md")?;
    let known = anchors(page);
    let missing = !anchor.is_empty() && !known.iter().any(|own| own == anchor);
    missing.then(|| format!("link `{target}`: `{other}` has no such heading; it has {known:?}"))
}

/// Resolves a relative path against a directory of the repository. `None` if it leads outside.
pub fn resolve(directory: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_tidy;

    #[test]
    fn the_links_of_the_docs_lead_somewhere() {
        let tree = Tree::real();
        assert!(tree.file("docs/decisions/architecture.md").is_some(), "there are docs to check");
        assert_tidy(broken_links(tree));
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let table = [
            ("[a](other.md)", 0),
            ("[a](other.md#first-steps)", 0),
            ("[a](other.md#last-steps)", 1),
            ("[a](#here)", 0),
            ("[a](#there)", 1),
            ("[a](../README.md)", 0),
            ("[a](../guides)", 1),
            ("[a](..)", 0),
            ("[a](../../secret)", 1),
            ("[a](https://example.org/x)", 0),
            ("`[a](missing.md)`", 0),
            ("[a]: missing.md", 1),
        ];
        for (text, expected) in table {
            let page = format!("# Here\n{text}\n");
            let tree = Tree::of(&[
                ("README.md", ""),
                ("docs/page.md", &page),
                ("docs/other.md", "## First steps\n"),
            ]);
            let found = broken_links(&tree);
            assert_eq!(found.len(), expected, "{text}: {found:?}");
        }
    }
}
