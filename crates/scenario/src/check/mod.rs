//! Checks a tree against the table of keys: unknown keys, types of values, limits. Rules that involve several
//! keys are checked where the types are built.

mod quantity;
mod value;
mod words;

pub(crate) use quantity::read;
pub(crate) use value::{Checked, Entry, FromValue, Item, Value, fitting};
pub(crate) use words::describe;
use words::{elsewhere, fits};

use crate::choice::{Choice, find_name};
use crate::error::{Problem, ProblemKind, ScenarioError};
use crate::keys::{Fallback, Key, Kind, Table, Tagged, Variant};
use crate::suggest;
use crate::tree::{Node, Pair, Raw, Source, Span};

/// Collects problems with their positions.
pub(crate) struct Checker<'a> {
    pub(crate) sources: &'a [Source],
    problems: Vec<(Span, Problem)>,
    /// The keys of the file.
    file: Table,
    /// Names that the caller permits besides these choices, for the hint on an unknown name.
    further_names: Option<(&'static [Choice], &'a [&'a str])>,
}

impl<'a> Checker<'a> {
    /// A checker of a file with these keys.
    pub(crate) fn new(file: Table, sources: &'a [Source]) -> Self {
        Self { sources, problems: Vec::new(), file, further_names: None }
    }

    /// Permits `names` besides the choices of one list.
    pub(crate) fn with_names(self, choices: &'static [Choice], names: &'a [&'a str]) -> Self {
        Self { further_names: Some((choices, names)), ..self }
    }

    /// Records a problem at `span`.
    pub(crate) fn problem(
        &mut self,
        span: &Span,
        kind: ProblemKind,
        key: &str,
        message: String,
        help: String,
    ) {
        let problem = Problem::at(self.sources, span, kind, key, message, help);
        self.problems.push((span.clone(), problem));
    }

    /// Returns all problems in the order of the file as an error, if there are any.
    pub(crate) fn finish(&mut self) -> Result<(), ScenarioError> {
        if self.problems.is_empty() {
            return Ok(());
        }
        self.problems.sort_by(|a, b| a.0.cmp(&b.0));
        let problems = self.problems.drain(..).map(|(_, problem)| problem).collect();
        Err(ScenarioError::new(problems))
    }

    /// Checks the root of the file, which is a table.
    pub(crate) fn root(&mut self, node: &Node) -> Option<Checked> {
        self.table(self.file, None, node, "")
    }

    /// The names that the caller permits besides these choices, for the hint on an unknown name.
    fn further_names_of(&self, choices: &[Choice]) -> String {
        match self.further_names {
            Some((of, names)) if of == choices && !names.is_empty() => {
                format!("; registered: {}", suggest::quoted_or_list(names))
            }
            _ => String::new(),
        }
    }

    /// Checks a table against its keys; the tag is a further key that is allowed.
    fn table(
        &mut self,
        table: Table,
        tag: Option<(&'static Tagged, &'static Variant)>,
        node: &Node,
        path: &str,
    ) -> Option<Checked> {
        let Raw::Table(pairs) = &node.raw else {
            unreachable!("the shape of a table was checked before");
        };
        let mut entries: Vec<Option<Entry>> = table.keys().map(|_| None).collect();
        let mut whole = true;
        for pair in pairs {
            match table.find(&pair.key) {
                Some((at, key)) => {
                    let place = pair.node.span.clone();
                    let value = self.value(&key.kind, &pair.node, &join(path, key.name));
                    whole &= value.is_some();
                    entries[at] = value.map(|value| Entry { value, place: Some(place) });
                }
                None if tag.is_some_and(|(t, _)| t.tag == pair.key) => {}
                None => self.unknown_key(&table, tag, pair, path),
            }
        }
        whole &= self.exclusive(&table, pairs, node, path);
        for (key, entry) in table.keys().zip(&mut entries) {
            if entry.is_none() && !pairs.iter().any(|p| p.key == key.name) {
                *entry = self.default(key, node, path, &mut whole);
            }
        }
        let variant = tag.map(|(_, variant)| variant);
        let span = node.span.clone();
        whole.then(|| Checked { table, variant, span, path: path.into(), entries })
    }

    /// The entry of a key that is not given.
    fn default(&mut self, key: &Key, table: &Node, path: &str, whole: &mut bool) -> Option<Entry> {
        let value = match key.default {
            Fallback::Derived(_) => return None,
            Fallback::Is(text) => default_value(&key.kind, text),
            Fallback::Empty => {
                self.value(&key.kind, &empty(&key.kind, &table.span), &join(path, key.name))
            }
            Fallback::Required => {
                *whole = false;
                let message = match path {
                    "" => format!("there is no [[{}]]", key.name),
                    _ => format!("`{path}` has no `{}`", key.name),
                };
                let help = match path {
                    "" => format!("write at least one [[{}]] section", key.name),
                    _ => format!("write {} = {}", key.name, key.example),
                };
                self.problem(
                    &table.span,
                    ProblemKind::Missing,
                    &join(path, key.name),
                    message,
                    help,
                );
                return None;
            }
        };
        value.map(|value| Entry { value, place: None })
    }

    /// Checks one value.
    pub(crate) fn value(&mut self, kind: &Kind, node: &Node, path: &str) -> Option<Value> {
        match (kind, &node.raw) {
            (Kind::Bool, Raw::Bool(b)) => Some(Value::Bool(*b)),
            (Kind::Integer { min, max }, Raw::Integer(i)) => {
                self.integer(*i, *min, *max, node, path).map(Value::Integer)
            }
            (Kind::Packets { min, max }, Raw::Integer(i)) => {
                self.integer(*i, *min, *max, node, path).map(Value::Packets)
            }
            (Kind::Packets { .. } | Kind::Quantity { .. }, Raw::Text(text)) => {
                self.quantity(kind, text, node, path)
            }
            (Kind::Quantity { .. }, Raw::Integer(_) | Raw::Float(_)) => {
                self.no_unit(kind, node, path);
                None
            }
            (Kind::Number { min, max }, Raw::Float(x)) => self.number(*x, *min, *max, node, path),
            (Kind::Number { min, max }, Raw::Integer(Some(i))) => {
                self.number(*i as f64, *min, *max, node, path)
            }
            (Kind::Name, Raw::Text(text)) => self.name(text, node, path),
            (Kind::File, Raw::Text(text)) if !text.is_empty() => Some(Value::Text(text.clone())),
            (Kind::Choice(choices), Raw::Text(text)) => match find_name(text, choices) {
                Ok(at) => Some(Value::Choice(at)),
                Err(mut error) => {
                    error.help += &self.further_names_of(choices);
                    let kind = ProblemKind::UnknownName;
                    let message = format!("`{path}` = \"{text}\": {}", error.message);
                    self.problem(&node.span, kind, path, message, error.help);
                    None
                }
            },
            (Kind::OneOf(kinds), _) => self.one_of(kinds, node, path),
            (Kind::Table(table), Raw::Table(_)) => {
                self.table(**table, None, node, path).map(Value::Table)
            }
            (Kind::Tagged(tagged), Raw::Table(pairs)) => self.tagged(tagged, pairs, node, path),
            (Kind::List { of, min, max }, Raw::List(items)) => {
                self.list(of, (*min, *max), items, node, path)
            }
            _ => {
                self.wrong_type(kind, node, path);
                None
            }
        }
    }

    fn integer(
        &mut self,
        value: Option<i64>,
        min: u64,
        max: u64,
        node: &Node,
        path: &str,
    ) -> Option<u64> {
        let fitting = value.and_then(|i| u64::try_from(i).ok()).filter(|i| (min..=max).contains(i));
        if fitting.is_none() {
            let near = if value.is_some_and(|i| i < max as i64) { min } else { max };
            self.out_of_range(node, path, &format!("{min} to {max}"), &near.to_string());
        }
        fitting
    }

    fn number(&mut self, x: f64, min: f64, max: f64, node: &Node, path: &str) -> Option<Value> {
        if (min..=max).contains(&x) {
            return Some(Value::Number(x));
        }
        let near = if x < min { min } else { max };
        self.out_of_range(node, path, &format!("{min} to {max}"), &near.to_string());
        None
    }

    /// Reports a value outside its limits.
    fn out_of_range(&mut self, node: &Node, path: &str, valid: &str, near: &str) {
        let message = format!("`{path}` = {} is outside of {valid}", node.excerpt(self.sources));
        let help = format!("the nearest valid value is {near}");
        self.problem(&node.span, ProblemKind::OutOfRange, path, message, help);
    }

    fn name(&mut self, text: &str, node: &Node, path: &str) -> Option<Value> {
        let plain = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        if (1..=64).contains(&text.chars().count()) && text.chars().all(plain) {
            return Some(Value::Text(text.into()));
        }
        let message = format!("`{path}` = {} is not a name", node.excerpt(self.sources));
        let help = "a name has 1 to 64 letters, digits, `-` and `_`, so that dotted keys and \
                    file names can hold it";
        self.problem(&node.span, ProblemKind::OutOfRange, path, message, help.into());
        None
    }

    /// Checks `node` as the first of `kinds` that its shape fits.
    fn one_of(&mut self, kinds: &'static [Kind], node: &Node, path: &str) -> Option<Value> {
        if let Some(Kind::Choice(choices)) = kinds.iter().find(|k| fits(k, node))
            && let Raw::Text(text) = &node.raw
            && let Err(error) = find_name(text, choices)
        {
            // A list of the names alone would hide that other kinds of values are valid.
            let message = format!("`{path}` = \"{text}\": {}", error.message);
            let near = error.help.split("valid:").next().unwrap_or_default();
            let help = format!("{near}valid: {}", describe(&Kind::OneOf(kinds)));
            self.problem(&node.span, ProblemKind::UnknownName, path, message, help);
            return None;
        }
        match kinds.iter().find(|k| fits(k, node)) {
            Some(kind) => self.value(kind, node, path),
            None => {
                self.wrong_type(&Kind::OneOf(kinds), node, path);
                None
            }
        }
    }

    fn tagged(
        &mut self,
        tagged: &'static Tagged,
        pairs: &[Pair],
        node: &Node,
        path: &str,
    ) -> Option<Value> {
        let choices: Vec<_> = tagged.variants.iter().map(|v| v.choice).collect();
        let names: Vec<_> = choices.iter().map(|c| c.name).collect();
        let tag_path = join(path, tagged.tag);
        let at = match pairs.iter().find(|p| p.key == tagged.tag) {
            None if tagged.default.is_some() => {
                names.iter().position(|name| Some(*name) == tagged.default)
            }
            None => {
                let message = format!("`{path}` has no `{}`", tagged.tag);
                let help = format!(
                    "write {} = \"{}\"; valid: {}",
                    tagged.tag,
                    names[0],
                    suggest::quoted_or_list(&names)
                );
                self.problem(&node.span, ProblemKind::Missing, &tag_path, message, help);
                None
            }
            Some(Pair { node: Node { raw: Raw::Text(text), span }, .. }) => {
                let found = find_name(text, &choices);
                if let Err(error) = &found {
                    let message = format!("`{tag_path}` = \"{text}\": {}", error.message);
                    let help = error.help.clone();
                    self.problem(span, ProblemKind::UnknownName, &tag_path, message, help);
                }
                found.ok()
            }
            Some(pair) => {
                let message = format!(
                    "`{tag_path}` = {} is {}, not a name",
                    pair.node.excerpt(self.sources),
                    pair.node.shape()
                );
                let help = format!("valid: {}", suggest::quoted_or_list(&names));
                let span = &pair.node.span;
                self.problem(span, ProblemKind::WrongType, &tag_path, message, help);
                None
            }
        }?;
        let variant = &tagged.variants[at];
        self.table(tagged.table(variant), Some((tagged, variant)), node, path).map(Value::Table)
    }

    fn list(
        &mut self,
        of: &'static Kind,
        (min, max): (usize, usize),
        items: &[Node],
        node: &Node,
        path: &str,
    ) -> Option<Value> {
        if !(min..=max).contains(&items.len()) {
            let message =
                format!("`{path}` has {} entries; {min} to {max} are possible", items.len());
            let help = match items.len() < min {
                true => "add what is missing".into(),
                false => format!("leave out {} of them", items.len() - max),
            };
            let span = items.get(max).map_or(&node.span, |first_too_many| &first_too_many.span);
            self.problem(span, ProblemKind::OutOfRange, path, message, help);
            return None;
        }
        let mut values = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            let value = self.value(of, item, &format!("{path}[{i}]"));
            values.extend(value.map(|value| Item { value, span: item.span.clone() }));
        }
        (values.len() == items.len()).then_some(Value::List(values))
    }

    fn unknown_key(
        &mut self,
        table: &Table,
        tag: Option<(&Tagged, &Variant)>,
        pair: &Pair,
        path: &str,
    ) {
        let mut names: Vec<_> = table.keys().map(|k| k.name).collect();
        names.extend(tag.map(|(t, _)| t.tag));
        let place = match tag {
            Some((tagged, variant)) => tagged.title(variant),
            None if path.is_empty() => "a scenario".to_owned(),
            None => table.title.to_owned(),
        };
        let message = format!("{place} has no key `{}`", pair.key);
        let valid = format!("valid: {}", suggest::quoted_or_list(&names));
        let help = match suggest::nearest(&pair.key, &names) {
            Some(near) => format!("did you mean `{near}`? {valid}"),
            None => match elsewhere(&self.file, &pair.key) {
                Some(home) if tag.is_none() => {
                    format!("`{}` belongs into {home}; {valid}", pair.key)
                }
                _ => valid,
            },
        };
        let key = join(path, &pair.key);
        self.problem(&pair.key_span, ProblemKind::UnknownKey, &key, message, help);
    }

    /// Checks that at most one of several exclusive keys is given.
    fn exclusive(&mut self, table: &Table, pairs: &[Pair], node: &Node, path: &str) -> bool {
        let mut fine = true;
        for exclusive in table.exclusive {
            let way = |p: &Pair| exclusive.ways.iter().position(|w| w.contains(&p.key.as_str()));
            let mut given = pairs.iter().filter_map(|p| way(p).map(|w| (w, p)));
            let Some((first_way, first)) = given.next() else {
                if exclusive.required {
                    let names: Vec<_> = exclusive.ways.iter().map(|w| w[0]).collect();
                    let message = format!("`{path}` needs {}", suggest::quoted_or_list(&names));
                    let help = "give one of them".into();
                    self.problem(&node.span, ProblemKind::Missing, path, message, help);
                    fine = false;
                }
                continue;
            };
            if let Some((_, second)) = given.find(|(w, _)| *w != first_way) {
                let message = format!(
                    "`{}` and `{}` exclude each other; both are given",
                    first.key, second.key
                );
                let help = "leave one of them out".into();
                let key = join(path, &second.key);
                self.problem(&second.key_span, ProblemKind::Conflict, &key, message, help);
                fine = false;
            }
        }
        fine
    }

    fn wrong_type(&mut self, kind: &Kind, node: &Node, path: &str) {
        let message = format!("`{path}` = {} is {}", node.excerpt(self.sources), node.shape());
        let takes = describe(kind);
        let share = share_of(&node.excerpt(self.sources)).filter(|_| takes.starts_with("a number"));
        let write = share.map_or_else(String::new, |share| format!("write {share}; "));
        let help = format!("{write}it takes {takes}");
        self.problem(&node.span, ProblemKind::WrongType, path, message, help);
    }
}

/// The number that `1%` or `"1 %"` means.
fn share_of(text: &str) -> Option<f64> {
    let number = text.trim_matches(['"', '\'']).strip_suffix('%')?;
    number.trim().parse::<f64>().ok().map(|percent| percent / 100.0)
}

fn empty(kind: &Kind, span: &Span) -> Node {
    let raw = match kind {
        Kind::List { .. } => Raw::List(Vec::new()),
        _ => Raw::Table(Vec::new()),
    };
    Node { raw, span: span.clone() }
}

/// Parses the text of a default.
///
/// # Panics
/// If the default is not a valid value of its key; a test checks every key.
pub(crate) fn default_value(kind: &Kind, text: &str) -> Option<Value> {
    let raw = match text.parse::<bool>() {
        Ok(b) => Raw::Bool(b),
        Err(_) => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(i), _) => Raw::Integer(Some(i)),
            (_, Ok(x)) => Raw::Float(x),
            _ => Raw::Text(text.into()),
        },
    };
    let source = [Source::new("default".into(), text.into())];
    let mut checker = Checker::new(Table::new("", "", &[]), &source);
    let node = Node { raw, span: Span::new(0, 0..text.len()) };
    let value = checker.value(kind, &node, "default");
    assert!(value.is_some(), "the default {text} is not valid: {:?}", checker.problems);
    value
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.into() } else { format!("{path}.{key}") }
}
