//! Configuration of a link.

use ropewalk_base::{Duration, Rate};

use super::jitter::Jitter;
use super::loss::LossModel;
use super::outage::{Outages, Span};
use super::queue::QueueModel;
use super::shaper::RateModel;
use crate::schedule::{OutOfOrder, Schedule};

/// Where the loss model applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossPlace {
    /// On the wire, after queueing and transmission, as on a radio link.
    #[default]
    Wire,
    /// Before the queue, so that a lost packet uses no capacity.
    Entry,
}

/// Delays some packets, so that others may overtake them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// Probability that a packet is delayed.
    pub probability: f64,
    /// Additional delay of such a packet.
    pub extra: Duration,
}

/// One direction of a link. [`LinkConfig::new`] gives constant rate and delay; the fields add impairments.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Transmission rate.
    pub rate: RateModel,
    /// Propagation delay. The value at the end of a packet's transmission applies to it.
    pub delay: Schedule<Duration>,
    /// Queue management.
    pub queue: QueueModel,
    /// Loss model. The model at the start of a packet's transmission applies (with [`LossPlace::Entry`], at the
    /// offer).
    pub loss: Schedule<LossModel>,
    /// Where the loss model applies.
    pub loss_place: LossPlace,
    /// Probability that a packet arrives damaged. It uses capacity and is counted as lost.
    pub corruption: f64,
    /// Probability that a packet arrives twice, the copy directly after the original.
    pub duplication: f64,
    /// Random addition to the delay.
    pub jitter: Option<Jitter>,
    /// Additional delay of some packets, which others may overtake.
    pub reordering: Option<Reordering>,
    /// Whether packets may overtake each other because of jitter or a step of the delay. Otherwise the later
    /// packet arrives directly after the earlier one.
    pub allow_reorder: bool,
    /// Periods in which the link is down.
    pub outages: Outages,
}

impl LinkConfig {
    /// A link of constant rate and delay, an unlimited queue and no loss.
    pub const fn new(rate: Rate, delay: Duration) -> Self {
        Self::with_rate_model(RateModel::Constant(rate), delay)
    }

    /// A link with a delay and no other effect.
    pub const fn delay_only(delay: Duration) -> Self {
        Self::with_rate_model(RateModel::Unlimited, delay)
    }

    /// A link of the given rate model and constant delay, an unlimited queue and no loss.
    pub const fn with_rate_model(rate: RateModel, delay: Duration) -> Self {
        Self {
            rate,
            delay: Schedule::constant(delay),
            queue: QueueModel::DropTail(super::queue::Limit::Unlimited),
            loss: Schedule::constant(LossModel::None),
            loss_place: LossPlace::Wire,
            corruption: 0.0,
            duplication: 0.0,
            jitter: None,
            reordering: None,
            allow_reorder: false,
            outages: Outages { spans: Vec::new(), effect: super::outage::Outage::Drop },
        }
    }

    /// Replaces the queue.
    #[must_use]
    pub fn queue(self, queue: QueueModel) -> Self {
        Self { queue, ..self }
    }

    /// Replaces the loss model by a constant one.
    #[must_use]
    pub fn loss(self, loss: LossModel) -> Self {
        Self { loss: Schedule::constant(loss), ..self }
    }

    /// Checks every value.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.rate.check().map_err(ConfigError::RateSteps)?;
        let reordering = self.reordering.map_or(0.0, |reordering| reordering.probability);
        for (name, value) in [
            ("corruption", self.corruption),
            ("duplication", self.duplication),
            ("reordering probability", reordering),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return Err(ConfigError::Probability { name, value });
            }
        }
        if let Some(span) = self.outages.misplaced() {
            return Err(ConfigError::Outage(span));
        }
        match &self.queue {
            QueueModel::Red(red) => match red.misfit() {
                Some((name, value)) => Err(ConfigError::Red { name, value }),
                None => Ok(()),
            },
            QueueModel::DualPi2(settings) => match settings.misfit() {
                Some((name, value)) => Err(ConfigError::DualPi2 { name, value }),
                None => Ok(()),
            },
            QueueModel::CoDel(codel) if codel.interval.is_zero() => Err(ConfigError::CoDelInterval),
            QueueModel::CoDel(_) | QueueModel::DropTail(_) => Ok(()),
        }
    }

    /// Whether a packet may arrive before one sent earlier.
    pub(super) fn may_reorder(&self) -> bool {
        self.allow_reorder || self.reordering.is_some()
    }
}

/// Error in the configuration of a link.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The steps of the rate are not in order of time.
    #[error("rate: {0}")]
    RateSteps(OutOfOrder),
    /// A value is not a probability.
    #[error("{name} is {value}; a probability lies within 0 and 1")]
    Probability {
        /// Name of the parameter.
        name: &'static str,
        /// The value.
        value: f64,
    },
    /// An outage is empty, or begins before the previous one ends.
    #[error(
        "the outage from {} to {} is empty or overlaps the one before; list outages in order of time",
        .0.from, .0.until
    )]
    Outage(Span),
    /// A parameter of RED is out of range.
    #[error(
        "RED's {name} is {value}; 0 <= min_threshold < max_threshold, probability and weight \
         lie within 0 and 1, packet_time is above 0"
    )]
    Red {
        /// Name of the parameter.
        name: &'static str,
        /// Value of the parameter.
        value: f64,
    },
    /// The interval of CoDel is zero, which would drop everything.
    #[error("CoDel's interval is 0; 100 ms is usual")]
    CoDelInterval,
    /// A parameter of DualPI2 is out of range.
    #[error(
        "DualPI2's {name} is {value}; target is above 0, longest_rtt above 3 ns, coupling lies within 0 and \
         1000, classic_weight from 0 to below 1"
    )]
    DualPi2 {
        /// Name of the parameter.
        name: &'static str,
        /// Value of the parameter.
        value: f64,
    },
}
