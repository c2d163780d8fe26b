//! `[transfer]`.

use ropewalk_base::{Duration, Rate};

use super::builder::Builder;
use super::pacing::{PACING, Pacing};
use super::setting::Setting;
use super::world::unusable;
use super::{Congestion, Coupling, Preset, Protocol, Scenario, SchedulerName, WindowManager};
use crate::check::{Checked, Value};
use crate::choice::Choice;
use crate::error::ProblemKind;
use crate::keys::{
    Key, Kind, LONGEST_RUN, PACKET, RATE, Table, WINDOW, choice, names, size, split_before, time,
};
use crate::quantity::{duration_text, size_text};
use crate::toml_text::{inline, quoted};

/// Default duration of a run without a number of bytes.
const DURATION: Duration = Duration::from_secs(60);
/// Default receive buffer without a tunnel, and with one.
const RECEIVE_BUFFER: u64 = 128 << 10;
const TUNNEL_BUFFER: u64 = 8 << 20;
/// Default time limit of a transfer with a number of bytes.
const LIMIT_OF_BYTES: Duration = Duration::from_secs(3600);

/// `[transfer]`.
pub(super) const TRANSFER: Table = Table {
    groups: [PARTS.0, SCHEDULER, PARTS.1, &[], &[], &[]],
    ..Table::new("[transfer]", Transfer::ABOUT, &[])
};

const PARTS: (&[Key], &[Key]) = split_before(Transfer::KEYS, "receive_buffer");

/// A key that is a field of [`SchedulerOptions`](super::SchedulerOptions).
const SCHEDULER: &[Key] = keys! {
    /// Which scheduler assigns data to paths. Short for `scheduler.name`; give one of the two.
    scheduler = names::<SchedulerName>().is("lay").example("\"daps\"");
};

