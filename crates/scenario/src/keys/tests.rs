use super::*;
use crate::check::Checker;
use crate::tree::{Source, parse_value};
use crate::types::ROOT;

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
        let mut checker = Checker::new(&sources);
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
