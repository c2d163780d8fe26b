//! No dead files: every Rust file of a crate is reached through `mod` from a root that cargo compiles.
//!
//! That includes the tests of a crate whose manifest sets `autotests = false`: cargo does not look for them, so an
//! undeclared file would never run.

use std::collections::BTreeSet;

use proc_macro2::Delimiter;
use toml::{Table, Value};

use crate::Finding;
use crate::tokens::{Kind, Token, attribute_at, closing, lex, string_of};
use crate::tree::{SourceFile, Tree};

/// Finds Rust files that are not compiled, under `crates/*/src` and in the directories of `listed_tests`.
pub fn dead_files(tree: &Tree) -> Vec<Finding> {
    let mut alive = BTreeSet::new();
    let roots = roots(tree);
    let mut pending = roots.clone();
    while let Some(path) = pending.pop() {
        if let Some(file) = tree.file(&path)
            && alive.insert(path)
        {
            pending.extend(modules_of(file, roots.contains(&file.path)));
        }
    }
    let listed = listed_tests(tree);
    let sources = tree.with_extension(&["rs"]).filter(|file| {
        file.is_crate_source() || listed.iter().any(|tests| file.path.starts_with(tests))
    });
    let dead = sources.filter(|file| !alive.contains(&file.path));
    let message = "nothing compiles this file: declare it with `mod`, or remove it";
    dead.map(|file| Finding::new(&file.path, 0, message)).collect()
}

/// The root files for cargo: by convention, and by `path` in the manifests.
fn roots(tree: &Tree) -> Vec<String> {
    let by_convention = tree.with_extension(&["rs"]).filter(|file| {
        let inside: Vec<&str> = file.path.splitn(3, '/').collect();
        matches!(inside[..], ["crates", _, rest] if is_root(rest))
    });
    let mut roots: Vec<String> = by_convention.map(|file| file.path.clone()).collect();
    for file in tree.files.iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        let directory = file.path.trim_end_matches("Cargo.toml");
        let manifest: Table = file.text.parse().unwrap_or_default();
        roots.extend(declared_paths(&manifest).iter().map(|path| join(directory, path)));
    }
    roots
}

/// Directories of tests in which cargo compiles only the files that a manifest lists.
fn listed_tests(tree: &Tree) -> Vec<String> {
    let manifests = tree.files.iter().filter(|file| file.path.ends_with("Cargo.toml"));
    let listed = manifests.filter(|file| {
        let manifest: Table = file.text.parse().unwrap_or_default();
        let package = manifest.get("package").and_then(|package| package.get("autotests"));
        package.and_then(Value::as_bool) == Some(false)
    });
    listed.map(|file| format!("{}tests/", file.path.trim_end_matches("Cargo.toml"))).collect()
}

/// Whether a path inside a crate is compiled without a declaration.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(
        parts[..],
        ["src", "lib.rs" | "main.rs"] | ["src", "bin", _] | ["src", "bin", _, "main.rs"]
    )
}

fn declared_paths(manifest: &Table) -> Vec<String> {
    let library = manifest.get("lib").into_iter();
    let lists = ["bin", "test", "bench", "example"];
    let others = lists.iter().filter_map(|key| manifest.get(*key)?.as_array()).flatten();
    let paths = library.chain(others).filter_map(|target| target.get("path"));
    paths.filter_map(Value::as_str).map(String::from).collect()
}