table! {
    /// What is sent, how, and for how long.
    pub struct Transfer {
        /// The transport protocol.
        protocol: Protocol = names::<Protocol>().is("cmt-sctp").example("\"cmt-sctp\"");
        /// How long the run lasts. With `bytes` it is the limit after which an unfinished transfer
        /// is given up.
        duration: Duration => duration =
            time(1, LONGEST_RUN).derived("60 s; 3600 s if `bytes` is given").example("\"100 s\"");
        /// Ends the run when this much user data has been delivered in order, to each association.
        bytes: Option<u64> =
            size(1, 1_000_000_000_000_000).derived("no end but `duration`").example("\"20 MB\"");
        /// Initial time that all figures leave out; shorter than `duration`. Twenty of the longest round
        /// trips are
        /// enough to see a steady state.
        warmup: Duration = time(0, LONGEST_RUN).is("0 s").example("\"20 s\"");
        /// Root of all randomness. The same file with the same seed gives the same bytes.
        seed: u64 = Kind::Integer { min: 0, max: i64::MAX as u64 }.is("1").example("7");
        /// Shared by all paths, at least one packet. Below the sum of the rates times the longest round
        /// trip, the slow path limits a scheduler that ignores delay.
        receive_buffer: u64 => receive_buffer =
            WINDOW.derived("128 KiB; 8 MiB with `[[flow]]`").example("\"45 kB\"");
        /// A full packet on the wire, IP and transport headers included.
        packet: u32 = PACKET.is("1500 B").example("\"1500 B\"");
        /// Source of all values that `[sctp]` or `[tcp]` does not set.
        preset: Preset => preset = names::<Preset>()
            .derived("rfc9260 for SCTP, `live` for it with `[[flow]]`, rfc8684 for TCP")
            .example("\"paper-2013\"");
        /// How congestion windows grow and shrink. Where paths share a bottleneck, uncoupled
        /// algorithms take a flow's share for each path; coupled ones take one for all. Under SCTP, all
        /// but `rfc9260` use TCP's initial window, minimum threshold and byte counting, unless `[sctp]`
        /// sets them.
        congestion: Congestion => congestion =
            names::<Congestion>()
                .derived("rfc9260 for SCTP, bbr for it under the preset `live`, newreno for TCP, cubic for it under `linux-6`")
                .example("\"lia\"");
        /// `cubic`: whether a flow whose loss comes at a smaller window than the previous one releases
        /// capacity to others (RFC 9438, Section 4.7). With random losses this costs a single flow some
        /// throughput.
        fast_convergence: bool = Kind::Bool.is("true").example("false");
        /// Whether the first slow start of a path ends when round trips grow (HyStart++, RFC 9406), before
        /// the queue overflows. `wvegas`, `bbr` and `bbr-v1` have rules of their own.
        hystart: bool => hystart =
            Kind::Bool.derived("true under the preset `linux-6`, otherwise false").example("true");
        /// Whether a loss reduces the window in proportion to what is delivered in recovery (PRR, RFC 6937bis),
        /// instead of at once. Sending then continues evenly during recovery. `bbr` and `bbr-v1` have rules of their own.
        prr: bool => prr =
            Kind::Bool.derived("true under the preset `linux-6`, otherwise false").example("true");
        /// `bbr`: the loss rate of a round up to which losses do not lower its estimates while it does not
        /// probe for bandwidth, in steps of 0.001. On a path without a queue, losses that chance explains at this rate
        /// do not count either, also while it probes. The draft tolerates none. With a larger value, losses
        /// at random cost less, and a flow yields less to others.
        tolerated_loss: f64 => tolerated_loss = Kind::Number { min: 0.0, max: 0.1 }
            .derived("0.02 under the preset `live`, otherwise 0")
            .example("0.02");
        /// `bbr`: whether the probe of the round trip each 5 s (ProbeRTT) drains only a tenth of the data in flight, for a
        /// round, if the round trip came close to the minimum while the sender had no queue. Each twelfth probe is a full
        /// one, and all are with `coupling`. The draft always drains half of the data in flight for 200 ms.
        brief_probe_rtt: bool => brief_probe_rtt =
            Kind::Bool.derived("true under the preset `live`, otherwise false").example("true");
        /// `rfc9260`, `newreno`, `cubic`, `bbr` and `prague`: which paths act together as one flow, so that they take one
        /// flow's share of a bottleneck that they share. The other algorithms couple all paths in any case.
        /// `detected` needs `scheduler.forward_delay = "timestamp"`, and takes 10 s or more to notice.
        coupling: Coupling = names::<Coupling>().is("none").example("\"detected\"");
        /// Whether a window is spread over a round trip instead of being sent at once, and how. `bbr`,
        /// `bbr-v1` and `prague` always pace, at their own rates.
        pacing: Option<Pacing> = PACING
            .derived("true under the preset `live`, otherwise false")
            .example("{ gain = 1.2, burst = \"2 packets\" }");
        /// How the receive buffer is shared between congestion windows. `ropewalk tune` finds the
        /// limits for `static`.
        window_manager: WindowManager = names::<WindowManager>().is("none").example("\"static\"");
        /// Where the data comes from.
        application: Application = Kind::OneOf(&[Kind::Choice(BULK), Kind::Table(&STEADY)])
            .is("bulk")
            .example("{ rate = \"2 Mbit/s\", message = \"1000 B\" }");
        /// Number of streams of the association; messages use them in turn.
        streams: u16 = Kind::Integer { min: 1, max: 65_535 }.is("1").example("4");
        /// Size of the messages of a bulk transfer. One larger than a chunk is fragmented.
        message: Option<u64> = size(1, 1_000_000_000).derived("one full chunk").example("\"4 kB\"");
        /// Deliver messages on arrival instead of in order.
        unordered: bool = Kind::Bool.is("false").example("true");
    }
}

/// Source of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// An unlimited supply of data.
    Bulk,
    /// Messages at a constant rate.
    Steady(Steady),
}

table! {
    /// Messages at a constant rate instead of bulk data.
    #[derive(Copy, Eq)]
    pub struct Steady {
        /// User data that the application sends per second.
        rate: Rate = RATE.is("1 Mbit/s").example("\"2 Mbit/s\"");
        /// Size of each message; rate and size determine the interval between messages.
        message: u64 = size(1, 1_000_000_000).is("1000 B").example("\"1000 B\"");
    }
}

const BULK: &[Choice] = &[choice("bulk", "There is always more to send.")];
const STEADY: Table = Table::new("application = { ... }", Steady::ABOUT, Steady::KEYS);

impl Setting for Application {
    fn read(builder: &mut Builder<'_>, value: &Value) -> Self {
        match value {
            Value::Table(steady) => Self::Steady(Steady::read(builder, steady)),
            _ => Self::Bulk,
        }
    }

    fn toml(&self, _: &Kind, scenario: &Scenario) -> Option<String> {
        Some(match self {
            Self::Bulk => quoted("bulk"),
            Self::Steady(steady) => inline(steady.entries(scenario)),
        })
    }
}

