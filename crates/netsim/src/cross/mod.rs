//! Cross traffic: sources that share links with the hosts, and whose packets end in a sink.

mod greedy;
mod paced;

use core::fmt;

use ropewalk_base::{Duration, Rate, Seed, Time};

pub use greedy::{Feedback, Greedy};

use crate::host::Outbox;
use crate::packet::Packet;
use crate::route::{LinkId, RouteId};
use greedy::GreedySource;
use paced::PacedSource;

/// A source of cross traffic in a world, in order of addition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CrossId(pub u32);

/// A payload that can tell cross traffic from the hosts' own.
pub trait CrossPayload {
    /// The payload of a cross-traffic packet; `tag` is the source's own.
    fn cross(tag: u64) -> Self;
    /// The tag, if this is cross traffic.
    fn cross_tag(&self) -> Option<u64>;
}

/// What a source does, from `start` until `stop`.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossConfig {
    /// How it sends.
    pub pattern: Pattern,
    /// Bytes per packet on the wire.
    pub packet: u32,
    /// When it begins.
    pub start: Time,
    /// When it ceases; [`Time::FAR_FUTURE`] for never.
    pub stop: Time,
}

/// Why a source cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossError {
    /// Packets of no bytes.
    NoPacket,
    /// A rate of zero.
    NoRate,
    /// An on/off source that is never on.
    NoSpell,
    /// Acknowledgements that are to travel over no link.
    NoWayBack,
}

impl fmt::Display for CrossError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoPacket => "cross-traffic packets have 0 bytes; 1500 is usual",
            Self::NoRate => "the cross traffic has a rate of 0 bit/s; leave it out instead",
            Self::NoSpell => {
                "the on/off source is on for 0 s; leave it out, or give it a mean spell"
            }
            Self::NoWayBack => "acknowledgements need a link; name one, or give a feedback delay",
        })
    }
}

impl core::error::Error for CrossError {}

/// How a source sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// Evenly spaced packets.
    Cbr(Rate),
    /// Evenly spaced packets at `rate` in spells of exponential length, with pauses of exponential length. It begins with
    /// a spell.
    OnOff {
        /// While on.
        rate: Rate,
        /// Mean length of a spell.
        on: Duration,
        /// Mean length of a pause.
        off: Duration,
    },
    /// Exponential gaps of this mean rate.
    Poisson(Rate),
    /// As much as additive increase and multiplicative decrease allow.
    Greedy(Greedy),
}

impl CrossConfig {
    /// Packets of 1500 bytes for the whole run.
    pub const fn new(pattern: Pattern) -> Self {
        Self { pattern, packet: 1500, start: Time::ZERO, stop: Time::FAR_FUTURE }
    }

