//! `[[path]]` and `[[link]]`: the network.

use std::sync::Arc;

use ropewalk_base::{Duration, Rate};

use super::builder::{Around, Builder, tables};
use super::cross::transfer_packet;
use super::jitter::{JITTER, REORDER, jitter};
use super::loss::LOSS;
use super::queue::{QUEUE, queue};
use super::scheduler::DELAY_ERROR;
use super::setting::Setting;
use super::steps::{CHANGES, outages, steps, steps_toml};
use super::wifi::{WIFI, wifi};
use super::{
    Jitter, Loss, Outage, PathUse, Queue, Reorder, Scenario, Side, Step, Trace, Wifi, WindowManager,
};
use crate::check::{Checked, Value};
use crate::error::ProblemKind;
use crate::keys::{
    DELAY, Exclusive, Key, Kind, LARGEST_QUEUE, LONGEST_DELAY, MANY_PACKETS, PACKET, PROBABILITY,
    RATE, Table, names, size, time,
};
use crate::suggest;
use crate::toml_text::{Entries, bracketed, inline, quoted};

/// A path.
pub(super) const PATH: Table = Table {
    title: "[[path]]",
    doc: Path::ABOUT,
    groups: [
        &[name("path1, path2, ... by position").example("\"lte\"")],
        CAPACITY,
        keys! {
            /// Round trip of propagation alone, half each way; queueing and serialisation come on top.
            rtt = time(0, 2 * LONGEST_DELAY).is("40 ms").example("\"20 ms\"");
            /// One-way propagation delay, the same in both directions.
            delay = DELAY.derived("half of `rtt`").example("\"10 ms\"");
        },
        LinkSide::KEYS,
        CHANGES,
        Path::KEYS,
    ],
    exclusive: &[
        WAYS_OF_RATE,
        WAYS_OF_RATE_DOWN,
        Exclusive { ways: &[&["rtt"], &["delay"], &["delay_up", "delay_down"]], required: false },
    ],
};

/// A shared link.
pub(super) const LINK: Table = Table {
    title: "[[link]]",
    doc: "A link that several paths share: every path that names it in `via` sends its data \
          over it, after its own link, and its acknowledgements back over it.",
    groups: [
        &[name("link1, link2, ... by position").example("\"bottleneck\"")],
        CAPACITY,
        keys! {
            /// One-way propagation delay, the same in both directions.
            delay = DELAY.is("10 ms").example("\"10 ms\"");
        },
        LinkSide::KEYS,
        CHANGES,
        &[],
    ],
    exclusive: &[
        WAYS_OF_RATE,
        WAYS_OF_RATE_DOWN,
        Exclusive { ways: &[&["delay"], &["delay_up", "delay_down"]], required: false },
    ],
};

const WAYS_OF_RATE: Exclusive = Exclusive { ways: &[&["rate"], &["trace"]], required: false };
const WAYS_OF_RATE_DOWN: Exclusive =
    Exclusive { ways: &[&["rate_down"], &["trace_down"]], required: false };

const fn name(default: &'static str) -> Key {
    let doc = "Unique among paths and links; letters, digits, `-` and `_`.";
    Kind::Name.derived(default).named("name", doc)
}

/// Keys of the capacity, by which either a rate or a trace is given.
const CAPACITY: &[Key] = keys! {
    /// Rate of the data direction and, by default, of the return direction.
    rate = RATE.is("10 Mbit/s").example("\"2 Mbit/s\"");
    /// In place of `rate`: a file in the format of Mahimahi, one line per opportunity to
    /// deliver 1504 B, in milliseconds; it begins again at its end.
    trace = Kind::File.derived("none; or `rate`").example("\"traces/drive.mahi\"");
    /// Rate of the return direction.
    rate_down = RATE.derived("`rate`, or the mean rate of `trace`").example("\"1 Mbit/s\"");
    /// In place of `rate_down`: a trace for the return direction.
    trace_down = Kind::File.derived("none; or `rate_down`").example("\"traces/drive.mahi\"");
};

