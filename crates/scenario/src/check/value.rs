//! Checked values, accessed by key.

use ropewalk_base::{Duration, Rate, Time};

use crate::choice::Named;
use crate::keys::{Table, Variant};
use crate::tree::Span;

/// A value of a key.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Bool(bool),
    Integer(u64),
    Number(f64),
    Text(String),
    Time(Duration),
    Rate(Rate),
    Bytes(u64),
    /// A size in packets.
    Packets(u64),
    /// A size in bandwidth-delay products.
    Bdp(f64),
    /// Index in the list of names.
    Choice(usize),
    Table(Checked),
    List(Vec<Item>),
}

/// A value of a list.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) value: Value,
    pub(crate) span: Span,
}

/// A checked table: every key is known, and every value is of the right kind.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) table: Table,
    /// What its tag says, if it has one.
    pub(crate) variant: Option<&'static Variant>,
    /// Position in the source.
    pub(crate) span: Span,
    /// Its dotted name: `path[1]`.
    pub(crate) path: String,
    /// One entry per key of the table; `None` if the key is not given and its default is derived.
    pub(crate) entries: Vec<Option<Entry>>,
}

/// The value of a key.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    /// Position of the value; `None` for a default.
    pub(crate) place: Option<Span>,
}

impl Checked {
    /// The entry of `key`.
    ///
    /// # Panics
    /// If the table has no such key, which is a programming error.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        let found = self.table.find(key);
        let (at, _) = found.unwrap_or_else(|| panic!("{} has no key {key}", self.table.title));
        self.entries[at].as_ref()
    }

    /// Position of the value of `key`, if it is given.
    pub(crate) fn place(&self, key: &str) -> Option<&Span> {
        self.entry(key)?.place.as_ref()
    }

    /// The value of a key without a fixed default, if it is given.
    pub(crate) fn opt<T: FromValue>(&self, key: &str) -> Option<T> {
        self.entry(key).map(|entry| T::from_value(&entry.value))
    }

    /// The value of a key that is given or has a fixed default.
    pub(crate) fn get<T: FromValue>(&self, key: &str) -> T {
        self.opt(key).unwrap_or_else(|| panic!("{} {key} has no value", self.table.title))
    }

    /// The value of a key without conversion.
    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The table under `key`.
    pub(crate) fn table(&self, key: &str) -> &Self {
        match self.value(key) {
            Some(Value::Table(table)) => table,
            other => panic!("{key} is not a table but {other:?}"),
        }
    }

    /// The list under `key`; empty if it is not given.
    pub(crate) fn list(&self, key: &str) -> &[Item] {
        match self.value(key) {
            None => &[],
            Some(Value::List(items)) => items,
            other => panic!("{key} is not a list but {other:?}"),
        }
    }
}

/// A type that corresponds to one kind of value.
pub(crate) trait FromValue: Sized {
    /// # Panics
    /// If the value is of another kind, which means that table of keys and reader disagree.
    fn from_value(value: &Value) -> Self;
}

macro_rules! from_value {
    ($($type:ty, $pattern:pat => $result:expr;)+) => {
        $(impl FromValue for $type {
            fn from_value(value: &Value) -> Self {
                match value {
                    $pattern => $result,
                    other => panic!("{other:?} where the reader wants {}", stringify!($type)),
                }
            }
        })+
    };
}

from_value! {
    bool, Value::Bool(b) => *b;
    u64, Value::Integer(i) | Value::Bytes(i) => *i;
    u32, Value::Integer(i) | Value::Bytes(i) | Value::Packets(i) => fitting(*i);
    f64, Value::Number(x) => *x;
    String, Value::Text(text) => text.clone();
    Duration, Value::Time(d) => *d;
    Time, Value::Time(d) => Time::ZERO + *d;
    Rate, Value::Rate(r) => *r;
    u8, Value::Integer(i) => u8::try_from(*i).expect("limited to 8 bits");
    u16, Value::Integer(i) => u16::try_from(*i).expect("limited to 16 bits");
}

pub(crate) fn fitting(value: u64) -> u32 {
    u32::try_from(value).expect("limits of 32-bit keys are below 2^32")
}

impl<T: Named> FromValue for T {
    fn from_value(value: &Value) -> Self {
        match value {
            Value::Choice(at) => Self::ALL[*at],
            other => panic!("{other:?} where the reader wants a name"),
        }
    }
}
