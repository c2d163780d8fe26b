//! Types of values: how each is read from a checked value and written as TOML.

use ropewalk_base::{Duration, Rate, Time};

use super::Scenario;
use super::builder::Builder;
use crate::check::{FromValue, Value};
use crate::keys::Kind;
use crate::quantity::{duration_text, rate_text, size_text};
use crate::toml_text::{bracketed, quoted};

/// The type of a value of the file.
pub(crate) trait Setting: Sized {
    /// Reads a checked value.
    ///
    /// # Panics
    /// If the value is of another kind than the type, which means that the declaration of the key is wrong.
    fn read(builder: &mut Builder<'_>, value: &Value) -> Self;

    /// The value of a key that is not given and has no fixed default.
    fn absent() -> Option<Self> {
        None
    }

    /// The value in TOML, for a key of this kind; `None` if the key is left out.
    fn toml(&self, kind: &Kind, scenario: &Scenario) -> Option<String>;
}

/// Implements [`Setting`] for types that need no context, with the text that is written.
macro_rules! settings {
    ($($type:ty: |$this:pat_param, $kind:pat_param| $text:expr;)+) => {
        $(impl Setting for $type {
            fn read(_: &mut Builder<'_>, value: &Value) -> Self {
                Self::from_value(value)
            }

            fn toml(&self, kind: &Kind, _: &Scenario) -> Option<String> {
                let ($this, $kind) = (self, kind);
                Some($text)
            }
        })+
    };
}

settings! {
    bool: |this, _| this.to_string();
    u64: |this, kind| whole(*this, kind);
    u32: |this, kind| whole(u64::from(*this), kind);
    u8: |this, kind| whole(u64::from(*this), kind);
    u16: |this, kind| whole(u64::from(*this), kind);
    // The shortest text that parses to the same number, always in the form of a float.
    f64: |this, _| format!("{this:?}");
    String: |this, _| quoted(this);
    Duration: |this, _| quoted(duration_text(*this));
    Time: |this, _| quoted(duration_text(this.since(Time::ZERO)));
    Rate: |this, _| quoted(rate_text(*this));
}

fn whole(value: u64, kind: &Kind) -> String {
    match kind {
        Kind::Packets { .. } => quoted(format!("{value} packets")),
        Kind::Integer { .. } => value.to_string(),
        _ => quoted(size_text(value)),
    }
}

impl<T: Setting> Setting for Option<T> {
    fn read(builder: &mut Builder<'_>, value: &Value) -> Self {
        Some(T::read(builder, value))
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn toml(&self, kind: &Kind, scenario: &Scenario) -> Option<String> {
        self.as_ref()?.toml(kind, scenario)
    }
}

impl<T: Setting> Setting for Vec<T> {
    fn read(builder: &mut Builder<'_>, value: &Value) -> Self {
        let Value::List(items) = value else { panic!("{value:?} where the reader wants a list") };
        items.iter().map(|item| T::read(builder, &item.value)).collect()
    }

    fn toml(&self, kind: &Kind, scenario: &Scenario) -> Option<String> {
        let kind = if let Kind::List { of, .. } = kind { of } else { kind };
        Some(bracketed(self.iter().filter_map(|item| item.toml(kind, scenario))))
    }
}