sides! {
    /// One direction of a path or link.
    pub struct LinkSide {
        also {
            /// Transmission capacity.
            capacity: Capacity => capacity;
            /// Changes during the run, in ascending order of time, at most one per time.
            steps: Vec<Step> => steps;
        }
        /// Propagation delay, without queueing and serialisation.
        delay: Duration => delay {
            /// One-way delay of the data direction; together with `delay_down`.
            delay_up = DELAY.derived("`delay`").example("\"300 ms\"");
            /// One-way delay of the return direction; together with `delay_up`.
            delay_down = DELAY.derived("`delay`").example("\"40 ms\"");
        }
        /// Queue in front of the link.
        queue: Queue => queue {
            /// Packets that wait while the link is busy in the data direction; at least one packet. A BDP is
            /// `rate` times the round trip of the path; for a shared link, of the longest path over it.
            /// Longer queues drop less and delay more.
            queue = QUEUE.is("100 packets").example("\"50 packets\"");
            /// The same for the return direction.
            queue_down = QUEUE.is("unlimited").example("\"64 kB\"");
        }
        /// Loss model.
        loss: Loss {
            /// Loss in the data direction, in addition to drops by the queue.
            loss = LOSS.is("0.0").example("{ model = \"bernoulli\", rate = 1e-3 }");
            /// Loss in the return direction.
            loss_down = LOSS.is("0.0").example("0.001");
        }
        /// Random addition to the delay.
        jitter: Option<Jitter> => jitter {
            /// Random addition to the delay in the data direction; a plain time is the most that a
            /// uniform distribution adds.
            jitter = JITTER.is("0 s").example("\"5 ms\"");
            /// The same for the return direction.
            jitter_down =
                JITTER.is("0 s").example("{ distribution = \"exponential\", mean = \"2 ms\" }");
        }
        /// Additional delay of some packets.
        reorder: Option<Reorder> {
            /// Data packets that are delayed and overtaken.
            reorder = REORDER
                .derived("no reordering")
                .example("{ probability = 0.01, delay = \"10 ms\" }");
        }
        /// Probability that a packet arrives twice.
        duplicate: f64 {
            /// Probability that a data packet arrives twice.
            duplicate = PROBABILITY.is("0.0").example("0.001");
        }
        /// Probability that a packet arrives damaged (and fails its checksum).
        corrupt: f64 {
            /// Probability that a data packet arrives damaged and fails its checksum.
            corrupt = PROBABILITY.is("0.0").example("0.001");
        }
    }
}

table! {
    /// An interface of the sender, an interface of the receiver, and what lies between. At least one, at
    /// most 64; the first is the primary path.
    pub struct Path {
        /// Price of a byte, on any scale. The scheduler `backup` prefers cheaper paths, a path with a higher cost than
        /// another is a standby for `min-rtt`, and with `use` the cheapest of the paths of one use comes first.
        cost: u32 = Kind::Integer { min: 0, max: 1_000_000 }.is("1").example("10");
        /// When the path carries data, in both directions.
        r#use: PathUse = names::<PathUse>().is("always").example("\"backup\"");
        /// Most bytes that the path carries in the run, in both directions and with all headers, as a cap on a month's
        /// traffic. From nine tenths of it on, the path is used as a backup; at the cap, never. Needs `[[flow]]`.
        cap: Option<u64> = size(1, LARGEST_QUEUE).derived("none").example("\"20 MB\"");
        /// Share of the path under `weighted`.
        weight: f64 = Kind::Number { min: 1e-6, max: 1e6 }.is("1.0").example("2.0");
        /// Limit of the congestion window under the window manager `static`.
        window_limit: Option<u32> = Kind::Packets { min: 1, max: MANY_PACKETS }
            .derived("none; `static` needs one on every path")
            .example("\"54 packets\"");
        /// Relative error put on the forward delay that the scheduler sees.
        delay_error: f64 => delay_error = DELAY_ERROR.derived("`scheduler.delay_error`").example("0.2");
        /// Names of the shared links that the path crosses, in order.
        via: Vec<usize> => via =
            Kind::List { of: &Kind::Name, min: 0, max: 64 }.empty().example("[\"bottleneck\"]");
        /// Largest packet that the path takes; packets are the smaller of this and
        /// `transfer.packet`.
        mtu: u32 => transfer_packet = PACKET.derived("`transfer.packet`").example("\"1280 B\"");
        /// An 802.11 hop at one end of the path.
        wifi: Option<Wifi> => wifi = WIFI
            .derived("none: a wire from end to end")
            .example("{ standard = \"802.11g\", rate = \"54 Mbit/s\", channel = 1 }");
        also {
            /// Name, unique among paths and links.
            name: String => own_name;
            /// From sender to receiver, without the shared links.
            up: LinkSide => up;
            /// From receiver to sender, without the shared links.
            down: LinkSide => down;
            /// Outages of both directions, in order, without overlap.
            outages: Vec<Outage> => outages;
        }
    }
}

