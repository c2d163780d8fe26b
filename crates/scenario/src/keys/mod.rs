//! The table of all keys. Parser, error messages, defaults, JSON Schema and reference page use it.

mod link;
mod path;
mod rest;
mod scheduler;
mod sctp;
mod tcp;
mod transfer;
mod wifi;

pub(crate) use rest::ROOT;

use crate::quantity::Dimension;
use crate::types::Choice;

/// A key of a table.
#[derive(Debug)]
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

/// A set of keys.
#[derive(Debug)]
pub(crate) struct Table {
    /// Heading in the reference page.
    pub(crate) title: &'static str,
    /// Description of the table.
    pub(crate) doc: &'static str,
    pub(crate) keys: &'static [Key],
    pub(crate) exclusive: &'static [Exclusive],
}

/// Alternative keys, of which a file may use at most one.
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
    pub(crate) doc: &'static str,
    /// Index of the default variant, if the tag may be absent.
    pub(crate) default: Option<usize>,
    pub(crate) variants: &'static [Variant],
}

/// One kind of a [`Tagged`] table.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) choice: Choice,
    pub(crate) table: &'static Table,
}

impl Table {
    /// The position of the key called `name`.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.keys.iter().position(|k| k.name == name)
    }
}

/// A choice from its name and description.
pub(crate) const fn choice(name: &'static str, doc: &'static str) -> Choice {
    Choice { name, doc }
}

const UNLIMITED: &[Choice] = &[choice("unlimited", "No limit.")];

const NS_PER_US: u64 = 1_000;
const NS_PER_MS: u64 = 1_000_000;
const NS_PER_S: u64 = 1_000_000_000;
/// Longest run: about eleven days.
const LONGEST_RUN: u64 = 1_000_000 * NS_PER_S;
/// Longest delay. For comparison: a signal takes 22 minutes to Mars at its farthest.
const LONGEST_DELAY: u64 = 3_600 * NS_PER_S;
/// Highest link rate: a terabit per second, for which nanoseconds in 64 bits are still exact.
const FASTEST: u64 = 1_000_000_000_000;
/// Largest window that 32 bits of `a_rwnd` can offer.
const LARGEST_WINDOW: u64 = u32::MAX as u64;
/// Largest queue, bytes.
pub(crate) const LARGEST_QUEUE: u64 = 1_000_000_000_000;
/// Smallest and largest packet: space for IP and transport headers, and the limit of the IP length field.
pub(crate) const PACKET_BYTES: (u64, u64) = (64, 65_535);

const fn time(min: u64, max: u64) -> Kind {
    Kind::Quantity { dimension: Dimension::Time, min, max, also: &[] }
}

const fn size(min: u64, max: u64) -> Kind {
    Kind::Quantity { dimension: Dimension::Size, min, max, also: &[] }
}

const DELAY: Kind = time(0, LONGEST_DELAY);
/// An instant of the run.
const INSTANT: Kind = time(0, LONGEST_RUN);
const RATE: Kind = Kind::Quantity { dimension: Dimension::Rate, min: 1, max: FASTEST, also: &[] };
const PACKET: Kind = size(PACKET_BYTES.0, PACKET_BYTES.1);
const PROBABILITY: Kind = Kind::Number { min: 0.0, max: 1.0 };

#[cfg(test)]
mod tests;
