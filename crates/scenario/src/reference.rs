//! The reference page of the scenario file.

use std::fmt::Write;

use crate::choice::Choice;
use crate::keys::{Fallback, Key, Kind, Table, Tagged};
use crate::quantity::{Dimension, base_text};
use crate::suggest;
use crate::types::ROOT;

/// The reference page in Markdown, generated from the table of keys. It lists every key with its kind of
/// value, its default and its description.
pub fn reference_markdown() -> String {
    let mut page = String::from(HEAD);
    for dimension in Dimension::ALL {
        let name = dimension.with_article();
        let units = dimension.unit_list();
        line(&mut page, &format!("* {name}: {units}", name = capital(name)));
    }
    page.push_str(AFTER_UNITS);
    for section in ROOT.keys() {
        match &section.kind {
            Kind::Table(table) | Kind::List { of: Kind::Table(table), .. } => {
                heading(&mut page, 2, table.title, table.doc);
                keys(&mut page, table);
            }
            Kind::List { of: Kind::Tagged(tagged), .. } => {
                heading(&mut page, 2, &format!("[[{}]]", section.name), tagged.doc);
                self::tagged(&mut page, tagged);
            }
            other => unreachable!("{other:?} as a section"),
        }
    }
    page
}

const HEAD: &str = "\
# The scenario file

<!-- Generated from the table of keys; regenerate with
     UPDATE_REFERENCE=1 cargo test -p ropewalk-scenario --test all reference -->

A scenario is a TOML file. The smallest one is a single line, `[[path]]`: every key has a default, apart from
those marked *required*. An unknown key, a wrong unit or an impossible value is an error that shows
the line, and nothing runs.

Editors that know JSON Schema can check a scenario as it is written: see
[scenario.schema.json](scenario.schema.json).

## Units

A quantity is a number and a unit in quotes: `\"20 ms\"`. The number is read exactly; there is no
rounding on the way. A number without a unit is an error, except for probabilities, shares and
counts, which have none.

";

const AFTER_UNITS: &str = "
kB is 1000 bytes, KiB is 1024; rates in B/s are bytes, in bit/s bits. Buffers also take `packets`,
each of `transfer.packet` bytes; queues also take `BDP`, the rate times the round trip.

## Overrides

`--set key=value` changes a key before the file is checked. Dots lead into tables, a path or link is
found by its name or by its position from 0:

```
--set transfer.scheduler=round-robin --set path.lte.rtt=40ms --set path[1].loss=0.01
```

The value is TOML, or text without its quotes. An override wins over keys of the file that exclude its
own: setting `rtt` takes `delay` away.
";

fn line(page: &mut String, text: &str) {
    page.push_str(text);
    page.push('\n');
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

fn heading(page: &mut String, level: usize, title: &str, doc: &str) {
    let gap = if page.ends_with("\n\n") { "" } else { "\n" };
    line(page, &format!("{gap}{} `{title}`\n", "#".repeat(level)));
    if !doc.is_empty() {
        line(page, &format!("{doc}\n"));
    }
}

/// Writes the keys of a table, then the tables inside it.
fn keys(page: &mut String, table: &Table) {
    line(page, "| key | takes | default | what it does |");
    line(page, "| --- | --- | --- | --- |");
    for key in table.keys() {
        let default = match key.default {
            Fallback::Required => "*required*".into(),
            Fallback::Is(text) => format!("`{}`", as_written(key, text)),
            Fallback::Empty => "none".into(),
            Fallback::Derived(prose) => prose.into(),
        };
        let example = match key.example {
            "" => String::new(),
            example => format!(" Example: `{example}`."),
        };
        let takes = takes(&key.kind);
        line(page, &format!("| `{}` | {takes} | {default} | {}{example} |", key.name, key.doc));
    }
    for exclusive in table.exclusive {
        let ways: Vec<_> = exclusive
            .ways
            .iter()
            .map(|way| way.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(" with "))
            .collect();
        let ways: Vec<_> = ways.iter().map(String::as_str).collect();
        line(page, &format!("\nOnly one of: {}.", suggest::or_list(&ways)));
    }
    for key in table.keys() {
        names(page, key);
    }
    for key in table.keys() {
        inner(page, &key.kind, key.name);
    }
}

/// A default in the syntax of the file.
fn as_written(key: &Key, text: &str) -> String {
    let bare = text.parse::<f64>().is_ok() || matches!(key.kind, Kind::Bool);
    if bare { text.into() } else { format!("\"{text}\"") }
}

/// Writes the choices of a key, with their meanings.
fn names(page: &mut String, key: &Key) {
    let choices: Vec<&Choice> = match &key.kind {
        Kind::Choice(choices) => choices.iter().collect(),
        Kind::OneOf(kinds) => kinds.iter().flat_map(named).collect(),
        _ => return,
    };
    if choices.is_empty() {
        return;
    }
    let mut list = format!("\n`{}` by name:\n\n", key.name);
    for choice in choices {
        line(&mut list, &format!("* `{}`: {}", choice.name, choice.doc));
    }
    // Variants share keys, so their choices are written only once.
    if !page.contains(&list) {
        page.push_str(&list);
    }
}

fn named(kind: &Kind) -> &'static [Choice] {
    match kind {
        Kind::Choice(choices) => choices,
        _ => &[],
    }
}

/// Writes the tables that a value may be. Keys shared by paths and links are described with the paths.
fn inner(page: &mut String, kind: &Kind, key: &str) {
    let described_before = page.contains(&format!("\n### `{key} ="))
        || page.contains(&format!("\n### `{} =", key.trim_end_matches("_down")));
    if described_before {
        return;
    }
    match kind {
        Kind::Table(table) | Kind::List { of: Kind::Table(table), .. } => {
            heading(page, 3, table.title, table.doc);
            keys(page, table);
        }
        Kind::Tagged(tagged) => self::tagged(page, tagged),
        Kind::OneOf(kinds) => kinds.iter().for_each(|kind| inner(page, kind, key)),
        _ => {}
    }
}

fn tagged(page: &mut String, tagged: &Tagged) {
    for variant in tagged.variants {
        let default =
            if tagged.default == Some(variant.choice.name) { " The default." } else { "" };
        let doc = format!("{}{default} {}", variant.choice.doc, variant.doc);
        heading(page, 3, &tagged.title(variant), doc.trim_end());
        keys(page, &tagged.table(variant));
    }
}

/// Short description of the kind of value.
fn takes(kind: &Kind) -> String {
    match kind {
        Kind::Bool => "`true`, `false`".into(),
        Kind::Integer { min, max } => format!("whole number, {min} to {max}"),
        Kind::Packets { min, max } => format!("packets, {min} to {max}"),
        Kind::Number { min, max } => format!("number, {min} to {max}"),
        Kind::Name => "name".into(),
        Kind::File => "file name".into(),
        Kind::Quantity { dimension, min, max, also } => {
            let name = dimension.with_article().trim_start_matches("a ");
            let least = base_text(*dimension, *min);
            let mut text = format!("{name}, {least} to {}", base_text(*dimension, *max));
            for extra in *also {
                write!(text, ", or `{}`", extra.unit()).expect("a string takes everything");
            }
            text
        }
        Kind::Choice(_) => "name, see below".into(),
        Kind::OneOf(kinds) => kinds.iter().map(takes).collect::<Vec<_>>().join("; or "),
        Kind::Table(_) | Kind::Tagged(_) => "table".into(),
        Kind::List { of, max, .. } => format!("list of up to {max}: {}", takes(of)),
    }
}
