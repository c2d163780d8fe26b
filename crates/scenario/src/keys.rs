//! Kinds and defaults of keys, and the tables that keys form. The keys themselves are declared next to the
//! fields that hold their values.

use crate::choice::{Choice, Named};
use crate::quantity::Dimension;

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Name in the file.
    pub(crate) name: &'static str,
    /// Kind of value.
    pub(crate) kind: Kind,
    /// Value if the key is not given.
    pub(crate) default: Fallback,
    /// A sample value in the syntax of the file, for the reference and for hints.
    pub(crate) example: &'static str,
    /// Description of the key, one to three sentences.
    pub(crate) doc: &'static str,
    /// Whether the canonical text leaves the key out if it has its default.
    pub(crate) sparse: bool,
}

impl Key {
    /// With a sample value.
    pub(crate) const fn example(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    /// Left out of the canonical text if it has its default.
    pub(crate) const fn sparse(self) -> Self {
        Self { sparse: true, ..self }
    }

    /// With a name and a description, for keys that are not declared with a field.
    pub(crate) const fn named(self, name: &'static str, doc: &'static str) -> Self {
        Self { name, doc, ..self }
    }
}

/// Value of a key that is not given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fallback {
    /// None: the key is required.
    Required,
    /// This value; text without quotes.
    Is(&'static str),
    /// A table without keys, or an empty list.
    Empty,
    /// Derived from other keys, as described here.
    Derived(&'static str),
}

/// Kind of value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Integer { min: u64, max: u64 },
    /// A whole number of packets, as `4` or `"4 packets"`.
    Packets { min: u64, max: u64 },
    /// A number.
    Number { min: f64, max: f64 },
    /// The name of a path or link.
    Name,
    /// A file name, relative to the scenario file.
    File,
    /// A number with a unit, between limits in base units.
    Quantity { dimension: Dimension, min: u64, max: u64, also: &'static [Extra] },
    /// One of these names.
    Choice(&'static [Choice]),
    /// The first of these kinds that matches the shape of the value.
    OneOf(&'static [Self]),
    /// A table.
    Table(&'static Table),
    /// A table whose keys depend on one of them.
    Tagged(&'static Tagged),
    /// A list.
    List { of: &'static Self, min: usize, max: usize },
}

impl Kind {
    /// A key of this kind that is required.
    pub(crate) const fn required(self) -> Key {
        self.key(Fallback::Required)
    }

    /// A key of this kind with a default, as text without quotes.
    pub(crate) const fn is(self, default: &'static str) -> Key {
        self.key(Fallback::Is(default))
    }

    /// A key of this kind whose default is an empty table or list.
    pub(crate) const fn empty(self) -> Key {
        self.key(Fallback::Empty)
    }

    /// A key of this kind whose default follows from other keys, as described here.
    pub(crate) const fn derived(self, prose: &'static str) -> Key {
        self.key(Fallback::Derived(prose))
    }

    const fn key(self, default: Fallback) -> Key {
        Key { name: "", kind: self, default, example: "", doc: "", sparse: false }
    }
}

/// Units of a size that depend on other keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extra {
    /// `"50 packets"`: times `transfer.packet`.
    Packets,
    /// `"10 BDP"`: times rate x round-trip time.
    Bdp,
}

impl Extra {
    /// The unit in its canonical spelling.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::Bdp => "BDP",
        }
    }

    /// All spellings of the unit.
    pub(crate) const fn spellings(self) -> &'static [&'static str] {
        match self {
            Self::Packets => &["packets", "packet"],
            Self::Bdp => &["BDP"],
        }
    }
}

/// Keys of a table, in groups that several tables can share, in the order of the reference.
pub(crate) type Groups = [&'static [Key]; 6];

/// A set of keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    /// Heading in the reference page.
    pub(crate) title: &'static str,
    /// Description of the table.
    pub(crate) doc: &'static str,
    pub(crate) groups: Groups,
    pub(crate) exclusive: &'static [Exclusive],
}

/// Alternative keys. A file may use at most one of them.
#[derive(Debug)]
pub(crate) struct Exclusive {
    pub(crate) ways: &'static [&'static [&'static str]],
    /// Whether one of them is required.
    pub(crate) required: bool,
}

/// A table whose keys depend on the name under `tag`.
#[derive(Debug)]
pub(crate) struct Tagged {
    pub(crate) tag: &'static str,
    /// Heading in the reference page; `?` stands for the name of the variant.
    pub(crate) heading: &'static str,
    pub(crate) doc: &'static str,
    /// Name of the default variant, if the tag may be absent.
    pub(crate) default: Option<&'static str>,
    /// Keys of every variant, before its own.
    pub(crate) before: &'static [Key],
    pub(crate) variants: &'static [Variant],
    /// Keys of every variant, after its own.
    pub(crate) after: [&'static [Key]; 2],
}

/// One kind of a [`Tagged`] table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub(crate) choice: Choice,
    /// What its description says about the entire table.
    pub(crate) doc: &'static str,
    /// Keys that are not fields of the variant.
    pub(crate) extra: &'static [Key],
    /// Keys of its fields.
    pub(crate) keys: &'static [Key],
    pub(crate) exclusive: &'static [Exclusive],
}

impl Variant {
    /// A variant without keys and rules.
    pub(crate) const PLAIN: Self =
        Self { choice: choice("", ""), doc: "", extra: &[], keys: &[], exclusive: &[] };

    /// Adds a description of the entire table.
    pub(crate) const fn about(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }

    /// With keys that are not fields of the variant.
    pub(crate) const fn extra(self, extra: &'static [Key]) -> Self {
        Self { extra, ..self }
    }

    /// With keys that exclude each other.
    pub(crate) const fn exclusive(self, exclusive: &'static [Exclusive]) -> Self {
        Self { exclusive, ..self }
    }
}

impl Table {
    /// A table with the keys of its fields only.
    pub(crate) const fn new(title: &'static str, doc: &'static str, keys: &'static [Key]) -> Self {
        Self { title, doc, groups: [keys, &[], &[], &[], &[], &[]], exclusive: &[] }
    }

    /// All keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.groups.into_iter().flatten()
    }

    /// The key called `name`, and its position.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, &'static Key)> {
        self.keys().enumerate().find(|(_, key)| key.name == name)
    }
}

impl Tagged {
    /// The table of a variant.
    pub(crate) const fn table(&self, variant: &Variant) -> Table {
        let [first, second] = self.after;
        Table {
            title: self.heading,
            doc: variant.doc,
            groups: [self.before, variant.extra, variant.keys, first, second, &[]],
            exclusive: variant.exclusive,
        }
    }

    /// Heading of a variant in the reference page.
    pub(crate) fn title(&self, variant: &Variant) -> String {
        self.heading.replace('?', variant.choice.name)
    }
}

/// A choice from its name and description.
pub(crate) const fn choice(name: &'static str, doc: &'static str) -> Choice {
    Choice { name, doc }
}

pub(crate) const NS_PER_US: u64 = 1_000;
pub(crate) const NS_PER_MS: u64 = 1_000_000;
pub(crate) const NS_PER_S: u64 = 1_000_000_000;
/// Longest run: about eleven days.
pub(crate) const LONGEST_RUN: u64 = 1_000_000 * NS_PER_S;
/// Longest delay. For comparison: a signal takes 22 minutes to Mars at its farthest.
pub(crate) const LONGEST_DELAY: u64 = 3_600 * NS_PER_S;
/// Highest link rate: a terabit per second, for which nanoseconds in 64 bits are still exact.
pub(crate) const FASTEST: u64 = 1_000_000_000_000;
/// Largest window that 32 bits of `a_rwnd` can offer.
pub(crate) const LARGEST_WINDOW: u64 = u32::MAX as u64;
/// Largest queue, bytes.
pub(crate) const LARGEST_QUEUE: u64 = 1_000_000_000_000;
/// Smallest and largest packet: space for IP and transport headers, and the limit of the IP length field.
pub(crate) const PACKET_BYTES: (u64, u64) = (64, 65_535);

pub(crate) const fn time(min: u64, max: u64) -> Kind {
    Kind::Quantity { dimension: Dimension::Time, min, max, also: &[] }
}

pub(crate) const fn size(min: u64, max: u64) -> Kind {
    Kind::Quantity { dimension: Dimension::Size, min, max, also: &[] }
}

/// The keys before the one called `name`, and the remaining keys.
pub(crate) const fn split_before(
    keys: &'static [Key],
    name: &str,
) -> (&'static [Key], &'static [Key]) {
    let mut at = 0;
    while !same(keys[at].name, name) {
        at += 1;
    }
    keys.split_at(at)
}

/// Whether two names are equal, while constants are computed.
const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// One of the names of `T`.
pub(crate) const fn names<T: Named>() -> Kind {
    Kind::Choice(T::CHOICES)
}

pub(crate) const DELAY: Kind = time(0, LONGEST_DELAY);
/// An instant of the run.
pub(crate) const INSTANT: Kind = time(0, LONGEST_RUN);
pub(crate) const RATE: Kind =
    Kind::Quantity { dimension: Dimension::Rate, min: 1, max: FASTEST, also: &[] };
pub(crate) const PACKET: Kind = size(PACKET_BYTES.0, PACKET_BYTES.1);
pub(crate) const PROBABILITY: Kind = Kind::Number { min: 0.0, max: 1.0 };

/// A size, or a number of packets, up to the largest window.
pub(crate) const WINDOW: Kind = Kind::Quantity {
    dimension: Dimension::Size,
    min: 1,
    max: LARGEST_WINDOW,
    also: &[Extra::Packets],
};
pub(crate) const MANY_PACKETS: u64 = 1_000_000;
