//! `[[cross]]`: cross traffic.

use ropewalk_base::{Duration, Rate, Time};

use super::builder::Builder;
use super::link::name_help;
use super::setting::Setting;
use super::{Scenario, Side};
use crate::check::{Checked, Value};
use crate::error::ProblemKind;
use crate::keys::{
    INSTANT, Key, Kind, LONGEST_DELAY, NS_PER_US, PACKET, RATE, Tagged, names, split_before, time,
};
use crate::toml_text::{Entries, quoted};

/// On-times and off-times.
const SPELL: Kind = time(NS_PER_US, LONGEST_DELAY);

variants! {
    /// Sending pattern of cross traffic; rates are per flow.
    #[derive(Copy, Eq)]
    pub enum CrossKind {
        /// Constant bit rate: packets at equal intervals.
        Cbr = "cbr" {
            /// Bits per second on the wire, of each flow.
            rate: Rate = RATE.is("1 Mbit/s").example("\"500 kbit/s\"");
        },
        /// Constant rate while on, silence while off; both random.
        OnOff = "on-off" {
            /// Bits per second on the wire while on, of each flow.
            rate: Rate = RATE.is("1 Mbit/s").example("\"500 kbit/s\"");
            /// Mean of the exponentially distributed on-times.
            on_time: Duration = SPELL.is("500 ms").example("\"500 ms\"");
            /// Mean of the exponentially distributed off-times.
            off_time: Duration = SPELL.is("500 ms").example("\"500 ms\"");
        },
        /// Packets at exponentially distributed intervals.
        Poisson = "poisson" {
            /// Mean bits per second on the wire, of each flow.
            rate: Rate = RATE.is("1 Mbit/s").example("\"500 kbit/s\"");
        },
        /// A bulk transfer with additive increase and multiplicative decrease.
        Greedy = "greedy" {
            /// Its round trip without the queue of this link.
            rtt: Duration = time(NS_PER_US, LONGEST_DELAY).is("40 ms").example("\"40 ms\"");
        },
    }
}

/// The path or link that cross traffic uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The path at this position, without shared links.
    Path(usize),
    /// The shared link at this position.
    Link(usize),
}

table! {
    /// Cross traffic: flows of other senders.
    #[derive(Copy, Eq)]
    pub struct Cross {
        /// Name of the path (its own link) or shared link that it crosses.
        on: Target => target = Kind::Name.required().example("\"bottleneck\"");
        /// In which direction it runs.
        direction: Side = names::<Side>().is("up").example("\"down\"");
        /// Size of its packets on the wire.
        packet: u32 => transfer_packet = PACKET.derived("`transfer.packet`").example("\"1000 B\"");
        /// Number of such flows, each with its own random stream.
        flows: u32 = Kind::Integer { min: 1, max: 100_000 }.is("1").example("10");
        /// When it begins.
        start: Time = INSTANT.is("0 s").example("\"10 s\"");
        /// When it ends; later than `start`.
        stop: Option<Time> = INSTANT.derived("the end of the run").example("\"30 s\"");
        also {
            /// Sending pattern.
            kind: CrossKind => CrossKind::read;
        }
    }
}

/// The keys before those of the sending pattern, and those after it.
const PARTS: (&[Key], &[Key]) = split_before(Cross::KEYS, "packet");

pub(super) const CROSS: Tagged = Tagged {
    tag: "kind",
    heading: "[[cross]] kind = \"?\"",
    doc: Cross::ABOUT,
    default: None,
    before: PARTS.0,
    variants: CrossKind::VARIANTS,
    after: [PARTS.1, &[]],
};

impl Cross {
    /// Reads one of `[[cross]]`.
    pub(crate) fn checked(builder: &mut Builder<'_>, table: &Checked) -> Self {
        let cross = Self::read(builder, table);
        builder.later_than_start(table, cross.start, cross.stop);
        cross
    }

    pub(crate) fn toml(&self, scenario: &Scenario) -> Entries {
        let (kind, own) = (self.kind.name(), self.kind.entries(scenario));
        CROSS.entries(kind, own, self.entries(scenario))
    }
}

/// The size of packets. The default is that of the transfer.
pub(super) fn transfer_packet(builder: &mut Builder<'_>, table: &Checked, key: &str) -> u32 {
    table.opt(key).unwrap_or(builder.packet)
}

fn target(builder: &mut Builder<'_>, table: &Checked, key: &str) -> Target {
    let name: String = table.get(key);
    if let Some(at) = builder.path_names.iter().position(|p| *p == name) {
        return Target::Path(at);
    }
    if let Some(at) = builder.link_names.iter().position(|l| *l == name) {
        return Target::Link(at);
    }
    let names = [&builder.path_names[..], &builder.link_names[..]].concat();
    let message = format!("`{}.on`: there is no path or link called \"{name}\"", table.path);
    builder.wrong(table, key, ProblemKind::UnknownName, message, name_help(&name, &names));
    Target::Path(0)
}

impl Setting for Target {
    fn read(_: &mut Builder<'_>, value: &Value) -> Self {
        unreachable!("{value:?} is read with the names of paths and links")
    }

    fn toml(&self, _: &Kind, scenario: &Scenario) -> Option<String> {
        Some(quoted(match self {
            Self::Path(at) => &scenario.paths[*at].name,
            Self::Link(at) => &scenario.links[*at].name,
        }))
    }
}
