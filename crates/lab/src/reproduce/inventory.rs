//! `papers/*/inventory.toml`: the contents of each paper, and the items that reproduce them. The tests compare
//! these files with the catalogue, the statements, the tests and the table in `papers/README.md`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::catalogue::ITEMS;
use super::data::{FOLDERS, Folder};
use super::expected::expected;

/// Folders of papers; the remaining folder belongs to a peer.
const PAPERS: [&str; 5] = ["slides2013", "sarwar2013", "kuhn2014", "wallace2014", "alheid2016"];
/// Environment variable that rewrites the table instead of checking it.
const UPDATE: &str = "ROPEWALK_UPDATE_INVENTORY";
const BEGIN: &str = "<!-- inventory: from papers/*/inventory.toml -->\n";
const END: &str = "<!-- end of inventory -->\n";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inventory {
    paper: String,
    printed: Printed,
    #[serde(rename = "entry")]
    entries: Vec<Entry>,
}

/// Number of elements of each kind that the paper numbers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    equations: u32,
    figures: u32,
    tables: u32,
    algorithms: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    kind: Kind,
    /// First and last number, if the paper numbers it.
    numbers: Option<[u32; 2]>,
    /// Its name, if it has no number.
    name: Option<String>,
    says: String,
    #[serde(default)]
    items: Vec<String>,
    #[serde(default)]
    tests: Vec<String>,
    reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Table,
    Figure,
    Equation,
    Algorithm,
    Claim,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Table => "Table",
            Self::Figure => "Figure",
            Self::Equation => "Eq",
            Self::Algorithm => "Algorithm",
            Self::Claim => "Claim",
        }
    }
}

impl Entry {
    fn title(&self) -> String {
        let kind = self.kind.as_str();
        match (self.numbers, &self.name) {
            (Some([from, to]), _) if from == to => format!("{kind} {from}"),
            (Some([from, to]), _) => format!("{kind} {from} to {to}"),
            (None, name) => format!("{kind}: {}", name.as_deref().unwrap_or_default()),
        }
    }

    /// The answering items, as a cell of the table.
    fn answer(&self) -> String {
        let code = |names: &[String]| {
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        let mut parts = Vec::new();
        if !self.items.is_empty() {
            parts.push(code(&self.items));
        }
        if !self.tests.is_empty() {
            parts.push(format!("tests {}", code(&self.tests)));
        }
        parts.extend(self.reason.clone());
        parts.join("; ")
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn folder(paper: &str) -> &'static Folder {
    FOLDERS.iter().find(|folder| folder.name == paper).expect("a folder")
}

fn inventory(paper: &str) -> Inventory {
    let text = folder(paper).file("inventory.toml").expect("an inventory");
    toml::from_str(text).unwrap_or_else(|e| panic!("{paper}: {e}"))
}

fn inventories() -> Vec<Inventory> {
    PAPERS.into_iter().map(inventory).collect()
}

/// The table of `papers/README.md`.
fn table() -> String {
    let mut text = String::new();
    for inventory in inventories() {
        let _ =
            writeln!(text, "\n### `{}`\n\n| in the paper | about | answered by |", inventory.paper);
        text += "| --- | --- | --- |\n";
        for entry in &inventory.entries {
            let _ = writeln!(text, "| {} | {} | {} |", entry.title(), entry.says, entry.answer());
        }
    }
    text + "\n"
}

#[test]
fn every_paper_has_an_inventory_of_its_own() {
    for inventory in inventories() {
        assert!(PAPERS.contains(&inventory.paper.as_str()), "{}", inventory.paper);
        assert_eq!(expected(folder(&inventory.paper)).unwrap().unwrap().paper, inventory.paper);
    }
    let papers: BTreeSet<&str> = ITEMS.iter().map(|item| item.paper).collect();
    let known: BTreeSet<&str> = PAPERS.into_iter().chain(["ns2"]).collect();
    assert_eq!(papers, known);
}

#[test]
fn every_number_of_a_paper_is_listed_once() {
    for inventory in inventories() {
        let printed = &inventory.printed;
        for (kind, count) in [
            (Kind::Equation, printed.equations),
            (Kind::Figure, printed.figures),
            (Kind::Table, printed.tables),
            (Kind::Algorithm, printed.algorithms),
        ] {
            let of_kind = inventory.entries.iter().filter(|entry| entry.kind == kind);
            let ranges = of_kind.filter_map(|entry| entry.numbers);
            let mut listed: Vec<u32> = ranges.flat_map(|[from, to]| from..=to).collect();
            listed.sort_unstable();
            let all: Vec<u32> = (1..=count).collect();
            assert_eq!(listed, all, "{} {kind:?}", inventory.paper);
        }
        let claims = inventory.entries.iter().filter(|entry| entry.kind == Kind::Claim);
        assert!(claims.count() > 0, "{} claims something", inventory.paper);
    }
}

#[test]
fn every_entry_has_one_title_and_an_answer() {
    for inventory in inventories() {
        let mut titles = BTreeSet::new();
        for entry in &inventory.entries {
            let title = entry.title();
            assert!(entry.numbers.is_some() != entry.name.is_some(), "{title}");
            assert!(titles.insert(title.clone()), "{} has {title} twice", inventory.paper);
            let reason = entry.reason.as_deref().is_some_and(|text| text.len() > 20);
            let answered = !entry.items.is_empty() || !entry.tests.is_empty();
            assert!(answered || reason, "{} {title} has no answer", inventory.paper);
        }
    }
}

#[test]
fn items_exist_and_every_item_is_named() {
    for inventory in inventories() {
        let paper = inventory.paper.as_str();
        let statements: BTreeSet<String> = expected(folder(paper))
            .unwrap()
            .unwrap()
            .items
            .iter()
            .map(|entry| format!("{}/{}", entry.group, entry.id))
            .collect();
        let groups: BTreeSet<&str> =
            ITEMS.iter().filter(|item| item.paper == paper).map(|item| item.name).collect();
        let mut named = BTreeSet::new();
        for name in inventory.entries.iter().flat_map(|entry| &entry.items) {
            let group = name.split_once('/').map_or(name.as_str(), |(group, _)| group);
            assert!(groups.contains(group), "{paper} has no item {name}");
            let whole = group == name;
            assert!(whole || statements.contains(name), "{paper} has no statement {name}");
            named.insert(group);
        }
        assert_eq!(named, groups, "{paper}");
    }
}

#[test]
fn the_tests_that_are_named_exist() {
    for entry in inventories().iter().flat_map(|inventory| &inventory.entries) {
        for test in &entry.tests {
            let (file, name) = test.split_once("::").expect("file::test");
            let text = std::fs::read_to_string(root().join(file));
            let text = text.unwrap_or_else(|e| panic!("{file}: {e}"));
            let there = match name {
                "*" => text.contains("#[test]"),
                "tests" => text.contains("mod tests {") && text.contains("#[test]"),
                name => text.contains(&format!("fn {name}(")),
            };
            assert!(there, "{test}");
        }
    }
}

#[test]
fn the_readme_shows_the_inventories() {
    let path = root().join("papers/README.md");
    let text = std::fs::read_to_string(&path).expect("the README");
    let (before, rest) = text.split_once(BEGIN).expect("the beginning of the table");
    let (shown, after) = rest.split_once(END).expect("its end");
    let table = table();
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, [before, BEGIN, &table, END, after].concat()).expect("written");
        return;
    }
    assert_eq!(shown, table, "run this test with {UPDATE}=1 to update the table");
}
