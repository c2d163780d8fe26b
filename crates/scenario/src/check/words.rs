//! Descriptions of kinds of values, and their shapes.

use crate::keys::{Kind, Table};
use crate::suggest;
use crate::tree::{Node, Raw};

/// The section of the file in which a key of this name is valid.
pub(super) fn elsewhere(file: &Table, name: &str) -> Option<&'static str> {
    file.keys().find_map(|section| {
        let table = match section.kind {
            Kind::Table(table) => table,
            Kind::List { of: Kind::Table(table), .. } => table,
            _ => return None,
        };
        table.find(name).map(|_| table.title)
    })
}

/// Whether the shape of `node` is that of `kind`.
pub(super) fn fits(kind: &Kind, node: &Node) -> bool {
    match (&node.raw, kind) {
        (Raw::Text(text), Kind::Quantity { .. }) => begins_like_a_number(text),
        (Raw::Text(text), Kind::Choice(_)) => !begins_like_a_number(text),
        (Raw::Integer(_) | Raw::Float(_), kind) => {
            matches!(kind, Kind::Quantity { .. } | Kind::Number { .. } | Kind::Integer { .. })
        }
        (Raw::Bool(_), kind) => matches!(kind, Kind::Bool),
        (Raw::Table(_), kind) => matches!(kind, Kind::Table(_) | Kind::Tagged(_)),
        _ => false,
    }
}

fn begins_like_a_number(text: &str) -> bool {
    text.trim_start().starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))
}

/// Description of a kind of value.
pub(crate) fn describe(kind: &Kind) -> String {
    match kind {
        Kind::Bool => "`true` or `false`".into(),
        Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
        Kind::Packets { min, max } => format!("a whole number of packets from {min} to {max}"),
        Kind::Number { min, max } => format!("a number from {min} to {max}"),
        Kind::Name => "a name".into(),
        Kind::File => "a file name".into(),
        Kind::Quantity { dimension, also, .. } => {
            let mut units: Vec<_> = dimension.units().iter().map(|u| u.0).collect();
            units.extend(also.iter().map(|e| e.unit()));
            format!("{} in quotes, in {}", dimension.with_article(), suggest::or_list(&units))
        }
        Kind::Choice(choices) => {
            let names: Vec<_> = choices.iter().map(|c| c.name).collect();
            suggest::quoted_or_list(&names)
        }
        Kind::OneOf(kinds) => kinds.iter().map(describe).collect::<Vec<_>>().join("; or "),
        Kind::Table(table) => {
            let names: Vec<_> = table.keys().map(|k| k.name).collect();
            format!("a table with {}", suggest::quoted_or_list(&names))
        }
        Kind::Tagged(tagged) => {
            let names: Vec<_> = tagged.variants.iter().map(|v| v.choice.name).collect();
            format!("a table with `{}` = {}", tagged.tag, suggest::quoted_or_list(&names))
        }
        Kind::List { of, .. } => format!("a list, each entry {}", describe(of)),
    }
}
