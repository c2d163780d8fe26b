//! No import circles: the top-level modules of a crate form an acyclic graph, so that each can be read and tested with
//! only the modules below it.

use std::collections::{BTreeMap, VecDeque};

use proc_macro2::Delimiter;

use crate::Finding;
use crate::tokens::{Kind, Token, closing, lex};
use crate::tree::Tree;

/// Crates whose modules must not import each other in a circle. In the engine, [`crate::arrows`] states the order.
const CRATES: [&str; 9] =
    ["base", "models", "netsim", "scenario", "lab", "runtime", "apps", "cli", "py"];

/// Where a module first uses each other module: path and line.
type Uses = BTreeMap<String, (String, usize)>;

/// Finds import circles between the top-level modules of a crate.
pub fn import_circles(tree: &Tree) -> Vec<Finding> {
    CRATES.iter().flat_map(|name| circles_of(tree, name)).collect()
}

fn circles_of(tree: &Tree, name: &str) -> Vec<Finding> {
    let source = format!("crates/{name}/src/");
    let root = ["lib.rs", "main.rs"].iter().find_map(|file| tree.file(&format!("{source}{file}")));
    let Some(Ok(root)) = root.map(lex) else { return Vec::new() };
    let homes = homes(&root);
    let mut graph: BTreeMap<String, Uses> = BTreeMap::new();
    for file in tree.with_extension(&["rs"]) {
        let Some(inside) = file.path.strip_prefix(&source) else { continue };
        let module = inside.split(['/', '.']).next().unwrap_or_default();
        let Ok(tokens) = lex(file) else { continue };
        let uses = graph.entry(module.to_owned()).or_default();
        for (word, line) in imports(&tokens, depth(inside)) {
            if let Some(home) = homes.get(&word).filter(|home| *home != module) {
                uses.entry(home.clone()).or_insert_with(|| (file.path.clone(), line));
            }
        }
    }
    graph.retain(|module, _| module != "lib" && module != "main");
    graph.keys().filter_map(|module| circle(&graph, module)).collect()
}

/// The module behind each name in the crate's root: the module itself, or the one that a re-export
/// names.
fn homes(root: &[Token]) -> BTreeMap<String, String> {
    let mut homes = BTreeMap::new();
    for (index, token) in root.iter().enumerate() {
        let Some(Kind::Word(name)) = root.get(index + 1).map(|next| &next.kind) else { continue };
        if token.is_word("mod") {
            homes.insert(name.clone(), name.clone());
        } else if token.is_word("use") {
            let words = root[index + 2..].iter().take_while(|token| !token.is_punct(';'));
            for word in words {
                if let Kind::Word(word) = &word.kind {
                    homes.entry(word.clone()).or_insert_with(|| name.clone());
                }
            }
        }
    }
    homes
}

/// How many modules a file is below the crate's root.
fn depth(inside: &str) -> usize {
    let parts = inside.split('/').count();
    if inside.ends_with("/mod.rs") { parts - 1 } else { parts }
}

/// Names that follow the crate's root in paths (`crate::`, or `super::` up to the root), with their lines.
fn imports(tokens: &[Token], depth: usize) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut inline = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        inline.retain(|end| index < *end);
        let token = &tokens[index];
        let opens = tokens.get(index + 2).map(|next| &next.kind);
        if token.is_word("mod") && opens == Some(&Kind::Open(Delimiter::Brace)) {
            inline.push(closing(tokens, index + 2));
        }
        let mut after = index + 1;
        if token.is_word("super") {
            let mut supers = 1;
            while is_path(tokens, after)
                && tokens.get(after + 2).is_some_and(|t| t.is_word("super"))
            {
                supers += 1;
                after += 3;
            }
            if supers == depth + inline.len() {
                first_names(tokens, after, &mut found);
            }
        } else if token.is_word("crate") {
            first_names(tokens, after, &mut found);
        }
        index = after;
    }
    found
}

/// Whether `::` is at `index`.
fn is_path(tokens: &[Token], index: usize) -> bool {
    let colon = |at: usize| tokens.get(at).is_some_and(|token| token.is_punct(':'));
    colon(index) && colon(index + 1)
}