/// `[[link]]`: crossed by every path that names it in `via`.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Name, unique among paths and links.
    pub name: String,
    /// From sender to receiver.
    pub up: LinkSide,
    /// From receiver to sender.
    pub down: LinkSide,
    /// Outages of both directions, in order, without overlap.
    pub outages: Vec<Outage>,
}

/// Transmission capacity of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// A constant rate above zero.
    Rate(Rate),
    /// Delivery opportunities read from a file.
    Trace(Arc<Trace>),
}

impl Capacity {
    /// The rate, or the mean rate of the trace.
    pub fn mean_rate(&self) -> Rate {
        match self {
            Self::Rate(rate) => *rate,
            Self::Trace(trace) => trace.mean_rate(),
        }
    }
}

/// Reads all paths and links.
pub(super) fn network(builder: &mut Builder<'_>, root: &Checked) -> (Vec<Path>, Vec<Link>) {
    let (path_tables, link_tables) = (tables(root, "path"), tables(root, "link"));
    let names = builder.names(&path_tables, &link_tables);
    let (path_names, link_names) = names.split_at(path_tables.len());
    builder.path_names = path_names.to_vec();
    builder.link_names = link_names.to_vec();
    let path_delays: Vec<_> = path_tables.iter().map(|t| builder.delays(t)).collect();
    let link_delays: Vec<_> = link_tables.iter().map(|t| builder.delays(t)).collect();
    let vias: Vec<_> = path_tables.iter().map(|t| builder.via(t)).collect();
    let both = |(up, down): (Duration, Duration)| up.saturating_add(down);
    let round_trips: Vec<_> = (path_delays.iter().zip(&vias))
        .map(|(delays, via)| {
            via.iter().fold(both(*delays), |sum, i| sum.saturating_add(both(link_delays[*i])))
        })
        .collect();
    let mut paths = Vec::with_capacity(path_tables.len());
    for (i, table) in path_tables.iter().enumerate() {
        let (name, via) = (path_names[i].clone(), vias[i].clone());
        let (delays, longest) = (path_delays[i], Some(round_trips[i]));
        builder.around = Around { name, via, delays, longest, ..Around::default() };
        paths.push(Path::read(builder, table));
    }
    let mut links = Vec::with_capacity(link_tables.len());
    for (i, table) in link_tables.iter().enumerate() {
        let users = (0..vias.len()).filter(|p| vias[*p].contains(&i));
        let longest = users.map(|p| round_trips[p]).max();
        let (name, delays) = (link_names[i].clone(), link_delays[i]);
        builder.around = Around { name, delays, longest, ..Around::default() };
        links.push(Link {
            name: own_name(builder, table),
            up: up(builder, table),
            down: down(builder, table),
            outages: outages(builder, table),
        });
    }
    (paths, links)
}