/// Possible paths of the modules that a file declares.
fn modules_of(file: &SourceFile, root: bool) -> Vec<String> {
    let Ok(tokens) = lex(file) else { return Vec::new() };
    let (directory, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let stem = name.trim_end_matches(".rs");
    // The modules of a root and of `mod.rs` are in the same directory, those of `a.rs` in `a/`.
    let children = match root || stem == "mod" {
        true => format!("{directory}/"),
        false => format!("{directory}/{stem}/"),
    };
    let mut found = Vec::new();
    declared(&tokens, &children, &format!("{directory}/"), &mut found);
    found
}

/// Collects the candidates for `mod name;` in `tokens`; `children` is the directory of the module.
fn declared(tokens: &[Token], children: &str, own: &str, found: &mut Vec<String>) {
    let mut path = None;
    let mut index = 0;
    while index < tokens.len() {
        if let Some(attribute) = attribute_at(tokens, index) {
            if attribute.inside.first().is_some_and(|token| token.is_word("path")) {
                path = attribute.inside.get(2).and_then(string_of);
            }
            index = attribute.end;
            continue;
        }
        if let [keyword, Token { kind: Kind::Word(name), .. }, next, ..] = &tokens[index..]
            && keyword.is_word("mod")
        {
            if next.kind == Kind::Open(Delimiter::Brace) {
                let close = closing(tokens, index + 2);
                let inside = &tokens[index + 3..close];
                declared(inside, &format!("{children}{name}/"), own, found);
                index = close;
            } else if let Some(path) = path {
                found.push(join(own, path));
            } else {
                found.push(format!("{children}{name}.rs"));
                found.push(format!("{children}{name}/mod.rs"));
            }
        }
        // A visibility may follow the attribute before `mod`; the end of an item may not.
        if tokens[index].is_punct(';') || matches!(tokens[index].kind, Kind::Close(_)) {
            path = None;
        }
        index += 1;
    }
}

/// Joins a relative path to a directory that ends in `/`, resolving `..`.
fn join(directory: &str, path: &str) -> String {
    crate::links::resolve(directory, path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_tidy;

    #[test]
    fn every_file_in_the_tree_is_compiled() {
        assert_tidy(dead_files(Tree::real()));
    }

    #[test]
    fn a_file_that_no_module_declares_is_dead() {
        let tree = Tree::of(&[
            ("crates/a/Cargo.toml", "[[bin]]\nname = \"c\"\npath = \"src/command.rs\""),
            ("crates/a/src/lib.rs", "pub mod b; // mod dead;\n#[cfg(test)] mod tests;"),
            ("crates/a/src/b.rs", "pub(crate) mod c; mod inner { mod d; }"),
            ("crates/a/src/b/c.rs", "#[path = \"../odd.rs\"] pub mod e;"),
            ("crates/a/src/b/inner/d.rs", ""),
            ("crates/a/src/odd.rs", ""),
            ("crates/a/src/tests/mod.rs", "mod helper;"),
            ("crates/a/src/tests/helper.rs", ""),
            ("crates/a/src/command.rs", ""),
            ("crates/a/src/bin/tool.rs", ""),
            ("crates/a/tests/whole.rs", ""),
            ("crates/a/src/dead.rs", "mod deader;"),
            ("crates/a/src/dead/deader.rs", ""),
        ]);
        let dead: Vec<String> = dead_files(&tree).into_iter().map(|f| f.path).collect();
        assert_eq!(dead, ["crates/a/src/dead.rs", "crates/a/src/dead/deader.rs"]);
    }

    #[test]
    fn a_test_that_cargo_does_not_look_for_is_dead_unless_it_is_declared() {
        let manifest =
            "[package]\nautotests = false\n[[test]]\nname = \"all\"\npath = \"tests/main.rs\"";
        let tree = Tree::of(&[
            ("tests/b/Cargo.toml", manifest),
            ("tests/b/tests/main.rs", "mod first; mod second;"),
            ("tests/b/tests/first.rs", ""),
            ("tests/b/tests/second/mod.rs", "mod inner;"),
            ("tests/b/tests/second/inner.rs", ""),
            ("tests/b/tests/forgotten.rs", ""),
        ]);
        let dead: Vec<String> = dead_files(&tree).into_iter().map(|f| f.path).collect();
        assert_eq!(dead, ["tests/b/tests/forgotten.rs"]);
    }
}