impl Builder<'_> {
    pub(crate) fn transfer(&mut self, table: &Checked) -> Transfer {
        let transfer = Transfer::read(self, table);
        if let Some((why, help)) = unusable(transfer.congestion, &transfer) {
            let shown = self.excerpt(table, "congestion");
            let message = format!("`transfer.congestion` = {shown} {why}");
            self.wrong(table, "congestion", ProblemKind::Conflict, message, help);
        }
        if transfer.warmup >= transfer.duration {
            let message = format!(
                "`transfer.warmup` = {} is not shorter than `transfer.duration`, {}",
                self.excerpt(table, "warmup"),
                duration_text(transfer.duration)
            );
            let help = "nothing would be left to measure; shorten the warm-up or lengthen the run";
            self.wrong(table, "warmup", ProblemKind::Conflict, message, help);
        }
        transfer
    }
}

fn duration(_: &mut Builder<'_>, table: &Checked, key: &str) -> Duration {
    let fallback = if table.place("bytes").is_some() { LIMIT_OF_BYTES } else { DURATION };
    table.opt(key).unwrap_or(fallback)
}

fn congestion(builder: &mut Builder<'_>, table: &Checked, key: &str) -> Congestion {
    table.opt(key).unwrap_or(match builder.preset {
        Preset::Live => Congestion::Bbr,
        Preset::Rfc9260 | Preset::Paper2013 => Congestion::Rfc9260,
        Preset::Linux6 => Congestion::Cubic,
        Preset::Rfc8684 | Preset::Chihani2011 => Congestion::NewReno,
    })
}

fn hystart(builder: &mut Builder<'_>, table: &Checked, key: &str) -> bool {
    table.opt(key).unwrap_or(builder.preset == Preset::Linux6)
}

fn prr(builder: &mut Builder<'_>, table: &Checked, key: &str) -> bool {
    table.opt(key).unwrap_or(builder.preset == Preset::Linux6)
}

fn tolerated_loss(builder: &mut Builder<'_>, table: &Checked, key: &str) -> f64 {
    table.opt(key).unwrap_or(if builder.preset == Preset::Live { 0.02 } else { 0.0 })
}

fn brief_probe_rtt(builder: &mut Builder<'_>, table: &Checked, key: &str) -> bool {
    table.opt(key).unwrap_or(builder.preset == Preset::Live)
}

/// The receive buffer in bytes; at least a packet.
fn receive_buffer(builder: &mut Builder<'_>, table: &Checked, _: &str) -> u64 {
    let packet = u64::from(builder.packet);
    let bytes = match table.value("receive_buffer") {
        Some(Value::Packets(n)) => n * packet,
        Some(_) => table.get("receive_buffer"),
        // Packets of a tunnel do not wait in it. It must hold the packets in flight on the slowest
        // path.
        None if builder.has_tunnel => TUNNEL_BUFFER,
        None => RECEIVE_BUFFER,
    };
    let largest = u64::from(u32::MAX);
    if bytes < packet || bytes > largest {
        let (what, near) = match bytes < packet {
            true => (format!("smaller than one packet, {}", size_text(packet)), packet),
            false => (format!("larger than a window can be, {largest} B"), largest),
        };
        let text = builder.excerpt(table, "receive_buffer");
        let message = format!("`transfer.receive_buffer` = {text} is {what}");
        let help = format!("the nearest valid value is \"{}\"", size_text(near));
        builder.wrong(table, "receive_buffer", ProblemKind::OutOfRange, message, help);
    }
    bytes
}

/// The preset; its default depends on the protocol.
fn preset(builder: &mut Builder<'_>, table: &Checked, key: &str) -> Preset {
    let protocol: Protocol = table.get("protocol");
    let fallback = match (protocol.is_tcp(), builder.has_tunnel) {
        (true, _) => Preset::Rfc8684,
        (false, true) => Preset::Live,
        (false, false) => Preset::Rfc9260,
    };
    builder.preset = table.opt(key).unwrap_or(fallback);
    let preset = builder.preset;
    if preset.is_tcp() != protocol.is_tcp() {
        let message = format!(
            "`transfer.preset` = {} says nothing about `transfer.protocol` = \"{protocol}\"",
            builder.excerpt(table, "preset")
        );
        let help = format!("leave it out, or take \"{fallback}\"");
        builder.wrong(table, "preset", ProblemKind::Conflict, message, help);
    }
    preset
}
