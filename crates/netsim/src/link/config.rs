//! How a link is set up.

use core::fmt;

use ropewalk_base::{Duration, Rate};

use super::jitter::Jitter;
use super::loss::LossModel;
use super::outage::{Outages, Span};
use super::queue::QueueModel;
use super::shaper::RateModel;
use crate::schedule::{OutOfOrder, Schedule};

/// Where the loss model takes packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossPlace {
    /// On the wire, after they have waited and used capacity, as radio loses them.
    #[default]
    Wire,
    /// Before the queue, so that a lost packet costs the link nothing.
    Entry,
}

/// Some packets take longer and may be overtaken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// The share of packets concerned.
    pub probability: f64,
    /// How much longer they take.
    pub extra: Duration,
}

/// A link, one direction. [`LinkConfig::new`] gives a plain one; the fields say what else it does.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// How fast it sends.
    pub rate: RateModel,
    /// Propagation delay. A packet takes the delay in force when its last bit is sent.
    pub delay: Schedule<Duration>,
    /// Which packets may wait.
    pub queue: QueueModel,
    /// Which packets are lost; the model in force when the first bit is sent (or at the offer, for
    /// [`LossPlace::Entry`]) decides.
    pub loss: Schedule<LossModel>,
    /// Where they are lost.
    pub loss_place: LossPlace,
    /// The share of packets that arrive damaged; counted as lost, after using capacity.
    pub corruption: f64,
    /// The share of packets that arrive twice, the copy right behind.
    pub duplication: f64,
    /// A random addition to the delay.
    pub jitter: Option<Jitter>,
    /// Late packets that others may overtake.
    pub reordering: Option<Reordering>,
    /// Packets may overtake each other where jitter or a step of the delay makes them; otherwise the
    /// later one arrives right behind the earlier.
    pub allow_reorder: bool,
    /// When it is down.
    pub outages: Outages,
}

impl LinkConfig {
    /// A link of constant rate and delay, an unlimited queue and no loss.
    pub const fn new(rate: Rate, delay: Duration) -> Self {
        Self::with_rate_model(RateModel::Constant(rate), delay)
    }

    /// A link that only delays.
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

    /// The same with another queue.
    #[must_use]
    pub fn queue(self, queue: QueueModel) -> Self {
        Self { queue, ..self }
    }

    /// The same with a loss model that never changes.
    #[must_use]
    pub fn loss(self, loss: LossModel) -> Self {
        Self { loss: Schedule::constant(loss), ..self }
    }

    /// Checks every value.
    ///
    /// # Errors
    /// With the first that cannot be.
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
            QueueModel::CoDel(codel) if codel.interval.is_zero() => Err(ConfigError::CoDelInterval),
            QueueModel::CoDel(_) | QueueModel::DropTail(_) => Ok(()),
        }
    }

    /// Whether a packet may arrive before one sent earlier.
    pub(super) fn may_reorder(&self) -> bool {
        self.allow_reorder || self.reordering.is_some()
    }
}

/// Why a link cannot be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConfigError {
    /// The rate goes back in time.
    RateSteps(OutOfOrder),
    /// Not a probability.
    Probability {
        /// What it was to be.
        name: &'static str,
        /// The value.
        value: f64,
    },
    /// An outage that is empty or begins before the one before it ends.
    Outage(Span),
    /// A parameter of RED.
    Red {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// An interval of zero would drop everything.
    CoDelInterval,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateSteps(error) => write!(f, "rate: {error}"),
            Self::Probability { name, value } => {
                write!(f, "{name} is {value}; a probability lies within 0 and 1")
            }
            Self::Outage(Span { from, until }) => write!(
                f,
                "the outage from {from} to {until} is empty or overlaps the one before; \
                 list outages in order of time"
            ),
            Self::Red { name, value } => write!(
                f,
                "RED's {name} is {value}; 0 <= min_threshold < max_threshold, probability and weight \
                 lie within 0 and 1, packet_time is above 0"
            ),
            Self::CoDelInterval => write!(f, "CoDel's interval is 0; 100 ms is usual"),
        }
    }
}

impl core::error::Error for ConfigError {}
