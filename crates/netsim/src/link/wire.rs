//! Impairments after the queue: loss, damage, duplication, propagation.

use ropewalk_base::{Duration, Rng, Seed, Time};

use super::config::{LinkConfig, LossPlace, Reordering};
use super::in_flight::{Fate, InFlight, InFlightPacket};
use super::jitter::Jitter;
use super::loss::LossModel;
use super::outage::{self, Span};
use super::shaper::Service;
use super::stats::DropCause;
use crate::packet::Packet;
use crate::schedule::Schedule;

/// The wire of one link, with the packets on it. `repr` keeps the order of the fields.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Wire<P> {
    pub(super) in_flight: InFlight<P>,
    /// Latest arrival time of a packet that may not be overtaken.
    last_arrival: Time,
    allow_reorder: bool,
    /// Impairments; `None` on a link without any, the most frequent case.
    impairments: Option<Box<Impairments>>,
    delay: Schedule<Duration>,
}

/// Each impairment has its own random stream, so that enabling one does not change the draws of the others.
#[derive(Clone, Debug)]
struct Impairments {
    loss: Schedule<LossModel>,
    loss_place: LossPlace,
    loss_rng: Rng,
    corruption: f64,
    corruption_rng: Rng,
    duplication: f64,
    duplication_rng: Rng,
    jitter: Option<Jitter>,
    jitter_rng: Rng,
    reordering: Option<Reordering>,
    reordering_rng: Rng,
    /// Spans in which packets are dropped.
    outages: Vec<Span>,
}

impl<P: Clone> Wire<P> {
    pub(super) fn new(config: &LinkConfig, seed: Seed) -> Self {
        Self {
            delay: config.delay.clone(),
            last_arrival: Time::ZERO,
            allow_reorder: config.allow_reorder,
            impairments: Impairments::new(config, seed).map(Box::new),
            in_flight: InFlight::new(config.may_reorder()),
        }
    }

    /// Cause for which a packet offered at `now` is dropped before the queue, if any.
    #[inline]
    pub(super) fn refuses(&mut self, now: Time, flow: u32, round: u64) -> Option<DropCause> {
        let impairments = self.impairments.as_deref_mut()?;
        if outage::covers(&impairments.outages, now) {
            return Some(DropCause::Outage);
        }
        let lost = impairments.loss_place == LossPlace::Entry
            && impairments.loss.at(now).lost(&mut impairments.loss_rng, flow, round);
        lost.then_some(DropCause::Loss)
    }

    /// Sends a packet; returns the number of copies made of it.
    #[inline(always)]
    pub(super) fn send(&mut self, service: Service, packet: Packet<P>) -> u64 {
        let delay = *self.delay.at(service.depart);
        if self.impairments.is_some() {
            return self.send_impaired(service, delay, packet);
        }
        let arrive = self.place(service.depart.saturating_add(delay));
        self.in_flight.push(InFlightPacket { arrive, fate: Fate::Delivered, packet });
        0
    }

    /// Arrival time of a packet in order, unless the link allows reordering.
    #[inline]
    fn place(&mut self, arrive: Time) -> Time {
        if self.allow_reorder {
            return arrive;
        }
        self.last_arrival = self.last_arrival.max(arrive);
        self.last_arrival
    }

    #[inline(never)]
    fn send_impaired(&mut self, service: Service, delay: Duration, packet: Packet<P>) -> u64 {
        let Some(impairments) = self.impairments.as_deref_mut() else { return 0 };
        let fate = impairments.fate(service, &packet);
        let (delay, overtaken) = impairments.delay(delay);
        let twice = impairments.duplicates() && fate == Fate::Delivered;
        let mut arrive = service.depart.saturating_add(delay);
        if !overtaken {
            arrive = self.place(arrive);
        }
        if twice {
            self.in_flight.push(InFlightPacket { arrive, fate, packet: packet.clone() });
        }
        self.in_flight.push(InFlightPacket { arrive, fate, packet });
        u64::from(twice)
    }
}

impl Impairments {
    /// The link's impairments, if any.
    fn new(config: &LinkConfig, seed: Seed) -> Option<Self> {
        let troubled = config.loss.values().any(|model| *model != LossModel::None)
            || config.corruption > 0.0
            || config.duplication > 0.0
            || config.jitter.is_some()
            || config.reordering.is_some()
            || !config.outages.drops().is_empty();
        troubled.then(|| Self {
            loss: config.loss.clone(),
            loss_place: config.loss_place,
            loss_rng: seed.child("loss").rng(),
            corruption: config.corruption,
            corruption_rng: seed.child("corruption").rng(),
            duplication: config.duplication,
            duplication_rng: seed.child("duplication").rng(),
            jitter: config.jitter,
            jitter_rng: seed.child("jitter").rng(),
            reordering: config.reordering,
            reordering_rng: seed.child("reordering").rng(),
            outages: config.outages.drops().to_vec(),
        })
    }

    /// Decides the fate of a packet. Every stream makes its draw independently of the others.
    #[inline]
    fn fate<P>(&mut self, service: Service, packet: &Packet<P>) -> Fate {
        let lost = self.loss_place == LossPlace::Wire
            && self.loss.at(service.start).lost(&mut self.loss_rng, packet.flow, packet.round);
        let damaged = self.corruption > 0.0 && self.corruption_rng.chance(self.corruption);
        if outage::touches(&self.outages, service.start, service.depart) {
            Fate::Dropped(DropCause::Outage)
        } else if lost {
            Fate::Dropped(DropCause::Loss)
        } else if damaged {
            Fate::Dropped(DropCause::Corruption)
        } else {
            Fate::Delivered
        }
    }

    #[inline]
    fn duplicates(&mut self) -> bool {
        self.duplication > 0.0 && self.duplication_rng.chance(self.duplication)
    }

    /// Delay of one packet, and whether others may overtake it.
    #[inline]
    fn delay(&mut self, delay: Duration) -> (Duration, bool) {
        let delay = self.jitter.map_or(delay, |jitter| jitter.apply(delay, &mut self.jitter_rng));
        match self.reordering {
            Some(reordering) if self.reordering_rng.chance(reordering.probability) => {
                (delay.saturating_add(reordering.extra), true)
            }
            _ => (delay, false),
        }
    }
}