/// Collects the name, or the names in braces, that follow the `::` at `index`.
fn first_names(tokens: &[Token], index: usize, found: &mut Vec<(String, usize)>) {
    if !is_path(tokens, index) {
        return;
    }
    let Some(next) = tokens.get(index + 2) else { return };
    match &next.kind {
        Kind::Word(name) => found.push((name.clone(), next.line)),
        Kind::Open(Delimiter::Brace) => {
            let (mut level, mut begins) = (0_usize, true);
            for token in &tokens[index + 3..closing(tokens, index + 2)] {
                match &token.kind {
                    Kind::Open(_) => level += 1,
                    Kind::Close(_) => level -= 1,
                    Kind::Word(name) if level == 0 && begins => {
                        found.push((name.clone(), token.line));
                    }
                    _ => {}
                }
                begins = level == 0 && token.is_punct(',');
            }
        }
        _ => {}
    }
}

/// The shortest circle that begins and ends at `start`. Reported for the first of its modules only.
fn circle(graph: &BTreeMap<String, Uses>, start: &str) -> Option<Finding> {
    let mut pending = VecDeque::from([vec![start]]);
    let mut known: Vec<&String> = Vec::new();
    while let Some(path) = pending.pop_front() {
        let uses = graph.get(*path.last()?)?;
        if uses.contains_key(start) {
            if path.iter().any(|module| *module < start) {
                return None;
            }
            let next = path.get(1).copied().unwrap_or(start);
            let (file, line) = &graph[start][next];
            let shown = path.iter().chain([&start]).copied().collect::<Vec<_>>().join(" -> ");
            let message = format!("import circle {shown}: move what both sides need below them");
            return Some(Finding::new(file, *line, message));
        }
        for used in uses.keys().filter(|used| graph.contains_key(*used)) {
            if !known.contains(&used) {
                known.push(used);
                pending.push_back(path.iter().copied().chain([used.as_str()]).collect());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_tidy;

    #[test]
    fn no_module_of_the_listed_crates_imports_itself_by_way_of_others() {
        for name in CRATES {
            assert!(Tree::real().paths.contains(&format!("crates/{name}/src")), "{name}");
        }
        assert_tidy(import_circles(Tree::real()));
    }

    #[test]
    fn circles_are_found_however_the_import_is_written() {
        let root = "mod a;\npub mod b;\nmod c;\npub use c::{Thing, Other};";
        let table = [
            ("use crate::b::X;", "fn f() { crate::c::g() }", "", 0),
            ("use crate::b::X;", "fn f() { crate::a::g() }", "", 1),
            ("use super::b;", "use crate::{c, a::{X, c}};", "", 1),
            ("use super::b;", "use crate::Thing;", "use super::a;", 1),
            ("mod tests { use super::super::b; }", "use super::a;", "", 1),
            ("mod tests { use super::b; }", "use super::a;", "", 0),
            ("// crate::b", "use super::a; const S: &str = \"crate::a\";", "use crate::a;", 0),
        ];
        for (a, b, c, expected) in table {
            let files = [
                ("crates/lab/src/lib.rs", root),
                ("crates/lab/src/a.rs", a),
                ("crates/lab/src/b/mod.rs", b),
                ("crates/lab/src/c.rs", c),
            ];
            let found = import_circles(&Tree::of(&files));
            assert_eq!(found.len(), expected, "{a} {b} {c}: {found:?}");
        }
    }

    #[test]
    fn a_file_in_a_folder_belongs_to_the_module_of_the_folder() {
        let files = [
            ("crates/lab/src/lib.rs", "mod a; mod b;"),
            ("crates/lab/src/a/mod.rs", "mod deep;"),
            ("crates/lab/src/a/deep.rs", "use super::super::b::X;\nuse super::Y;"),
            ("crates/lab/src/b.rs", "use crate::a::Z;"),
        ];
        let found = import_circles(&Tree::of(&files));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].path.as_str(), found[0].line), ("crates/lab/src/a/deep.rs", 1));
    }
}
