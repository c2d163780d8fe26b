//! Every dependency has a licence that is compatible with the project's own terms (MIT or Apache-2.0).

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::Finding;
use crate::tree::Tree;

/// Licences whose only condition is that their text is included.
const PERMISSIVE: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Further licences for development tools. MPL-2.0 requires the publication of changes to its own files by
/// anyone who distributes them, so such a package must not be distributed.
const DEVELOPMENT: [&str; 1] = ["MPL-2.0"];

/// Output of `cargo metadata` for the workspace and all dependencies.
///
/// # Panics
/// If cargo fails.
pub fn metadata() -> &'static Value {
    static METADATA: OnceLock<Value> = OnceLock::new();
    METADATA.get_or_init(|| {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1"])
            .current_dir(crate::tree::root())
            .output()
            .expect("cargo runs");
        let problem = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "cargo metadata failed: {problem}");
        serde_json::from_slice(&output.stdout).expect("cargo answers in JSON")
    })
}

/// Finds libraries in `web/vendor/` without a licence file.
pub fn vendored_without_licence(tree: &Tree) -> Vec<Finding> {
    let inside = tree.paths.iter().filter_map(|path| path.strip_prefix("web/vendor/"));
    let libraries: BTreeSet<&str> = inside.filter_map(|path| path.split('/').next()).collect();
    let bare = libraries.into_iter().map(|name| format!("web/vendor/{name}")).filter(|library| {
        !tree.paths.iter().any(|path| path.starts_with(&format!("{library}/LICENSE")))
    });
    let message = "passed on without its licence: give it a directory with its LICENSE file";
    bare.map(|library| Finding::new(&library, 0, message)).collect()
}

/// Finds dependencies whose licence is missing or not in the list.
pub fn refused(metadata: &Value) -> Vec<Finding> {
    let own = own_packages(metadata);
    let shipped = shipped(metadata, &own);
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let foreign = packages.filter(|package| !own.contains(text(&package["id"])));
    foreign
        .filter_map(|package| {
            let objection = objection(package, shipped.contains(text(&package["id"])))?;
            Some(Finding::new("Cargo.lock", 0, objection))
        })
        .collect()
}

fn objection(package: &Value, shipped: bool) -> Option<String> {
    let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
    let Some(licence) = package["license"].as_str() else {
        return Some(format!("`{name}` states no licence: do not use it"));
    };
    let allowed = |one: &str| PERMISSIVE.contains(&one) || (!shipped && DEVELOPMENT.contains(&one));
    let place = if shipped { "what is shipped" } else { "development" };
    (!permits(licence, &allowed)).then(|| format!("`{name}`: `{licence}` is refused in {place}"))
}

/// Whether a licence expression (SPDX, or the older `MIT/Apache-2.0`) permits an allowed choice.
fn permits(expression: &str, allowed: &impl Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let permitted = any_of(&mut rest, allowed);
    permitted && rest.is_empty()
}

fn any_of(rest: &mut &[&str], allowed: &impl Fn(&str) -> bool) -> bool {
    let mut permitted = all_of(rest, allowed);
    while let ["OR", tail @ ..] = rest {
        *rest = tail;
        permitted |= all_of(rest, allowed);
    }
    permitted
}

fn all_of(rest: &mut &[&str], allowed: &impl Fn(&str) -> bool) -> bool {
    let mut permitted = one(rest, allowed);
    while let ["AND", tail @ ..] = rest {
        *rest = tail;
        permitted &= one(rest, allowed);
    }
    permitted
}

fn one(rest: &mut &[&str], allowed: &impl Fn(&str) -> bool) -> bool {
    match rest {
        ["(", tail @ ..] => {
            *rest = tail;
            let permitted = any_of(rest, allowed);
            let [")", tail @ ..] = rest else { return false };
            *rest = tail;
            permitted
        }
        [licence, "WITH", exception, tail @ ..] => {
            *rest = tail;
            allowed(&format!("{licence} WITH {exception}"))
        }
        [licence, tail @ ..] => {
            *rest = tail;
            allowed(licence)
        }
        [] => false,
    }
}

