//! Overrides of the form `key=value`, applied before a file is checked.

use crate::error::{Problem, ProblemKind};
use crate::keys::{Kind, Table};
use crate::suggest;
use crate::tree::{Alias, Node, Pair, Raw, Source, Span, parse_value};
use crate::types::ROOT;

/// An override of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Override<'a> {
    /// Origin of the override in messages, for example `--set`.
    pub option: &'a str,
    /// `key=value`: `transfer.scheduler=daps`, `path.lte.rtt=40ms`, `path[1].loss=0.01` (positions count from
    /// 0). The value is TOML, or text without quotes. It replaces keys that exclude its own: setting `rtt`
    /// removes `delay`.
    pub change: &'a str,
}

/// One part of a dotted key.
struct Segment<'a> {
    text: &'a str,
    /// The index in brackets.
    index: Option<usize>,
    span: Span,
}

/// Applies the override from source number `source`, of the form `key=value`, to `root`. Returns its
/// alias for an item of a list.
pub(crate) fn apply(
    root: &mut Node,
    sources: &[Source],
    source: usize,
) -> Result<Option<Alias>, Box<Problem>> {
    let text = &sources[source].text;
    let Some(equals) = text.find('=') else {
        let message = format!("`{text}` is not of the form key=value");
        let help = "for example transfer.scheduler=daps, path.lte.rtt=40ms or path[1].loss=0.01";
        let span = Span::new(source, 0..text.len());
        let kind = ProblemKind::Syntax;
        return Err(Box::new(Problem::at(sources, &span, kind, "", message, help.into())));
    };
    let segments = split(&text[..equals], source)
        .map_err(|(span, message)| key_problem(sources, &span, message, KEY_FORM.into()))?;
    let value = value(text, source, equals + 1);
    let alias = alias(root, &segments);
    descend(root, &ROOT, &segments, value, sources)?;
    // A scheduler can be given by either of two keys; overriding one removes the other.
    match segments.iter().map(|s| s.text).collect::<Vec<_>>()[..] {
        ["transfer", "scheduler"] => remove(root, "scheduler", "name"),
        ["scheduler", "name"] => remove(root, "transfer", "scheduler"),
        _ => {}
    }
    Ok(alias)
}

/// The alias of an item of a list, such as `path.lte` for `path[1]`, if the key begins with the
/// item's name.
fn alias(root: &Node, segments: &[Segment<'_>]) -> Option<Alias> {
    let [Segment { text: list, index: None, .. }, Segment { text: name, .. }, ..] = segments else {
        return None;
    };
    let Raw::Table(pairs) = &root.raw else { return None };
    let Raw::List(items) = &pairs.iter().find(|p| p.key == *list)?.node.raw else { return None };
    let at = items.iter().position(|item| item_name(item) == Some(name))?;
    Some(Alias { position: format!("{list}[{at}]"), typed: format!("{list}.{name}") })
}

/// Removes `key` from the table `table`, if both exist.
fn remove(root: &mut Node, table: &str, key: &str) {
    let Raw::Table(tables) = &mut root.raw else { return };
    for pair in tables.iter_mut().filter(|p| p.key == table) {
        if let Raw::Table(pairs) = &mut pair.node.raw {
            pairs.retain(|p| p.key != key);
        }
    }
}

const KEY_FORM: &str = "a key is names with dots in between, and a position from 0 in brackets: \
                        transfer.seed, path.lte.rtt, path[1].loss";

fn key_problem(sources: &[Source], span: &Span, message: String, help: String) -> Box<Problem> {
    Box::new(Problem::at(sources, span, ProblemKind::UnknownKey, "", message, help))
}

/// Parses the value as TOML, or else takes it as text without quotes.
fn value(text: &str, source: usize, start: usize) -> Node {
    let raw = &text[start..];
    let lead = raw.len() - raw.trim_start().len();
    let trimmed = raw.trim();
    match parse_value(trimmed, source, start + lead) {
        Some(node) if !matches!(node.raw, Raw::Datetime) => node,
        _ => Node {
            raw: Raw::Text(trimmed.into()),
            span: Span::new(source, start + lead..start + lead + trimmed.len()),
        },
    }
}

fn split(key: &str, source: usize) -> Result<Vec<Segment<'_>>, (Span, String)> {
    let mut segments = Vec::new();
    let mut start = 0;
    for piece in key.split('.') {
        let lead = piece.len() - piece.trim_start().len();
        let trimmed = piece.trim();
        let span = Span::new(source, start + lead..start + lead + trimmed.len());
        start += piece.len() + 1;
        let (text, index) = match trimmed.split_once('[') {
            None => (trimmed, None),
            Some((text, rest)) => {
                let index = rest.strip_suffix(']').and_then(|digits| digits.parse().ok());
                let error =
                    || (span.clone(), format!("`{trimmed}` has no position in its brackets"));
                (text, Some(index.ok_or_else(error)?))
            }
        };
        let text = text.trim_matches('"');
        if text.is_empty() {
            return Err((span, format!("`{}` has an empty name", key.trim())));
        }
        segments.push(Segment { text, index, span });
    }
    Ok(segments)
}

