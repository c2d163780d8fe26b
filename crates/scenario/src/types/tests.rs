use super::*;
use crate::check::Checker;
use crate::keys::{Fallback, Tagged, Variant};
use crate::tree::{Source, parse_value};

/// Calls `look` with every key and its table.
fn each_key(look: &mut dyn FnMut(&Table, &'static Key)) {
    fn inside(kind: &'static Kind, look: &mut dyn FnMut(&Table, &'static Key)) {
        match kind {
            Kind::Table(table) => each(table, look),
            Kind::Tagged(tagged) => {
                tagged.variants.iter().for_each(|v| each(&tagged.table(v), look))
            }
            Kind::List { of, .. } => inside(of, look),
            Kind::OneOf(kinds) => kinds.iter().for_each(|kind| inside(kind, look)),
            _ => {}
        }
    }
    fn each(table: &Table, look: &mut dyn FnMut(&Table, &'static Key)) {
        for key in table.keys() {
            look(table, key);
            inside(&key.kind, look);
        }
    }
    each(&ROOT, look);
}

#[test]
fn every_default_and_every_example_is_valid_for_its_key() {
    let mut count = 0;
    each_key(&mut |table, key| {
        let title = table.title;
        if let Fallback::Is(text) = key.default {
            assert!(crate::check::default_value(&key.kind, text).is_some(), "{title} {}", key.name);
        }
        if key.example.is_empty() {
            return;
        }
        let sources = [Source::new("example".into(), key.example.into())];
        let node = parse_value(key.example, 0, 0).unwrap_or_else(|| panic!("{}", key.example));
        let mut checker = Checker::new(ROOT, &sources);
        let value = checker.value(&key.kind, &node, key.name);
        assert!(value.is_some(), "{title} {}: {:?}", key.name, checker.finish());
        count += 1;
    });
    assert!(count > 100, "only {count} keys were looked at");
}

#[test]
fn every_key_says_what_it_does_in_whole_sentences() {
    each_key(&mut |table, key| {
        let title = table.title;
        assert!(key.doc.ends_with('.'), "{title} {}: {:?}", key.name, key.doc);
        assert!(!key.doc.contains("  "), "{title} {}: {:?}", key.name, key.doc);
    });
}

#[test]
fn no_table_has_a_key_twice_and_exclusions_name_real_keys() {
    each_key(&mut |table, key| {
        let same = table.keys().filter(|other| other.name == key.name).count();
        assert_eq!(same, 1, "{} {}", table.title, key.name);
        for name in table.exclusive.iter().flat_map(|e| e.ways).copied().flatten() {
            assert!(table.find(name).is_some(), "{} {name}", table.title);
        }
    });
}

/// Additional requirements of an example: the key, lines for the same table, and lines for
/// `[transfer]`.
const COMPANIONS: &[(&str, &str, &str)] = &[
    ("receive_buffer_max", "", "protocol = 'tcp'\npreset = 'linux-6'"),
    ("delay_up", "delay_down = '1 ms'", ""),
    ("delay_down", "delay_up = '1 ms'", ""),
    ("window_manager", "", "[[path]]\nwindow_limit = 9\n"),
    ("recovery", "", "protocol = 'tcp'"),
    ("ack_burst_loss", "", "protocol = 'tcp'\npreset = 'chihani2011'"),
    ("ack_burst_loss_max", "", "protocol = 'tcp'\npreset = 'chihani2011'"),
    ("data_waits", "", "protocol = 'tcp'\npreset = 'chihani2011'"),
    ("copies", "", "[[path]]\n"),
    ("cap", "", "[[path]]\n[[flow]]\nname = 'a'\nkind = 'ping'\n"),
];

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml").unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// A file with `lines` in the section of `section`; without them if they are empty.
fn file(section: &Key, lines: &str, transfer: &str) -> String {
    let (path, transfer) = match transfer.split_once("[[path]]") {
        Some((_, rest)) => (format!("[[path]]{rest}"), ""),
        None => (String::new(), transfer),
    };
    let link = "[[link]]\nname = 'bottleneck'\n";
    let limit = if path.contains("window_limit") { "window_limit = 9\n" } else { "" };
    match section.name {
        "path" => format!("[transfer]\n{transfer}\n[[path]]\n{lines}\n{path}{link}"),
        "link" if lines.starts_with("name") => format!("[[path]]\n[[link]]\n{lines}\n"),
        "link" => format!("[[path]]\nvia = ['link1']\n[[link]]\n{lines}\n"),
        "transfer" => format!("[transfer]\n{transfer}\n{lines}\n[[path]]\n{limit}{path}{link}"),
        "cross" | "station" | "flow" => format!("[[path]]\n{link}[[{}]]\n{lines}\n", section.name),
        "source" if lines.starts_with("name") => format!("[[path]]\n[[source]]\n{lines}\n"),
        "source" => format!("[[path]]\n[[source]]\nname = 'a'\n{lines}\n"),
        "tunnel" => format!("[[path]]\n[tunnel]\n{lines}\n[[flow]]\nname = 'a'\nkind = 'ping'\n"),
        name => format!("[transfer]\n{transfer}\n[{name}]\n{lines}\n[[path]]\n{limit}{path}{link}"),
    }
}

/// Asserts that the written text parses to an equal scenario.
fn round_trip(scenario: &Scenario) -> String {
    let written = scenario.to_toml();
    assert_eq!(&parse(&written), scenario, "{written}");
    written
}

fn has_key(written: &str, key: &str) -> bool {
    written.lines().any(|line| line.starts_with(&format!("{key} = ")))
}

#[test]
fn every_key_of_a_section_is_read_and_written() {
    let mut count = 0;
    for section in ROOT.keys() {
        let (Kind::Table(table) | Kind::List { of: Kind::Table(table), .. }) = &section.kind else {
            continue;
        };
        for key in table.keys().filter(|key| !matches!(key.kind, Kind::File)) {
            let companion = COMPANIONS.iter().find(|(name, ..)| *name == key.name);
            let (beside, transfer) = companion.map_or(("", ""), |(_, beside, more)| (beside, more));
            let line = format!("{} = {}\n{beside}", key.name, key.example);
            let without = round_trip(&parse(&file(section, "", transfer)));
            let with = round_trip(&parse(&file(section, &line, transfer)));
            // An example equal to the default changes nothing.
            let same = match key.default {
                Fallback::Is(default) => default == key.example.trim_matches('"'),
                _ => has_key(&without, key.name),
            };
            let seen = with != without || same;
            assert!(seen, "{} {} has no effect:\n{with}", table.title, key.name);
            count += 1;
        }
    }
    assert!(count > 90, "only {count} keys were tried");
}

#[test]
fn every_variant_is_read_and_written_with_all_its_keys() {
    // The canonical text has a short form for these.
    const SHORT: [&str; 2] = ["droptail", "bernoulli"];
    fn kinds(kind: &'static Kind, section: &Key, key: &str) -> usize {
        match kind {
            Kind::OneOf(kinds_of) => kinds_of.iter().map(|kind| kinds(kind, section, key)).sum(),
            Kind::List { of, .. } => kinds(of, section, key),
            Kind::Table(table) => table.keys().map(|k| kinds(&k.kind, section, k.name)).sum(),
            Kind::Tagged(tagged) => {
                tagged.variants.iter().map(|v| each(tagged, v, section, key)).sum()
            }
            _ => 0,
        }
    }
    fn each(tagged: &Tagged, variant: &Variant, section: &Key, key: &str) -> usize {
        let name = variant.choice.name;
        let table = tagged.table(variant);
        let keys: Vec<_> = table.keys().filter(|key| !matches!(key.kind, Kind::File)).collect();
        let mut lines = vec![format!("{} = \"{name}\"", tagged.tag)];
        lines.extend(keys.iter().map(|key| format!("{} = {}", key.name, key.example)));
        let lines = match key {
            "" => lines.join("\n"),
            key => format!("{key} = {{ {} }}", lines.join(", ")),
        };
        let scenario = parse(&file(section, &lines, ""));
        let written = round_trip(&scenario);
        if !SHORT.contains(&name) {
            assert!(written.contains(&format!("{} = \"{name}\"", tagged.tag)), "{written}");
            for key in keys {
                assert!(written.contains(&format!("{} = ", key.name)), "{name} {}", key.name);
            }
        }
        1
    }
    let count: usize = ROOT.keys().map(|section| kinds(&section.kind, section, "")).sum();
    assert!(count > 20, "only {count} variants were tried");
}