fn own_packages(metadata: &Value) -> BTreeSet<&str> {
    metadata["workspace_members"].as_array().into_iter().flatten().map(text).collect()
}

/// All packages that the crates under `crates/` need for building and running, without tests.
fn shipped<'a>(metadata: &'a Value, own: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let nodes = metadata["resolve"]["nodes"].as_array().into_iter().flatten();
    let graph: BTreeMap<&str, &Value> = nodes.map(|node| (text(&node["id"]), node)).collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let products = packages.filter(|package| {
        own.contains(text(&package["id"])) && text(&package["manifest_path"]).contains("/crates/")
    });
    let mut pending: Vec<&str> = products.map(|package| text(&package["id"])).collect();
    let mut shipped = BTreeSet::new();
    while let Some(id) = pending.pop() {
        if shipped.insert(id) {
            let uses = graph.get(id).and_then(|node| node["deps"].as_array()).into_iter().flatten();
            let kept = uses.filter(|used| !only_for_tests(used));
            pending.extend(kept.map(|used| text(&used["pkg"])));
        }
    }
    shipped
}

fn only_for_tests(used: &Value) -> bool {
    let kinds = used["dep_kinds"].as_array().into_iter().flatten();
    kinds.map(|kind| &kind["kind"]).all(|kind| kind == "dev")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::assert_tidy;

    #[test]
    fn the_licences_of_all_dependencies_fit_the_project() {
        assert_tidy(refused(metadata()));
    }

    #[test]
    fn vendored_libraries_carry_their_licence() {
        assert_tidy(vendored_without_licence(Tree::real()));
    }

    #[test]
    fn a_vendored_library_without_its_licence_is_found() {
        let tree = Tree::of(&[
            ("web/vendor/good/LICENSE", ""),
            ("web/vendor/good/good.js", ""),
            ("web/vendor/bare/bare.js", ""),
            ("web/vendor/loose.js", ""),
        ]);
        let found: Vec<String> =
            vendored_without_licence(&tree).into_iter().map(|f| f.path).collect();
        assert_eq!(found, ["web/vendor/bare", "web/vendor/loose.js"]);
    }

    #[test]
    fn licence_expressions_are_read_as_their_authors_meant() {
        let allowed = |one: &str| PERMISSIVE.contains(&one);
        let table = [
            ("MIT", true),
            ("MIT OR GPL-3.0-only", true),
            ("MIT AND GPL-3.0-only", false),
            ("MIT/Apache-2.0", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("(MIT OR Apache-2.0) AND OpenSSL", false),
            ("GPL-2.0 OR (MIT AND Zlib)", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("GPL-2.0 WITH Classpath-exception-2.0", false),
            ("GPL-3.0", false),
            ("(MIT", false),
            ("", false),
        ];
        for (expression, expected) in table {
            assert_eq!(permits(expression, &allowed), expected, "{expression}");
        }
    }

    /// A workspace whose product has `used` as the given kind of dependency (`null` is the normal kind).
    fn workspace(licence: &Value, kind: &Value) -> Value {
        json!({
            "workspace_members": ["ours"],
            "packages": [
                {"id": "ours", "name": "ours", "manifest_path": "a/crates/ours/Cargo.toml"},
                {"id": "used", "name": "used", "version": "1.0.0", "license": licence},
            ],
            "resolve": {"nodes": [
                {"id": "ours", "deps": [{"pkg": "used", "dep_kinds": [{"kind": kind}]}]},
                {"id": "used", "deps": []},
            ]},
        })
    }

    #[test]
    fn a_licence_that_binds_its_users_is_refused_where_it_is_shipped() {
        let table = [
            (json!("MIT"), json!(null), 0),
            (json!("GPL-3.0-only"), json!(null), 1),
            (json!("GPL-3.0-only"), json!("dev"), 1),
            (json!("MPL-2.0"), json!(null), 1),
            (json!("MPL-2.0"), json!("build"), 1),
            (json!("MPL-2.0"), json!("dev"), 0),
            (json!(null), json!("dev"), 1),
        ];
        for (licence, kind, expected) in table {
            let found = refused(&workspace(&licence, &kind));
            assert_eq!(found.len(), expected, "{licence} {kind}: {found:?}");
        }
    }
}
