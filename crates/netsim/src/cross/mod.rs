//! Cross traffic: sources that share links with the hosts. Their packets end in a sink.

mod greedy;
mod paced;

use ropewalk_base::{Duration, Rate, Seed, Time};

pub use greedy::{Feedback, Greedy};

use crate::host::Outbox;
use crate::ids::{LinkId, RouteId};
use crate::packet::Packet;
use greedy::GreedySource;
use paced::PacedSource;

/// A payload type that distinguishes cross traffic from the hosts' packets.
pub trait CrossPayload {
    /// The payload of a cross-traffic packet; the source chooses `tag`.
    fn cross(tag: u64) -> Self;
    /// The tag, if this is cross traffic.
    fn cross_tag(&self) -> Option<u64>;
}

/// Configuration of a source, which sends from `start` until `stop`.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossConfig {
    /// Sending pattern.
    pub pattern: Pattern,
    /// Bytes per packet on the wire.
    pub packet: u32,
    /// Time of the first packet.
    pub start: Time,
    /// Time at which the source stops; [`Time::FAR_FUTURE`] for never.
    pub stop: Time,
}

/// Error in the configuration of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CrossError {
    /// The packet size is zero.
    #[error("cross-traffic packets have 0 bytes; 1500 is usual")]
    NoPacket,
    /// The rate is zero.
    #[error("the cross traffic has a rate of 0 bit/s; leave it out instead")]
    NoRate,
    /// The mean on period of an on/off source is zero.
    #[error("the on/off source is on for 0 s; leave it out, or give it a mean spell")]
    NoSpell,
    /// Acknowledgements should use links, but none is given.
    #[error("acknowledgements need a link; name one, or give a feedback delay")]
    NoWayBack,
}

/// Sending pattern of a source.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// Evenly spaced packets.
    Cbr(Rate),
    /// Evenly spaced packets at `rate` during on periods; on and off periods have exponential lengths. Begins
    /// with an on period.
    OnOff {
        /// Rate during an on period.
        rate: Rate,
        /// Mean length of an on period.
        on: Duration,
        /// Mean length of an off period.
        off: Duration,
    },
    /// Exponential gaps with this mean rate.
    Poisson(Rate),
    /// A TCP-like window: additive increase and multiplicative decrease.
    Greedy(Greedy),
}

impl CrossConfig {
    /// Sends packets of 1500 bytes during the entire run.
    pub const fn new(pattern: Pattern) -> Self {
        Self { pattern, packet: 1500, start: Time::ZERO, stop: Time::FAR_FUTURE }
    }

    /// Checks every value.
    ///
    /// # Errors
    /// The first invalid value.
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

    /// The links that carry acknowledgements back, if any.
    pub(crate) fn acknowledged_over(&self) -> Option<&[LinkId]> {
        match &self.pattern {
            Pattern::Greedy(Greedy { feedback: Feedback::Links { links, .. }, .. }) => Some(links),
            _ => None,
        }
    }
}

/// Counters of a source and its receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrossStats {
    /// Packets sent, retransmissions included.
    pub sent: u64,
    /// Packets that reached the receiver.
    pub received: u64,
    /// Bytes that reached the receiver.
    pub received_bytes: u64,
    /// Packets received in order. For a source without feedback, all received packets.
    pub in_order: u64,
    /// Packets retransmitted.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

/// Functions that write and read the payload of cross traffic. Storing them avoids a trait bound on the other
/// methods of a world.
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

/// A source, with the receiver at the end of its route.
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

    /// Handles a data packet at the receiver.
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

    /// Handles an acknowledgement at the sender.
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

    /// Sends as many packets as the window of a greedy source allows.
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
