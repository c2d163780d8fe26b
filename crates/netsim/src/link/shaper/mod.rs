//! Shapers: begin and end of each packet's transmission.
//!
//! A shaper serves packets in order and knows its future rate. It therefore computes both times when the packet
//! is offered.

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

/// Transmission rate of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum RateModel {
    /// Transmission takes no time.
    Unlimited,
    /// A constant rate.
    Constant(Rate),
    /// A rate that changes at known times. The rest of a packet in transmission continues at the new rate; a
    /// rate of zero pauses it until the next step.
    Steps {
        /// Rate before the first step.
        initial: Rate,
        /// Time and new rate of each step, in order of time.
        steps: Vec<(Time, Rate)>,
    },
    /// A trace of opportunities to deliver 1504 bytes each, repeated indefinitely.
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
    /// Start of transmission; the packet waits in the queue before it.
    pub(super) start: Time,
    /// End of transmission; [`Time::FAR_FUTURE`] if it never ends.
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
    /// A shaper that pauses during `holds`, which are in order and do not overlap.
    pub(super) fn new(model: &RateModel, holds: &[Span]) -> Self {
        match model {
            RateModel::Unlimited if holds.is_empty() => Self::Unlimited,
            // Fast enough that no packet takes a nanosecond, without overflow of the arithmetic.
            RateModel::Unlimited => Self::Steps(Steps::new(Rate::from_bps(1 << 60), &[], holds)),
            RateModel::Constant(rate) if holds.is_empty() && *rate > Rate::ZERO => {
                Self::Constant(Constant::new(*rate))
            }
            RateModel::Constant(rate) => Self::Steps(Steps::new(*rate, &[], holds)),
            RateModel::Steps { initial, steps } => Self::Steps(Steps::new(*initial, steps, holds)),
            RateModel::Trace(trace) => Self::Trace(TraceShaper::new(trace.clone(), holds.to_vec())),
        }
    }

    /// Time at which transmission of a packet that is ready at `ready` would begin.
    #[inline]
    pub(super) fn next_start(&self, ready: Time) -> Time {
        // Fast path for the most frequent and cheapest kind.
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

    /// Transmits the next `bytes` bytes, which are ready at `ready`.
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

    /// Whole bytes that could have been sent from the start of the run until `until`; `None` if unlimited.
    pub(super) fn capacity_bytes(&self, until: Time) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Constant(shaper) => Some(shaper.capacity_bytes(until)),
            Self::Steps(shaper) => Some(shaper.capacity_bytes(until)),
            Self::Trace(shaper) => Some(shaper.capacity_bytes(until)),
        }
    }
}
