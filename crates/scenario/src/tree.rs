//! An owned TOML tree with source positions, to which overrides can be applied.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::error::{Problem, ProblemKind};

/// A source of values: the file, or one override.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// A file name, or `--set ...`.
    pub(crate) name: String,
    pub(crate) text: String,
    /// Replacement of `path[1]` by `path.lte` in problems, if the override used a name.
    pub(crate) alias: Option<Alias>,
}

/// Two names of an item of a list.
#[derive(Clone, Debug)]
pub(crate) struct Alias {
    /// The name by position, used elsewhere.
    pub(crate) position: String,
    /// The name as typed.
    pub(crate) typed: String,
}

impl Source {
    pub(crate) const fn new(name: String, text: String) -> Self {
        Self { name, text, alias: None }
    }

    /// Replaces the name of a key in `text` by the one that was typed.
    fn as_typed(&self, text: String) -> String {
        match &self.alias {
            Some(alias) => text.replace(&alias.position, &alias.typed),
            None => text,
        }
    }
}

/// A range within a source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) source: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    pub(crate) fn new(source: usize, range: Range<usize>) -> Self {
        Self { source, start: range.start, end: range.end }
    }
}

/// A value with its position.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) raw: Raw,
    pub(crate) span: Span,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(crate) enum Raw {
    Text(String),
    /// An integer; `None` if it exceeds 64 bits.
    Integer(Option<i64>),
    Float(f64),
    Bool(bool),
    Datetime,
    List(Vec<Node>),
    /// The pairs in the order of the file.
    Table(Vec<Pair>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) node: Node,
}

/// Parses the text of source number `source` as a document.
pub(crate) fn parse(sources: &[Source], source: usize) -> Result<Node, Box<Problem>> {
    let text = &sources[source].text;
    match DeTable::parse(text) {
        Ok(table) => {
            let span = Span::new(source, table.span());
            Ok(Node { raw: table_raw(table.into_inner(), source), span })
        }
        Err(error) => {
            let range = error.span().unwrap_or(0..0);
            let message = format!("this is not valid TOML: {}", error.message());
            let span = Span::new(source, range);
            let help = "text stands in quotes, tables in brackets: `key = \"value\"`, `[table]`";
            let kind = ProblemKind::Syntax;
            Err(Box::new(Problem::at(sources, &span, kind, "", message, help.into())))
        }
    }
}

/// Parses `text`, which is at `offset` of source number `source`, as one value.
pub(crate) fn parse_value(text: &str, source: usize, offset: usize) -> Option<Node> {
    let value = DeValue::parse(text).ok()?;
    let mut node = node(value, source);
    shift(&mut node, offset);
    Some(node)
}

fn shift(node: &mut Node, by: usize) {
    let shift_span = |span: &mut Span| {
        span.start += by;
        span.end += by;
    };
    shift_span(&mut node.span);
    match &mut node.raw {
        Raw::List(items) => items.iter_mut().for_each(|item| shift(item, by)),
        Raw::Table(pairs) => {
            for pair in pairs {
                shift_span(&mut pair.key_span);
                shift(&mut pair.node, by);
            }
        }
        _ => {}
    }
}

fn node(value: Spanned<DeValue<'_>>, source: usize) -> Node {
    let span = Span::new(source, value.span());
    let raw = match value.into_inner() {
        DeValue::String(text) => Raw::Text(text.into_owned()),
        DeValue::Integer(i) => Raw::Integer(i64::from_str_radix(i.as_str(), i.radix()).ok()),
        // A float that does not parse exceeds the range of a double, so infinity represents it.
        DeValue::Float(f) => Raw::Float(f.as_str().parse().unwrap_or(f64::INFINITY)),
        DeValue::Boolean(b) => Raw::Bool(b),
        DeValue::Datetime(_) => Raw::Datetime,
        DeValue::Array(items) => list_raw(items, source),
        DeValue::Table(table) => table_raw(table, source),
    };
    Node { raw, span }
}

fn list_raw(items: DeArray<'_>, source: usize) -> Raw {
    Raw::List(items.into_iter().map(|item| node(item, source)).collect())
}

fn table_raw(table: DeTable<'_>, source: usize) -> Raw {
    let mut pairs: Vec<_> = table
        .into_iter()
        .map(|(key, value)| Pair {
            key_span: Span::new(source, key.span()),
            key: key.into_inner().into_owned(),
            node: node(value, source),
        })
        .collect();
    pairs.sort_by_key(|pair| pair.key_span.start);
    Raw::Table(pairs)
}

impl Node {
    /// The source text of the value, for messages; long texts are cut.
    pub(crate) fn excerpt(&self, sources: &[Source]) -> String {
        let text = &sources[self.span.source].text;
        let piece = text.get(self.span.start..self.span.end).unwrap_or_default();
        let line = piece.lines().next().unwrap_or_default();
        if line.chars().count() > 60 || line.len() < piece.len() {
            format!("{}...", line.chars().take(57).collect::<String>())
        } else {
            line.into()
        }
    }

    /// Description of the type: "a number", "text" and so on.
    pub(crate) fn shape(&self) -> &'static str {
        match &self.raw {
            Raw::Text(text) if text.trim_end().ends_with('%') => "a percentage",
            Raw::Text(_) => "text",
            Raw::Integer(_) => "a whole number",
            Raw::Float(_) => "a number",
            Raw::Bool(_) => "true or false",
            Raw::Datetime => "a date or time of day",
            Raw::List(_) => "a list",
            Raw::Table(_) => "a table",
        }
    }
}

impl Problem {
    /// Builds a problem with the text at `span`.
    pub(crate) fn at(
        sources: &[Source],
        span: &Span,
        kind: ProblemKind,
        key: &str,
        message: String,
        help: String,
    ) -> Self {
        let source = &sources[span.source];
        let start = span.start.min(source.text.len());
        let before = source.text.get(..start).unwrap_or(&source.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let source_line = source.text.get(line_start..).unwrap_or_default();
        let source_line = source_line.lines().next().unwrap_or_default();
        let column = before[line_start..].chars().count() + 1;
        // A span of several lines is marked to the end of the first line.
        let end = span.end.min(line_start + source_line.len()).max(start);
        let length = source.text.get(start..end).map_or(1, |piece| piece.chars().count().max(1));
        Self {
            kind,
            source: source.name.clone(),
            line: before.matches('\n').count() + 1,
            column,
            length,
            source_line: source_line.into(),
            key: source.as_typed(key.into()),
            message: source.as_typed(message),
            help: source.as_typed(help),
        }
    }
}
