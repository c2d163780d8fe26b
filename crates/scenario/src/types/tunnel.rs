//! `[tunnel]` and `[[flow]]`: a tunnel over the paths, and the traffic that it carries.

use ropewalk_base::{Duration, Rate, Time};

use super::builder::{Builder, tables};
use super::{Application, Congestion, Preset, Redundancy, Scenario, Side, Transfer};
use crate::check::Checked;
use crate::error::ProblemKind;
use crate::keys::{
    INSTANT, Key, Kind, LONGEST_DELAY, NS_PER_MS, RATE, Tagged, names, size, split_before, time,
};
use crate::toml_text::Entries;

/// Shortest and longest hold of the tunnel, in scenarios and live.
pub const LATENCY_BUDGETS: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(5)];
/// The longest pause of an end: as much time as pacing allows to be sent together.
pub const LONGEST_PAUSE: Duration = Duration::from_millis(2);
/// Smallest and largest inner packet.
const INNER: Kind = size(64, 9_000);

table! {
    /// A tunnel over all paths that carries the flows of `[[flow]]`. Each IP packet of a flow becomes one message of the
    /// association, which is unordered and given up after a lifetime. The section has no effect without flows, and is
    /// refused then.
    #[derive(Copy, Eq)]
    pub struct Tunnel {
        /// When packets of calls, games, DNS and ping are sent on two paths. The far end drops the second copy.
        redundancy: Redundancy = names::<Redundancy>().is("auto").example("\"always\"");
        /// Longest time that a packet waits at the far end for an earlier one of its flow. A smaller value lowers the
        /// delay after a loss, and reorders what a longer wait would have put in order.
        latency_budget: Duration = time(LATENCY_BUDGETS[0].as_nanos(), LATENCY_BUDGETS[1].as_nanos()).is("500 ms").example("\"150 ms\"");
        /// Longest time for which an end does nothing at a time while many packets pass, as the threads of `ropewalk tunnel`
        /// do to save CPU time (there `--longest-pause`, by default 2 ms). A pause takes a tenth of the shortest round trip
        /// at most.
        longest_pause: Duration = time(0, LONGEST_PAUSE.as_nanos()).is("0 s").example("\"2 ms\"");
    }
}

impl Default for Tunnel {
    fn default() -> Self {
        Self {
            redundancy: Redundancy::Auto,
            latency_budget: Duration::from_millis(500),
            longest_pause: Duration::ZERO,
        }
    }
}

variants! {
    /// What a flow through the tunnel is.
    #[derive(Copy, Eq)]
    pub enum FlowKind {
        /// A TCP connection as Linux 6.x has it, which sends as much as it can. Its order is restored at the far end.
        Tcp = "tcp" {
            /// Its congestion control.
            congestion: Congestion = names::<Congestion>().is("cubic").example("\"bbr\"");
        },
        /// A download over QUIC: as `tcp`, over UDP, whose packets are delivered as they arrive.
        Quic = "quic" {
            /// Its congestion control.
            congestion: Congestion = names::<Congestion>().is("cubic").example("\"bbr\"");
        },
        /// A voice call in both directions: 50 packets of 200 B per second, each with 20 ms of G.711. Its quality is the
        /// mean opinion score of the E-model (ITU-T G.107), of the worse direction.
        Call = "call",
        /// A game in both directions: 30 packets of 120 B per second.
        Game = "game",
        /// DNS queries of 70 B with replies of 140 B. A query without a reply is repeated after 1 s.
        Dns = "dns" {
            /// Time between two queries.
            every: Duration = time(NS_PER_MS, LONGEST_DELAY).is("500 ms").example("\"1 s\"");
        },
        /// ICMP echo requests of 84 B with replies.
        Ping = "ping" {
            /// Time between two requests.
            every: Duration = time(NS_PER_MS, LONGEST_DELAY).is("100 ms").example("\"1 s\"");
        },
        /// UDP packets at a constant rate.
        Udp = "udp" {
            /// Bits per second of IP packets.
            rate: Rate = RATE.is("1 Mbit/s").example("\"5 Mbit/s\"");
            /// Size of the IP packets. Larger ones than the tunnel carries are sent in its largest size.
            packet: u32 = INNER.is("1200 B").example("\"500 B\"");
            /// Whether the far end restores the order.
            ordered: bool = Kind::Bool.is("false").example("true");
        },
    }
}