fn own_name(builder: &mut Builder<'_>, _: &Checked) -> String {
    builder.around.name.clone()
}

fn via(builder: &mut Builder<'_>, _: &Checked, _: &str) -> Vec<usize> {
    builder.around.via.clone()
}

fn up(builder: &mut Builder<'_>, table: &Checked) -> LinkSide {
    LinkSide::read(builder, table, Side::Up)
}

fn down(builder: &mut Builder<'_>, table: &Checked) -> LinkSide {
    LinkSide::read(builder, table, Side::Down)
}

fn delay(builder: &mut Builder<'_>, _: &Checked, key: &str) -> Duration {
    let (up, down) = builder.around.delays;
    if key == "delay_up" { up } else { down }
}

fn delay_error(builder: &mut Builder<'_>, table: &Checked, key: &str) -> f64 {
    table.opt(key).unwrap_or(builder.delay_error)
}

/// The rate or trace of one direction, which other keys of the direction depend on.
fn capacity(builder: &mut Builder<'_>, table: &Checked, side: Side) -> Capacity {
    let capacity = rate_or_trace(builder, table, side);
    builder.around.rate = capacity.mean_rate();
    builder.around.follows_trace = matches!(capacity, Capacity::Trace(_));
    capacity
}

fn rate_or_trace(builder: &mut Builder<'_>, table: &Checked, side: Side) -> Capacity {
    if let Some(trace) = builder.trace(table, if side == Side::Up { "trace" } else { "trace_down" })
    {
        return Capacity::Trace(trace);
    }
    if side == Side::Down {
        if let Some(rate) = table.opt("rate_down") {
            return Capacity::Rate(rate);
        }
        if let Some(trace) = table.opt::<String>("trace").and_then(|f| builder.traces.get(&f)) {
            return Capacity::Rate(trace.mean_rate());
        }
    }
    Capacity::Rate(table.get("rate"))
}

impl Path {
    pub(crate) fn toml(&self, scenario: &Scenario) -> Entries {
        let mut out = link_entries(&self.name, &self.up, &self.down, &self.outages, scenario);
        out.extend(self.entries(scenario));
        out
    }
}

impl Link {
    pub(crate) fn toml(&self, scenario: &Scenario) -> Entries {
        link_entries(&self.name, &self.up, &self.down, &self.outages, scenario)
    }
}

/// The keys that paths and links share.
fn link_entries(
    name: &str,
    up: &LinkSide,
    down: &LinkSide,
    outages: &[Outage],
    scenario: &Scenario,
) -> Entries {
    let mut out = vec![("name", quoted(name))];
    for (side, rate, trace) in [(up, "rate", "trace"), (down, "rate_down", "trace_down")] {
        out.extend(match &side.capacity {
            Capacity::Rate(value) => value.toml(&RATE, scenario).map(|text| (rate, text)),
            Capacity::Trace(value) => Some((trace, quoted(&value.file))),
        });
    }
    out.extend(LinkSide::entries(up, down, scenario));
    out.push(("steps", steps_toml(&up.steps, &down.steps, scenario)));
    let outages = outages.iter().map(|outage| inline(outage.entries(scenario)));
    out.push(("outages", bracketed(outages)));
    out
}

/// A position in the list of links, which is written as the name of the link.
impl Setting for usize {
    fn read(_: &mut Builder<'_>, value: &Value) -> Self {
        unreachable!("{value:?} is read with the names of the links")
    }

    fn toml(&self, _: &Kind, scenario: &Scenario) -> Option<String> {
        Some(quoted(&scenario.links[*self].name))
    }
}

