//! Macros that declare a table of the file: one declaration gives the field with its description, the key with
//! its limits and default, the reader and the writer.
//!
//! A field is declared as
//!
//! ```text
//! /// Description, of the field and of the key.
//! name: Type => reader = KIND.is("default").example("\"sample\"");
//! ```
//!
//! `=> reader` is needed if the value depends on other keys, or has rules of its own; it is a function of the
//! builder, the table, and the name of the key. Otherwise [`Setting`] of the type reads the value.

use super::Scenario;
use super::builder::Builder;
use super::setting::Setting;
use crate::check::Checked;
use crate::keys::{Fallback, Key};
use crate::toml_text::Entries;

/// The text of a doc comment without the space at its beginning.
pub(crate) const fn sentence(doc: &'static str) -> &'static str {
    doc.trim_ascii()
}

/// The name of a key from that of its field, which may be a raw identifier such as `r#use`.
pub(crate) const fn key_name(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

/// The value of `key`, which is given, has a fixed default, or may be absent.
pub(crate) fn read_key<T: Setting>(builder: &mut Builder<'_>, table: &Checked, key: &str) -> T {
    match table.value(key) {
        Some(value) => T::read(builder, value),
        None => T::absent().unwrap_or_else(|| panic!("{} {key} has no value", table.path)),
    }
}

/// Adds the TOML of a value, unless it is left out.
pub(crate) fn add_entry(
    out: &mut Entries,
    keys: &'static [Key],
    name: &str,
    value: &impl Setting,
    scenario: &Scenario,
) {
    let key = keys.iter().find(|key| key.name == name).expect("declared with its field");
    let omitted = |text: &String| {
        key.sparse && matches!(key.default, Fallback::Is(default) if default == text)
    };
    let text = value.toml(&key.kind, scenario).filter(|text| !omitted(text));
    out.extend(text.map(|text| (key.name, text)));
}

/// Keys without fields.
macro_rules! keys {
    ($($(#[doc = $doc:literal])+ $key:ident = $spec:expr;)*) => {
        &[$(
            $spec.named($crate::types::declare::key_name(stringify!($key)), $crate::types::declare::sentence(concat!($($doc),+)))
        ),*]
    };
}

/// Reads one field.
macro_rules! read_field {
    ($builder:ident, $table:ident, $key:expr) => {
        $crate::types::declare::read_key($builder, $table, $key)
    };
    ($builder:ident, $table:ident, $key:expr, $read:path) => {
        $read($builder, $table, $key)
    };
}

/// A table with a key for each field of a struct. Fields after `also` have no keys.
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        $(#[derive($($derive:ident),+)])?
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $key:ident: $type:ty $(=> $read:path)? = $spec:expr;
            )*
            $(
                also {
                    $($(#[doc = $also_doc:literal])+ $also:ident: $also_type:ty => $also_read:path;)+
                }
            )?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq $(, $($derive),+)?)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $key: $type,)*
            $($($(#[doc = $also_doc])+ pub $also: $also_type,)+)?
        }

        impl $name {
            /// The keys of the fields.
            pub(crate) const KEYS: &'static [$crate::keys::Key] =
                keys![$($(#[doc = $doc])+ $key = $spec;)*];
            /// The description of the table.
            #[allow(dead_code, reason = "a table that is part of another one has no section")]
            pub(crate) const ABOUT: &'static str = $crate::types::declare::sentence(concat!($($about),+));

            pub(crate) fn read(
                builder: &mut $crate::types::builder::Builder<'_>,
                table: &$crate::check::Checked,
            ) -> Self {
                Self {
                    $($key: read_field!(builder, table, $crate::types::declare::key_name(stringify!($key)) $(, $read)?),)*
                    $($($also: $also_read(builder, table),)+)?
                }
            }

            /// The keys with their values in TOML.
            pub(crate) fn entries(&self, scenario: &$crate::types::Scenario) -> $crate::toml_text::Entries {
                let mut out = $crate::toml_text::Entries::new();
                $($crate::types::declare::add_entry(
                    &mut out, Self::KEYS, $crate::types::declare::key_name(stringify!($key)), &self.$key, scenario,
                );)*
                out
            }
        }
    };
}

/// Makes a struct of [`table!`] a value: a table in one line.
macro_rules! inline_table {
    ($name:ident) => {
        impl $crate::types::setting::Setting for $name {
            fn read(
                builder: &mut $crate::types::builder::Builder<'_>,
                value: &$crate::check::Value,
            ) -> Self {
                match value {
                    $crate::check::Value::Table(table) => $name::read(builder, table),
                    other => panic!("{other:?} where the reader wants a table"),
                }
            }

            fn toml(
                &self,
                _: &$crate::keys::Kind,
                scenario: &$crate::types::Scenario,
            ) -> Option<String> {
                Some($crate::toml_text::inline(self.entries(scenario)))
            }
        }
    };
}

/// The variants of a tagged table. A variant is declared as
///
/// ```text
/// /// Description, of the variant and of its name in the file.
/// Name = "name" [Variant::PLAIN.extra(keys)] where rule { fields as in `table!` }
/// ```
///
/// The brackets contain descriptions and further keys. `rule` checks several keys together. A variant after
/// `otherwise` has no name in the file.
macro_rules! variants {
    (
        $(#[doc = $about:literal])+
        $(#[derive($($derive:ident),+)])?
        pub enum $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $variant:ident = $text:literal $([$spec:expr])? $(where $rule:path)? $({
                    $(
                        $(#[doc = $key_doc:literal])+
                        $key:ident: $type:ty $(=> $read:path)? = $key_spec:expr;
                    )*
                })?,
            )+
            $(otherwise $(#[doc = $else_doc:literal])+ $else:ident)?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq $(, $($derive),+)?)]
        pub enum $name {
            $($(#[doc = $else_doc])+ $else,)?
            $(
                $(#[doc = $doc])+
                $variant $({ $($(#[doc = $key_doc])+ $key: $type,)* })?,
            )+
        }

        impl $name {
            /// The variants that have names.
            pub(crate) const VARIANTS: &'static [$crate::keys::Variant] = &[$(
                $crate::keys::Variant {
                    choice: $crate::keys::choice($text, $crate::types::declare::sentence(concat!($($doc),+))),
                    keys: variants!(@keys $({ $($(#[doc = $key_doc])+ $key = $key_spec;)* })?),
                    ..variants!(@spec $($spec)?)
                },
            )+];

            /// Reads the variant that the table names, and checks its rules.
            pub(crate) fn read(
                builder: &mut $crate::types::builder::Builder<'_>,
                table: &$crate::check::Checked,
            ) -> Self {
                let variant = table.variant.expect("the table has a tag");
                match variant.choice.name {
                    $($text => {
                        $($rule(builder, table);)?
                        Self::$variant $({
                        $($key: read_field!(builder, table, $crate::types::declare::key_name(stringify!($key)) $(, $read)?),)*
                        })?
                    })+
                    other => unreachable!("{other} is not a variant of {}", stringify!($name)),
                }
            }

            /// The name in the file; empty for a variant without one.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$else => "",)?
                    $(variants!(@pattern $variant $({ $($key)* })?) => $text,)+
                }
            }

            /// The keys of the variant with their values in TOML.
            #[allow(unused_variables, unused_mut, reason = "some variants have no keys")]
            pub(crate) fn entries(&self, scenario: &$crate::types::Scenario) -> $crate::toml_text::Entries {
                let name = self.name();
                let variant = Self::VARIANTS.iter().find(|variant| variant.choice.name == name);
                let keys = variant.map_or(&[][..], |variant| variant.keys);
                let mut out = $crate::toml_text::Entries::new();
                match self {
                    $(Self::$else => {})?
                    $(Self::$variant $({ $($key),* })? => {
                        $($($crate::types::declare::add_entry(&mut out, keys, stringify!($key), $key, scenario);)*)?
                    })+
                }
                out
            }
        }
    };
    (@keys) => { &[] };
    (@keys { $($keys:tt)* }) => { keys![$($keys)*] };
    (@spec) => { $crate::keys::Variant::PLAIN };
    (@spec $spec:expr) => { $spec };
    (@pattern $variant:ident) => { Self::$variant };
    (@pattern $variant:ident $fields:tt) => { Self::$variant { .. } };
}

/// One direction of a link. Every field has a key for the data direction, and most have a second one for
/// the return direction; without it, the return direction has the default of the type. Fields under
/// `also` have no keys here.
macro_rules! sides {
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident {
            also {
                $($(#[doc = $also_doc:literal])+ $also:ident: $also_type:ty => $also_read:path;)+
            }
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $type:ty $(=> $read:path)? {
                    $(#[doc = $up_doc:literal])+
                    $up:ident = $up_spec:expr;
                    $(
                        $(#[doc = $down_doc:literal])+
                        $down:ident = $down_spec:expr;
                    )?
                }
            )*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $also_doc])+ pub $also: $also_type,)+
            $($(#[doc = $doc])+ pub $field: $type,)*
        }

        impl $name {
            /// The keys of both directions.
            pub(crate) const KEYS: &'static [$crate::keys::Key] = keys![$(
                $(#[doc = $up_doc])+ $up = $up_spec;
                $($(#[doc = $down_doc])+ $down = $down_spec;)?
            )*];

            pub(crate) fn read(
                builder: &mut $crate::types::builder::Builder<'_>,
                table: &$crate::check::Checked,
                side: $crate::types::Side,
            ) -> Self {
                Self {
                    $($also: $also_read(builder, table, side),)+
                    $($field: match side {
                        $crate::types::Side::Up => {
                            read_field!(builder, table, stringify!($up) $(, $read)?)
                        }
                        $crate::types::Side::Down => {
                            sides!(@down builder, table, [$(stringify!($down))?] $(, $read)?)
                        }
                    },)*
                }
            }

            /// The keys of both directions with their values in TOML.
            pub(crate) fn entries(
                up: &Self,
                down: &Self,
                scenario: &$crate::types::Scenario,
            ) -> $crate::toml_text::Entries {
                let mut out = $crate::toml_text::Entries::new();
                $(
                    $crate::types::declare::add_entry(
                        &mut out, Self::KEYS, stringify!($up), &up.$field, scenario,
                    );
                    $($crate::types::declare::add_entry(
                        &mut out, Self::KEYS, stringify!($down), &down.$field, scenario,
                    );)?
                )*
                out
            }
        }
    };
    (@down $builder:ident, $table:ident, [] $(, $read:path)?) => { Default::default() };
    (@down $builder:ident, $table:ident, [$key:expr] $(, $read:path)?) => {
        read_field!($builder, $table, $key $(, $read)?)
    };
}