table! {
    /// A flow through the tunnel.
    pub struct Flow {
        /// Name, unique among flows.
        name: String = Kind::Name.required().example("\"download\"");
        /// In which direction its data goes. A call and a game go in both; queries go in this direction, replies in
        /// the other.
        direction: Side = names::<Side>().is("up").example("\"down\"");
        /// When it begins.
        start: Time = INSTANT.is("0 s").example("\"10 s\"");
        /// When it ends; later than `start`.
        stop: Option<Time> = INSTANT.derived("the end of the run").example("\"30 s\"");
        also {
            /// What it is.
            kind: FlowKind => FlowKind::read;
        }
    }
}

/// The keys before those of the kind, and those after it.
const PARTS: (&[Key], &[Key]) = split_before(Flow::KEYS, "start");

pub(super) const FLOW: Tagged = Tagged {
    tag: "kind",
    heading: "[[flow]] kind = \"?\"",
    doc: Flow::ABOUT,
    default: None,
    before: PARTS.0,
    variants: FlowKind::VARIANTS,
    after: [PARTS.1, &[]],
};

impl Flow {
    pub(crate) fn toml(&self, scenario: &Scenario) -> Entries {
        let (kind, own) = (self.kind.name(), self.kind.entries(scenario));
        FLOW.entries(kind, own, self.entries(scenario))
    }
}

impl Builder<'_> {
    /// Reads all of `[[flow]]`.
    pub(crate) fn flows(&mut self, root: &Checked, transfer: &Transfer) -> Vec<Flow> {
        let mut flows: Vec<Flow> = Vec::new();
        for table in tables(root, "flow") {
            let flow = Flow::read(self, table);
            self.later_than_start(table, flow.start, flow.stop);
            if flows.iter().any(|other| other.name == flow.name) {
                let message =
                    format!("`{}`: the name \"{}\" is taken already", table.path, flow.name);
                let help = "every flow has a name of its own; give this one another";
                self.wrong(table, "name", ProblemKind::Duplicate, message, help);
            }
            flows.push(flow);
        }
        if !flows.is_empty() {
            self.check_carrier(root, transfer);
            return flows;
        }
        for table in tables(root, "path").into_iter().filter(|t| t.place("cap").is_some()) {
            let message = format!("`{}.cap` has no effect: the file has no [[flow]]", table.path);
            let help = "a tunnel counts what its paths carry; add a [[flow]], or leave it out";
            self.wrong(table, "cap", ProblemKind::Conflict, message, help);
        }
        if let Some(span) = root.place("tunnel").cloned() {
            let message = "`tunnel` carries nothing: the file has no [[flow]]".to_owned();
            let help =
                "add a flow, such as `[[flow]]` with `kind = \"tcp\"`, or leave [tunnel] out";
            self.wrong_at(&span, "tunnel", ProblemKind::Conflict, message, help);
        }
        flows
    }

    /// Checks that the association can carry a tunnel.
    fn check_carrier(&mut self, root: &Checked, transfer: &Transfer) {
        let table = root.table("transfer");
        if transfer.protocol.is_tcp() {
            let message = format!(
                "`transfer.protocol` = \"{}\" does not carry a tunnel: [[flow]] needs SCTP",
                transfer.protocol
            );
            let help = "take \"cmt-sctp\", or leave it out";
            self.wrong(table, "protocol", ProblemKind::Conflict, message, help);
        } else if self.preset != Preset::Live {
            let preset = self.preset;
            let message = format!("`transfer.preset` = \"{preset}\" does not carry a tunnel");
            let help = "take \"live\", or leave it out";
            self.wrong(table, "preset", ProblemKind::Conflict, message, help);
        }
        for (key, given) in [
            ("bytes", transfer.bytes.is_some()),
            ("application", transfer.application != Application::Bulk),
            ("message", transfer.message.is_some()),
            ("unordered", transfer.unordered),
        ] {
            if given {
                let message = format!("`transfer.{key}` has no effect beside [[flow]]");
                let help = "the flows say what is sent; leave it out";
                self.wrong(table, key, ProblemKind::Conflict, message, help);
            }
        }
        let world = root.table("world");
        if world.get::<u32>("associations") != 1 {
            let message = "`world.associations` is not 1: a tunnel is one association".to_owned();
            self.wrong(world, "associations", ProblemKind::Conflict, message, "leave it out");
        }
    }
}
