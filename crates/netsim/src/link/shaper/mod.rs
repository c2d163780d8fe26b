//! Shapers: when a packet's transmission begins and ends.
//!
//! A shaper serves packets in order and knows the future of its rate, so it can tell both instants as
//! soon as the packet is offered.

mod constant;
mod steps;
mod trace;

use std::sync::Arc;

use ropewalk_base::{Rate, Time};

use crate::link::outage::Span;
use crate::mahimahi::Trace;
use crate::schedule::{OutOfOrder, in_order};

use constant::Constant;
use steps::Steps;
use trace::TraceShaper;

/// How fast a link sends.
#[derive(Clone, Debug, PartialEq)]
pub enum RateModel {
    /// Sending takes no time.
    Unlimited,
    /// The same rate for ever.
    Constant(Rate),
    /// A rate that changes at known instants. A packet in transmission at a step keeps what it has sent, and the rest
    /// goes at the new rate; a rate of zero holds it until the next step.
    Steps {
        /// Until the first step.
        initial: Rate,
        /// Instant and new rate, in order of time.
        steps: Vec<(Time, Rate)>,
    },
    /// Opportunities to deliver 1504 bytes each, repeated for ever.
    Trace(Arc<Trace>),
}

impl RateModel {
    pub(super) fn check(&self) -> Result<(), OutOfOrder> {
        match self {
            Self::Steps { steps, .. } => in_order(steps),
            Self::Unlimited | Self::Constant(_) | Self::Trace(_) => Ok(()),
        }
    }
}

/// The transmission of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Service {
    /// Its first bit is sent; until then it waits in the queue.
    pub(super) start: Time,
    /// Its last bit has been sent. [`Time::FAR_FUTURE`] if that never happens.
    pub(super) depart: Time,
}

#[derive(Clone, Debug)]
pub(super) enum Shaper {
    Unlimited,
    Constant(Constant),
    Steps(Steps),
    Trace(TraceShaper),
}

impl Shaper {
    /// A shaper that rests during `holds`, which are in order and apart.
    pub(super) fn new(model: &RateModel, holds: &[Span]) -> Self {
        match model {
            RateModel::Unlimited if holds.is_empty() => Self::Unlimited,
            // Fast enough that no packet takes a nanosecond, slow enough for the arithmetic.
            RateModel::Unlimited => Self::Steps(Steps::new(Rate::from_bps(1 << 60), &[], holds)),
            RateModel::Constant(rate) if holds.is_empty() && *rate > Rate::ZERO => {
                Self::Constant(Constant::new(*rate))
            }
            RateModel::Constant(rate) => Self::Steps(Steps::new(*rate, &[], holds)),
            RateModel::Steps { initial, steps } => Self::Steps(Steps::new(*initial, steps, holds)),
            RateModel::Trace(trace) => Self::Trace(TraceShaper::new(trace.clone(), holds.to_vec())),
        }
    }

    /// When a packet that is ready at `ready` would begin to be sent.
    #[inline]
    pub(super) fn next_start(&self, ready: Time) -> Time {
        // Nearly all links are of this kind, and it costs least.
        if let Self::Constant(shaper) = self {
            return shaper.next_start(ready);
        }
        self.next_start_unusual(ready)
    }

    #[inline(never)]
    fn next_start_unusual(&self, ready: Time) -> Time {
        match self {
            Self::Unlimited => ready,
            Self::Constant(shaper) => shaper.next_start(ready),
            Self::Steps(shaper) => shaper.next_start(ready),
            Self::Trace(shaper) => shaper.next_start(ready),
        }
    }

    /// Sends the next `bytes` bytes, which are ready at `ready`.
    #[inline]
    pub(super) fn serve(&mut self, ready: Time, bytes: u32) -> Service {
        if let Self::Constant(shaper) = self {
            return shaper.serve(ready, bytes);
        }
        self.serve_unusual(ready, bytes)
    }

    #[inline(never)]
    fn serve_unusual(&mut self, ready: Time, bytes: u32) -> Service {
        match self {
            Self::Unlimited => Service { start: ready, depart: ready },
            Self::Constant(shaper) => shaper.serve(ready, bytes),
            Self::Steps(shaper) => shaper.serve(ready, bytes),
            Self::Trace(shaper) => shaper.serve(ready, bytes),
        }
    }

    /// Whole bytes that could have been sent from the beginning of the run until `until`; `None`
    /// without a limit.
    pub(super) fn capacity_bytes(&self, until: Time) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Constant(shaper) => Some(shaper.capacity_bytes(until)),
            Self::Steps(shaper) => Some(shaper.capacity_bytes(until)),
            Self::Trace(shaper) => Some(shaper.capacity_bytes(until)),
        }
    }
}
