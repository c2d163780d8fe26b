//! Every direct dependency has a line with its reason in `docs/decisions/dependencies.md`, and every line
//! belongs to a dependency.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use toml::{Table, Value};

use crate::Finding;
use crate::tree::Tree;

/// The page with the reasons.
const PAGE: &str = "docs/decisions/dependencies.md";

/// Finds direct dependencies without a line, and lines without a dependency.
pub fn unexplained(tree: &Tree, metadata: &Json) -> Vec<Finding> {
    let Some(page) = tree.file(PAGE) else {
        return vec![Finding::new(PAGE, 0, "the page with the reasons is missing")];
    };
    let explained = explained(&page.text);
    let used = used(tree, metadata);
    let mut findings = Vec::new();
    for name in used.iter().filter(|name| !explained.contains_key(*name)) {
        let message = format!("`{name}` is used but has no line here: say why this one");
        findings.push(Finding::new(PAGE, 0, message));
    }
    for (name, line) in explained.iter().filter(|(name, _)| !used.contains(*name)) {
        let message = format!("`{name}` has a line here but nothing uses it: take the line out");
        findings.push(Finding::new(PAGE, *line, message));
    }
    findings
}

/// The names in backquotes in the first column of the tables, each with its line.
fn explained(page: &str) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for (index, line) in page.lines().enumerate() {
        let Some(row) = line.strip_prefix('|') else { continue };
        let first = row.split('|').next().unwrap_or_default();
        let quoted = first.split('`').skip(1).step_by(2);
        names.extend(quoted.map(|name| (canonical(name), index + 1)));
    }
    names
}

fn used(tree: &Tree, metadata: &Json) -> BTreeSet<String> {
    let mut names = rust_dependencies(metadata);
    for file in &tree.files {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        if name == "pyproject.toml" {
            names.extend(python_dependencies(&file.text.parse().unwrap_or_default()));
        } else if name.starts_with("requirements") && file.extension() == "txt" {
            names.extend(file.text.lines().filter_map(requirement));
        }
    }
    names.extend(vendored(tree));
    names
}

/// The direct dependencies of the workspace members, of all kinds.
fn rust_dependencies(metadata: &Json) -> BTreeSet<String> {
    let members = metadata["workspace_members"].as_array().into_iter().flatten();
    let members: BTreeSet<&str> = members.filter_map(Json::as_str).collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let own = packages.filter(|p| p["id"].as_str().is_some_and(|id| members.contains(id)));
    let declared = own.filter_map(|package| package["dependencies"].as_array()).flatten();
    let names = declared.filter_map(|dependency| dependency["name"].as_str());
    names.filter(|name| !name.starts_with("ropewalk")).map(canonical).collect()
}

/// The requirements of a `pyproject.toml` for building, running and its extras.
fn python_dependencies(project: &Table) -> Vec<String> {
    let build = project.get("build-system").and_then(|table| table.get("requires"));
    let section = project.get("project");
    let run = section.and_then(|table| table.get("dependencies"));
    let extras = section.and_then(|table| table.get("optional-dependencies"));
    let groups = project.get("dependency-groups");
    let named = [extras, groups].into_iter().flatten().filter_map(Value::as_table);
    let lists = named.flat_map(Table::values).chain(build).chain(run);
    let entries = lists.filter_map(Value::as_array).flatten().filter_map(Value::as_str);
    entries.filter_map(requirement).collect()
}

/// The package in a line of requirements: `Foo-bar[x]>=1 ; marker` is `foo-bar`.
fn requirement(line: &str) -> Option<String> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let end = line.find(|c: char| !c.is_alphanumeric() && !"-_.".contains(c)).unwrap_or(line.len());
    let name = canonical(&line[..end]);
    // `-r other.txt` and `--hash=…` are options; the package itself is not a dependency.
    (!name.is_empty() && !name.starts_with('-') && name != "ropewalk").then_some(name)
}

/// Libraries in `web/vendor/`, one directory or file each.
fn vendored(tree: &Tree) -> BTreeSet<String> {
    let inside = tree.paths.iter().filter_map(|path| path.strip_prefix("web/vendor/"));
    let names = inside.filter_map(|path| path.split(['/', '.']).next());
    // Licence files belong to the library next to them.
    names.filter(|n| !n.starts_with("LICENSE") && *n != "README").map(canonical).collect()
}

/// Normalises a name: registries treat `_`, `-` and case as equal.
fn canonical(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::assert_tidy;
    use crate::licences::metadata;

    #[test]
    fn every_dependency_in_the_tree_has_its_reason_and_every_reason_its_dependency() {
        assert_tidy(unexplained(Tree::real(), metadata()));
    }

    fn example(page: &str, requirements: &str) -> Vec<String> {
        let tree = Tree::of(&[
            (PAGE, page),
            ("python/requirements-dev.txt", requirements),
            ("python/pyproject.toml", "[build-system]\nrequires = [\"maturin>=1,<2\"]"),
            ("web/vendor/uPlot.js", ""),
        ]);
        let metadata = json!({
            "workspace_members": ["ours"],
            "packages": [
                {"id": "ours", "dependencies": [{"name": "serde_json"}, {"name": "ropewalk-base"}]},
                {"id": "serde_json", "dependencies": [{"name": "itoa"}]},
            ],
        });
        unexplained(&tree, &metadata).into_iter().map(|finding| finding.message).collect()
    }

    const COMPLETE: &str = "| `serde_json` | a |\n| `maturin` | b |\n| `uPlot` | c |\n";

    #[test]
    fn a_complete_page_is_tidy() {
        assert_eq!(example(COMPLETE, "# tools\nMaturin==1.2\n-r more.txt\n"), [""; 0]);
    }

    #[test]
    fn a_dependency_without_a_line_is_found() {
        assert!(example(COMPLETE, "pytest==8.0")[0].contains("`pytest` is used"));
        assert_eq!(example("", "").len(), 3);
    }

    #[test]
    fn a_line_without_a_dependency_is_found() {
        let found = example(&format!("{COMPLETE}| `itoa` | d |\n"), "");
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("nothing uses it"));
    }
}