/// Follows `segments` from `node`, which is described by `table`, and stores `value` there.
fn descend(
    node: &mut Node,
    table: &Table,
    segments: &[Segment<'_>],
    value: Node,
    sources: &[Source],
) -> Result<(), Box<Problem>> {
    let [head, rest @ ..] = segments else { unreachable!("a key has at least one name") };
    let Raw::Table(pairs) = &mut node.raw else {
        let message = format!("`{}` cannot be set inside of {}", head.text, node.shape());
        return Err(key_problem(sources, &head.span, message, String::new()));
    };
    let kind = kind_of(table, head.text);
    if rest.is_empty() && head.index.is_none() {
        remove_rivals(pairs, table, head.text);
        put(pairs, head, value);
        return Ok(());
    }
    match kind {
        Some(Kind::List { of, .. }) => {
            let (item, rest) = find_item(pairs, head, rest, sources)?;
            if rest.is_empty() {
                item.raw = value.raw;
                item.span = value.span;
                return Ok(());
            }
            let inner = inner_table(of, item);
            descend(item, &inner, rest, value, sources)
        }
        Some(Kind::Table(_) | Kind::Tagged(_) | Kind::OneOf(_)) if head.index.is_none() => {
            let at = child(pairs, head);
            // A table replaces a plain value: `path.lte.loss.model=...`.
            if !matches!(pairs[at].node.raw, Raw::Table(_)) {
                pairs[at].node = empty_table(&head.span);
            }
            let kind = kind.unwrap_or(Kind::Bool);
            let inner = inner_table(&kind, &pairs[at].node);
            descend(&mut pairs[at].node, &inner, rest, value, sources)
        }
        _ => Err(not_inside(table, head, kind.is_some(), sources)),
    }
}

fn kind_of(table: &Table, name: &str) -> Option<Kind> {
    table.find(name).map(|(_, key)| key.kind)
}

fn not_inside(table: &Table, head: &Segment<'_>, known: bool, sources: &[Source]) -> Box<Problem> {
    let names: Vec<_> = table.keys().map(|k| k.name).collect();
    if known {
        let message = format!("`{}` is a value, not a table or list", head.text);
        return key_problem(sources, &head.span, message, KEY_FORM.into());
    }
    let valid = format!("valid: {}", suggest::quoted_or_list(&names));
    let help = suggest::hint(head.text, &names, valid);
    key_problem(sources, &head.span, format!("there is no `{}`", head.text), help)
}

/// The table that describes the keys of `node`, as far as it is known. A table without a matching key is
/// harmless, because the complete result is checked later.
fn inner_table(kind: &Kind, node: &Node) -> Table {
    const NO_KEYS: Table = Table::new("", "", &[]);
    match kind {
        Kind::Table(table) => **table,
        Kind::Tagged(tagged) => {
            let name = match &node.raw {
                Raw::Table(pairs) => pairs.iter().find(|p| p.key == tagged.tag),
                _ => None,
            };
            let named = name.and_then(|pair| match &pair.node.raw {
                Raw::Text(text) => tagged.variants.iter().find(|v| v.choice.name == text),
                _ => None,
            });
            named.map_or(NO_KEYS, |variant| tagged.table(variant))
        }
        Kind::OneOf(kinds) => kinds
            .iter()
            .find(|k| matches!(k, Kind::Table(_) | Kind::Tagged(_)))
            .map_or(NO_KEYS, |k| inner_table(k, node)),
        _ => NO_KEYS,
    }
}

fn empty_table(span: &Span) -> Node {
    Node { raw: Raw::Table(Vec::new()), span: span.clone() }
}

/// Index of the child `head`, which is added if it does not exist.
fn child(pairs: &mut Vec<Pair>, head: &Segment<'_>) -> usize {
    pairs.iter().position(|p| p.key == head.text).unwrap_or_else(|| {
        let (key, key_span) = (head.text.to_owned(), head.span.clone());
        pairs.push(Pair { key, key_span, node: empty_table(&head.span) });
        pairs.len() - 1
    })
}

fn put(pairs: &mut Vec<Pair>, head: &Segment<'_>, value: Node) {
    pairs.retain(|p| p.key != head.text);
    pairs.push(Pair { key: head.text.into(), key_span: head.span.clone(), node: value });
}

/// Removes keys that exclude `name`, for example `delay` for `rtt`: the override has priority over the file.
fn remove_rivals(pairs: &mut Vec<Pair>, table: &Table, name: &str) {
    for exclusive in table.exclusive {
        if exclusive.ways.iter().any(|way| way.contains(&name)) {
            let rival = |key: &str| {
                exclusive.ways.iter().any(|way| way.contains(&key) && !way.contains(&name))
            };
            pairs.retain(|p| !rival(&p.key));
        }
    }
}

/// The item of a list that `path[1]` or `path.lte` refers to, and the segments after it.
fn find_item<'n, 's, 't>(
    pairs: &'n mut [Pair],
    head: &Segment<'_>,
    rest: &'s [Segment<'t>],
    sources: &[Source],
) -> Result<(&'n mut Node, &'s [Segment<'t>]), Box<Problem>> {
    let mut none = Vec::new();
    let items = match pairs.iter_mut().find(|p| p.key == head.text) {
        Some(Pair { node: Node { raw: Raw::List(items), .. }, .. }) => items,
        _ => &mut none,
    };
    let names: Vec<_> = items.iter().map(item_name).collect();
    let found = match (head.index, rest) {
        (Some(i), _) => Some(i).filter(|i| *i < names.len()),
        (None, [name, ..]) => names.iter().position(|n| *n == Some(name.text)),
        (None, []) => unreachable!("a list without position or name is set as a whole"),
    };
    let Some(found) = found else {
        let listed: Vec<_> = (0..names.len())
            .map(|i| match names[i] {
                Some(name) => format!("{}[{i}] ({name})", head.text),
                None => format!("{}[{i}]", head.text),
            })
            .collect();
        let (span, wanted) = match (head.index, rest) {
            (None, [name, ..]) => (&name.span, format!("{}.{}", head.text, name.text)),
            _ => (&head.span, format!("{}[{}]", head.text, head.index.unwrap_or(0))),
        };
        let help = match listed.is_empty() {
            true => format!("the file has no [[{}]]", head.text),
            false => format!("the file has {}", listed.join(", ")),
        };
        return Err(key_problem(sources, span, format!("there is no `{wanted}`"), help));
    };
    let rest = if head.index.is_some() { rest } else { &rest[1..] };
    match pairs.iter_mut().find(|p| p.key == head.text).map(|p| &mut p.node.raw) {
        Some(Raw::List(items)) => Ok((&mut items[found], rest)),
        _ => unreachable!("the item was found in a list"),
    }
}

fn item_name(item: &Node) -> Option<&str> {
    let Raw::Table(pairs) = &item.raw else { return None };
    pairs.iter().find(|p| p.key == "name").and_then(|p| match &p.node.raw {
        Raw::Text(name) => Some(name.as_str()),
        _ => None,
    })
}
