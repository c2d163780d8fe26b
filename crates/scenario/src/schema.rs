//! JSON Schema of the scenario file, for editors and other programs.

use serde_json::{Map, Value, json};

use crate::keys::{Exclusive, Fallback, Key, Kind, Table, Tagged, Variant};
use crate::quantity::{Dimension, MICROSECONDS};
use crate::tree::{Node, Raw, parse_value};
use crate::types::ROOT;

/// The JSON Schema (draft 2020-12) of a scenario file, generated from the table of keys.
///
/// It covers names, types, units, limits of plain numbers and exclusive keys. Rules that require
/// arithmetic (a warm-up shorter than the run) are checked only by
/// [`Scenario::parse`](crate::Scenario::parse).
pub fn json_schema() -> String {
    let mut defs = Map::new();
    let mut schema = table(&mut defs, &ROOT, None);
    schema.insert("$defs".into(), Value::Object(defs));
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".into(), json!("Ropewalk scenario"));
    let text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text + "\n"
}

fn table(
    defs: &mut Map<String, Value>,
    table: &Table,
    tag: Option<(&Tagged, &Variant)>,
) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut required: Vec<&str> = Vec::new();
    if let Some((tagged, Variant { choice, .. })) = tag {
        properties
            .insert(tagged.tag.into(), json!({ "const": choice.name, "description": choice.doc }));
        if tagged.default != Some(choice.name) {
            required.push(tagged.tag);
        }
    }
    for key in table.keys() {
        properties.insert(key.name.into(), property(defs, key));
        if matches!(key.default, Fallback::Required) {
            required.push(key.name);
        }
    }
    let mut schema = Map::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("additionalProperties".into(), json!(false));
    schema.insert("properties".into(), Value::Object(properties));
    if !table.doc.is_empty() {
        schema.insert("description".into(), json!(table.doc));
    }
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    let rules: Vec<_> = table.exclusive.iter().flat_map(exclusive).collect();
    if !rules.is_empty() {
        schema.insert("allOf".into(), Value::Array(rules));
    }
    schema
}

/// One rule for each pair of keys that exclude each other.
fn exclusive(exclusive: &Exclusive) -> Vec<Value> {
    let mut rules = Vec::new();
    for (i, first) in exclusive.ways.iter().enumerate() {
        for second in &exclusive.ways[i + 1..] {
            for a in *first {
                rules.extend(second.iter().map(|b| json!({ "not": { "required": [a, b] } })));
            }
        }
    }
    if exclusive.required {
        let ways: Vec<_> = exclusive.ways.iter().map(|way| json!({ "required": way })).collect();
        rules.push(json!({ "anyOf": ways }));
    }
    rules
}

fn property(defs: &mut Map<String, Value>, key: &Key) -> Value {
    let mut schema = kind(defs, &key.kind);
    let Value::Object(map) = &mut schema else { unreachable!("schemas are objects") };
    let doc = match key.default {
        Fallback::Derived(prose) => format!("{} Default: {prose}.", key.doc),
        _ => key.doc.to_owned(),
    };
    map.insert("description".into(), json!(doc));
    if let Fallback::Is(text) = key.default {
        let plain = matches!(key.kind, Kind::Bool | Kind::Integer { .. } | Kind::Number { .. })
            || text.parse::<f64>().is_ok();
        let value = if plain { text.parse().unwrap_or(json!(text)) } else { json!(text) };
        map.insert("default".into(), value);
    }
    if let Some(example) = parse_value(key.example, 0, 0) {
        map.insert("examples".into(), json!([to_json(&example)]));
    }
    schema
}

fn to_json(node: &Node) -> Value {
    match &node.raw {
        Raw::Text(text) => json!(text),
        Raw::Integer(i) => json!(i),
        Raw::Float(x) => json!(x),
        Raw::Bool(b) => json!(b),
        Raw::Datetime => Value::Null,
        Raw::List(items) => items.iter().map(to_json).collect(),
        Raw::Table(pairs) => {
            Value::Object(pairs.iter().map(|p| (p.key.clone(), to_json(&p.node))).collect())
        }
    }
}

/// Pattern of the number in a quantity; units follow it.
const NUMBER: &str = r"^\s*\+?([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9][0-9_]*)([eE][+-]?[0-9]+)?\s*";

fn kind(defs: &mut Map<String, Value>, kind: &Kind) -> Value {
    match kind {
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Packets { min, max } => json!({ "anyOf": [
            { "type": "integer", "minimum": min, "maximum": max },
            { "type": "string", "pattern": format!("{NUMBER}packets?\\s*$") },
        ] }),
        Kind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Name => json!({
            "type": "string", "minLength": 1, "maxLength": 64, "pattern": r#"^[^\s.\[\]"]+$"#
        }),
        Kind::File => json!({ "type": "string", "minLength": 1 }),
        Kind::Quantity { dimension, also, .. } => {
            let mut units: Vec<_> = dimension.units().iter().map(|u| u.0).collect();
            units.extend(also.iter().flat_map(|e| e.spellings()));
            if matches!(dimension, Dimension::Time) {
                units.extend(MICROSECONDS);
            }
            json!({ "type": "string", "pattern": format!("{NUMBER}({})\\s*$", units.join("|")) })
        }
        Kind::Choice(choices) => {
            let names: Vec<_> = choices.iter().map(|c| c.name).collect();
            json!({ "enum": names })
        }
        Kind::OneOf(kinds) => {
            let kinds: Vec<_> = kinds.iter().map(|k| self::kind(defs, k)).collect();
            json!({ "anyOf": kinds })
        }
        Kind::Table(inner) => reference(defs, inner, None),
        Kind::Tagged(tagged) => {
            let variants = tagged.variants.iter();
            let variants = variants.map(|v| reference(defs, &tagged.table(v), Some((*tagged, v))));
            json!({ "anyOf": variants.collect::<Vec<_>>() })
        }
        Kind::List { of, min, max } => {
            let items = self::kind(defs, of);
            json!({ "type": "array", "items": items, "minItems": min, "maxItems": max })
        }
    }
}

/// A reference to the definition of `inner`, which is created on first use: queues and loss models occur in
/// many places.
fn reference(
    defs: &mut Map<String, Value>,
    inner: &Table,
    tag: Option<(&Tagged, &Variant)>,
) -> Value {
    let title = tag.map_or(inner.title.to_owned(), |(tagged, variant)| tagged.title(variant));
    let words = title.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
    let name = words.collect::<Vec<_>>().join("-");
    if !defs.contains_key(&name) {
        let schema = table(defs, inner, tag);
        defs.insert(name.clone(), Value::Object(schema));
    }
    json!({ "$ref": format!("#/$defs/{name}") })
}