impl Builder<'_> {
    /// Checks the limits: static management requires one on every path.
    pub(crate) fn window_limits(&mut self, root: &Checked, manager: WindowManager) {
        if manager != WindowManager::Static {
            return;
        }
        for table in tables(root, "path").iter().filter(|t| t.place("window_limit").is_none()) {
            let message = format!(
                "`{}`: `transfer.window_manager` = \"static\" needs a `window_limit` here",
                table.path
            );
            let help =
                "add one, such as `window_limit = \"50 packets\"`; `ropewalk tune` finds the best";
            self.wrong(table, "window_limit", ProblemKind::Missing, message, help);
        }
    }

    /// Checks that some path may carry data.
    pub(crate) fn path_uses(&mut self, root: &Checked, paths: &[Path]) {
        let tables = tables(root, "path");
        if let Some(table) = tables.first()
            && paths.iter().all(|path| path.r#use == PathUse::Never)
        {
            let message = "`use` = \"never\" on every path: nothing can be sent".to_owned();
            let help = "leave `use` out on one of them";
            self.wrong(table, "use", ProblemKind::Conflict, message, help);
        }
    }

    /// Checks that names are unique; returns those of all paths, then those of all links.
    fn names(&mut self, paths: &[&Checked], links: &[&Checked]) -> Vec<String> {
        let mut names: Vec<String> = Vec::with_capacity(paths.len() + links.len());
        let numbered = |tables: &[&Checked], kind: &'static str| {
            let named = tables.iter().enumerate().map(move |(i, table)| {
                (table.opt("name").unwrap_or_else(|| format!("{kind}{}", i + 1)), kind)
            });
            named.collect::<Vec<_>>()
        };
        let all = numbered(paths, "path").into_iter().chain(numbered(links, "link"));
        for ((name, kind), table) in all.zip(paths.iter().chain(links)) {
            if names.contains(&name) {
                let message = format!("`{}`: the name \"{name}\" is taken already", table.path);
                let help =
                    format!("every path and link has a name of its own; give this {kind} another");
                self.wrong(table, "name", ProblemKind::Duplicate, message, help);
            }
            names.push(name);
        }
        names
    }

    /// One-way delays, up and down.
    fn delays(&mut self, table: &Checked) -> (Duration, Duration) {
        let (up, down) = (table.opt("delay_up"), table.opt("delay_down"));
        match (up, down) {
            (Some(up), Some(down)) => return (up, down),
            (None, None) => {}
            (given, _) => {
                let (given, missing) = match given {
                    Some(_) => ("delay_up", "delay_down"),
                    None => ("delay_down", "delay_up"),
                };
                let message = format!("`{}` has `{given}` but no `{missing}`", table.path);
                let help = "give both, or `delay` for the same in both directions";
                self.wrong(table, given, ProblemKind::Missing, message, help);
            }
        }
        match table.opt("delay") {
            Some(delay) => (delay, delay),
            None => {
                // An odd nanosecond is added to the downward delay, so that the sum equals the RTT.
                let rtt: Duration = table.get("rtt");
                (rtt / 2, rtt - rtt / 2)
            }
        }
    }

    /// Positions of the links that a path names.
    fn via(&mut self, table: &Checked) -> Vec<usize> {
        let mut found = Vec::new();
        for item in table.list("via") {
            let Value::Text(name) = &item.value else { unreachable!("`via` is a list of names") };
            let key = format!("{}.via", table.path);
            match self.link_names.iter().position(|n| n == name) {
                Some(at) if found.contains(&at) => {
                    let message = format!("`{key}` names the link \"{name}\" twice");
                    let help = "a path crosses a link once";
                    self.wrong_at(&item.span, &key, ProblemKind::Duplicate, message, help);
                }
                Some(at) => found.push(at),
                None => {
                    let message = format!("`{key}`: there is no [[link]] called \"{name}\"");
                    let help = name_help(name, &self.link_names);
                    self.wrong_at(&item.span, &key, ProblemKind::UnknownName, message, help);
                }
            }
        }
        found
    }
}

/// A hint with the closest of `names`, or with all of them.
pub(super) fn name_help(name: &str, names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let valid = match names.is_empty() {
        true => "the file has none".into(),
        false => format!("valid: {}", suggest::quoted_or_list(&names)),
    };
    suggest::hint(name, &names, valid)
}