    /// Checks every value.
    ///
    /// # Errors
    /// With the first that cannot be.
    pub fn check(&self) -> Result<(), CrossError> {
        if self.packet == 0 {
            return Err(CrossError::NoPacket);
        }
        match &self.pattern {
            Pattern::Cbr(rate) | Pattern::Poisson(rate) | Pattern::OnOff { rate, .. }
                if *rate == Rate::ZERO =>
            {
                Err(CrossError::NoRate)
            }
            Pattern::OnOff { on, .. } if on.is_zero() => Err(CrossError::NoSpell),
            Pattern::Greedy(greedy) => match &greedy.feedback {
                Feedback::Links { links, .. } if links.is_empty() => Err(CrossError::NoWayBack),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// The links that bring acknowledgements back, if it wants any.
    pub(crate) fn acknowledged_over(&self) -> Option<&[LinkId]> {
        match &self.pattern {
            Pattern::Greedy(Greedy { feedback: Feedback::Links { links, .. }, .. }) => Some(links),
            _ => None,
        }
    }
}

/// What a source and its receiver have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrossStats {
    /// Packets sent, again or not.
    pub sent: u64,
    /// Packets that reached the receiver.
    pub received: u64,
    /// Bytes that reached the receiver.
    pub received_bytes: u64,
    /// Packets received in order without a gap; of a source without feedback, all received.
    pub in_order: u64,
    /// Packets sent again.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

/// How to make and read the payload of cross traffic: the trait's functions, kept by a world whose
/// other methods need not ask for the trait.
#[derive(Debug)]
pub(crate) struct Tags<P> {
    make: fn(u64) -> P,
    read: fn(&P) -> Option<u64>,
}

impl<P> Clone for Tags<P> {
    fn clone(&self) -> Self {
        Self { make: self.make, read: self.read }
    }
}

impl<P> Tags<P> {
    pub(crate) fn of() -> Self
    where
        P: CrossPayload,
    {
        Self { make: P::cross, read: P::cross_tag }
    }

    fn tag(&self, packet: &Packet<P>) -> u64 {
        (self.read)(&packet.payload).expect("only cross traffic takes a cross-traffic route")
    }
}

/// A source, and the receiver at the end of its route.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    flow: u32,
    packet: u32,
    route: RouteId,
    stats: CrossStats,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Paced(PacedSource),
    Greedy(Box<GreedySource>),
}

impl Source {
    pub(crate) fn new(
        config: &CrossConfig,
        flow: u32,
        route: RouteId,
        back: Option<RouteId>,
        seed: Seed,
    ) -> Self {
        let kind = match &config.pattern {
            Pattern::Greedy(greedy) => {
                Kind::Greedy(Box::new(GreedySource::new(greedy, back, config.start, config.stop)))
            }
            _ => Kind::Paced(PacedSource::new(config, seed.rng())),
        };
        Self { flow, packet: config.packet, route, stats: CrossStats::default(), kind }
    }

    pub(crate) fn stats(&self) -> CrossStats {
        let mut stats = self.stats;
        match &self.kind {
            Kind::Paced(_) => stats.in_order = stats.received,
            Kind::Greedy(source) => source.add_to(&mut stats),
        }
        stats
    }

    pub(crate) fn next_wake(&self) -> Option<Time> {
        match &self.kind {
            Kind::Paced(source) => source.next_wake(),
            Kind::Greedy(source) => source.next_wake(),
        }
    }

    pub(crate) fn wake<P: Clone>(&mut self, now: Time, tags: &Tags<P>, out: &mut Outbox<'_, P>) {
        match &mut self.kind {
            Kind::Paced(source) => {
                while source.due(now) {
                    let packet = Packet::new(self.packet, self.flow, (tags.make)(self.stats.sent));
                    self.stats.sent += 1;
                    out.send(self.route, packet);
                }
            }
            Kind::Greedy(source) => {
                source.wake(now);
                self.send_allowed(now, tags, out);
            }
        }
    }

    /// A data packet has reached the receiver.
    pub(crate) fn delivered<P: Clone>(
        &mut self,
        now: Time,
        packet: &Packet<P>,
        tags: &Tags<P>,
        out: &mut Outbox<'_, P>,
    ) {
        self.stats.received += 1;
        self.stats.received_bytes += u64::from(packet.size);
        if let Kind::Greedy(source) = &mut self.kind
            && let Some(ack) = source.receive(now, tags.tag(packet))
        {
            let mut reply = Packet::new(ack.size, self.flow, (tags.make)(ack.next));
            reply.round = packet.round;
            out.send(ack.route, reply);
        }
    }

    /// An acknowledgement has reached the sender.
    pub(crate) fn acknowledged<P: Clone>(
        &mut self,
        now: Time,
        packet: &Packet<P>,
        tags: &Tags<P>,
        out: &mut Outbox<'_, P>,
    ) {
        if let Kind::Greedy(source) = &mut self.kind {
            source.on_ack(now, tags.tag(packet));
            self.send_allowed(now, tags, out);
        }
    }

    /// Sends whatever a greedy source's window allows.
    fn send_allowed<P: Clone>(&mut self, now: Time, tags: &Tags<P>, out: &mut Outbox<'_, P>) {
        let Kind::Greedy(source) = &mut self.kind else { return };
        while let Some(segment) = source.poll_send(now) {
            let mut packet = Packet::new(self.packet, self.flow, (tags.make)(segment.number));
            packet.round = segment.round;
            self.stats.sent += 1;
            out.send(self.route, packet);
        }
    }
}
