//! The contents of a scenario file as types, with defaults applied and quantities in base units. Each field is
//! declared together with its key.

#[macro_use]
mod declare;

mod builder;
mod choices;
mod cross;
mod jitter;
mod link;
mod loss;
mod pacing;
mod queue;
mod scheduler;
mod sctp;
mod setting;
mod source;
mod steps;
mod tcp;
mod trace;
mod transfer;
mod tunnel;
mod wifi;
mod world;

pub(crate) use builder::{build, directory_of};
pub use choices::{
    Congestion, Coupling, CwndUpdate, End, ForwardDelay, LinuxTurns, OtiasForm, PathUse, Preamble,
    Preset, Protocol, Quota, ReceiveRules, Recovery, Redundancy, Reinjection, Reordering,
    Retransmission, RtoFormula, Rules, SackCount, ScheduleCapacity, ScheduleWindows, SchedulerName,
    Side, StreamScheduler, SubflowAck, Weights, WhenBlocked, WindowCheck, WindowManager,
    WindowRounding, WindowUnit,
};
pub use cross::{Cross, CrossKind, Target};
pub use jitter::{Jitter, JitterShape, Reorder};
pub use link::{Capacity, Link, LinkSide, Path};
pub use loss::Loss;
pub use pacing::{Pacing, PacingOptions};
pub use queue::{Discipline, Limit, Queue};
pub use scheduler::SchedulerOptions;
pub use sctp::{InitialSsthresh, InitialWindow, SctpOptions};
pub use source::Source;
pub use steps::{Outage, Step};
pub use tcp::TcpOptions;
pub use trace::Trace;
pub(crate) use trace::numbered_lines;
pub use transfer::{Application, Steady, Transfer};
pub use tunnel::{Flow, FlowKind, LATENCY_BUDGETS, LONGEST_PAUSE, Tunnel};
pub use wifi::{Radio, Station, Wifi, WifiStandard};
pub use world::{Record, World};

use self::builder::{Builder, tables};
use crate::check::Checked;
use crate::keys::{Key, Kind, Table};

/// The contents of a scenario file.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// `[transfer]`: what is sent, how, and for how long.
    pub transfer: Transfer,
    /// `[scheduler]`: which path gets which data.
    pub scheduler: SchedulerOptions,
    /// `[sctp]`: deviations from the preset.
    pub sctp: SctpOptions,
    /// `[tcp]`: deviations from the preset.
    pub tcp: TcpOptions,
    /// `[[path]]`, at least one; the position is the path's number.
    pub paths: Vec<Path>,
    /// `[[link]]`: links that several paths share.
    pub links: Vec<Link>,
    /// `[[cross]]`: cross traffic.
    pub cross: Vec<Cross>,
    /// `[[station]]`: background 802.11 stations.
    pub stations: Vec<Station>,
    /// `[tunnel]`: how the flows are carried.
    pub tunnel: Tunnel,
    /// `[[flow]]`: what is sent through the tunnel. With flows, nothing else is sent.
    pub flows: Vec<Flow>,
    /// `[[source]]`: messages of several sizes. With sources, nothing else is sent.
    pub sources: Vec<Source>,
    /// `[world]`: number and start times of parallel transfers.
    pub world: World,
    /// `[record]`: data recorded during the run.
    pub record: Record,
}

/// The entire file.
pub(crate) const ROOT: Table = Table::new("The file", "", SECTIONS);

const SCHEDULER: Table = Table::new("[scheduler]", SchedulerOptions::ABOUT, SchedulerOptions::KEYS);
const SCTP: Table = Table::new("[sctp]", SctpOptions::ABOUT, SctpOptions::KEYS);
const TCP: Table = Table::new("[tcp]", TcpOptions::ABOUT, TcpOptions::KEYS);
const TUNNEL: Table = Table::new("[tunnel]", Tunnel::ABOUT, Tunnel::KEYS);
const WORLD: Table = Table::new("[world]", World::ABOUT, World::KEYS);
const RECORD: Table = Table::new("[record]", Record::ABOUT, Record::KEYS);

const SECTIONS: &[Key] = &[
    table("transfer", &transfer::TRANSFER),
    table("scheduler", &SCHEDULER),
    table("sctp", &SCTP),
    table("tcp", &TCP),
    list(&Kind::Table(&link::PATH), 1, 64).required().named("path", link::PATH.doc),
    list(&Kind::Table(&link::LINK), 0, 256).empty().named("link", link::LINK.doc),
    list(&Kind::Tagged(&cross::CROSS), 0, 256).empty().named("cross", Cross::ABOUT),
    list(&Kind::Tagged(&wifi::STATION), 0, 256).empty().named("station", Station::ABOUT),
    table("tunnel", &TUNNEL),
    list(&Kind::Tagged(&tunnel::FLOW), 0, 256).empty().named("flow", Flow::ABOUT),
    list(&Kind::Table(&source::SOURCE), 0, 64).empty().named("source", Source::ABOUT),
    table("world", &WORLD),
    table("record", &RECORD),
];

const fn table(name: &'static str, table: &'static Table) -> Key {
    Kind::Table(table).empty().named(name, table.doc)
}

const fn list(of: &'static Kind, min: usize, max: usize) -> Kind {
    Kind::List { of, min, max }
}

impl Scenario {
    /// Reads the sections of a checked file. Some keys depend on sections that are read before.
    pub(crate) fn read(builder: &mut Builder<'_>, root: &Checked) -> Self {
        let transfer = builder.transfer(root.table("transfer"));
        let scheduler = builder.scheduler(root.table("transfer"), root.table("scheduler"));
        let (paths, links) = link::network(builder, root);
        builder.window_limits(root, transfer.window_manager);
        builder.path_uses(root, &paths);
        let cross = tables(root, "cross");
        let cross = cross.into_iter().map(|table| Cross::checked(builder, table)).collect();
        let stations = tables(root, "station");
        let stations = stations.into_iter().map(|t| Station::checked(builder, t)).collect();
        Self {
            tunnel: Tunnel::read(builder, root.table("tunnel")),
            flows: builder.flows(root, &transfer),
            sources: builder.sources(root, &transfer),
            sctp: builder.sctp(root.table("sctp")),
            tcp: builder.tcp(root.table("tcp"), transfer.preset),
            world: builder.world(root.table("world"), &transfer),
            record: Record::read(builder, root.table("record")),
            transfer,
            scheduler,
            paths,
            links,
            cross,
            stations,
        }
    }
}

#[cfg(test)]
mod tests;
