//! Schedulers by name.

use core::fmt;

use super::{
    Backup, Bas, Blest, BlestOptions, Daps, DapsLcm, DapsOptions, Ecf, Lay, LayOptions, Linux,
    MinRtt, Ods, Otias, OtiasForm, Quota, ReceptionIndex, Redundant, RoundRobin, Scheduler, Stms,
    StmsOptions, Sttf, WeightSource, Weighted, ecf, linux,
};
use crate::nearest_name;

/// Options of the built-in schedulers. Each scheduler reads its own fields only.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SchedulerOptions {
    /// `round-robin`: how much a path sends in its turn. Default [`Quota::Window`].
    pub quota: Quota,
    /// `weighted`: what the shares are proportional to. Default [`WeightSource::Configured`].
    pub weights: WeightSource,
    /// `redundant`: copies of each chunk, from 1 to the number of paths; fractions mix. Default infinity:
    /// a copy on every path.
    pub copies: f64,
    /// `daps` and `daps-lcm`.
    pub daps: DapsOptions,
    /// `bas`: whether the forward delay counts. Default no, as published.
    pub bas_with_delay: bool,
    /// `otias`: how the wait behind a queue is counted. Default [`OtiasForm::Ceil`].
    pub otias_form: OtiasForm,
    /// `blest`.
    pub blest: BlestOptions,
    /// `ecf`: hysteresis of waiting, a factor less 1. Default 0.25 (Lim et al., 2017).
    pub ecf_beta: f64,
    /// `stms`.
    pub stms: StmsOptions,
    /// `linux`: bytes that stay together on one path. Default 65 428, the kernel's value.
    pub linux_burst: u64,
    /// `lay`.
    pub lay: LayOptions,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        Self {
            quota: Quota::default(),
            weights: WeightSource::default(),
            copies: f64::INFINITY,
            daps: DapsOptions::default(),
            bas_with_delay: false,
            otias_form: OtiasForm::default(),
            blest: BlestOptions::default(),
            ecf_beta: ecf::BETA,
            stms: StmsOptions::default(),
            linux_burst: linux::BURST,
            lay: LayOptions::default(),
        }
    }
}

impl Scheduler {
    /// The names of the built-in schedulers.
    pub const NAMES: [&'static str; 17] = [
        "lay",
        "round-robin",
        "weighted",
        "min-rtt",
        "daps",
        "daps-lcm",
        "redundant",
        "backup",
        "bas",
        "reception-index",
        "ods",
        "otias",
        "sttf",
        "blest",
        "ecf",
        "stms",
        "linux",
    ];

    /// The built-in scheduler of that name.
    ///
    /// # Errors
    /// If no scheduler has this name. The error lists the valid names and the nearest one.
    pub fn from_name(name: &str, options: &SchedulerOptions) -> Result<Self, UnknownScheduler> {
        Ok(match name {
            "lay" => Self::Lay(Lay::new(options.lay)),
            "round-robin" => Self::RoundRobin(RoundRobin::new(options.quota)),
            "weighted" => Self::Weighted(Weighted::new(options.weights)),
            "min-rtt" => Self::MinRtt(MinRtt),
            "daps" => Self::Daps(Daps::new(options.daps)),
            "daps-lcm" => Self::DapsLcm(DapsLcm::new(options.daps)),
            "redundant" => Self::Redundant(Redundant::new(options.copies)),
            "backup" => Self::Backup(Backup),
            "bas" => Self::Bas(Bas::new(options.bas_with_delay)),
            "reception-index" => Self::ReceptionIndex(ReceptionIndex::default()),
            "ods" => Self::Ods(Ods),
            "otias" => Self::Otias(Otias::new(options.otias_form)),
            "sttf" => Self::Sttf(Sttf),
            "blest" => Self::Blest(Blest::new(options.blest)),
            "ecf" => Self::Ecf(Ecf::new(options.ecf_beta)),
            "stms" => Self::Stms(Stms::new(options.stms)),
            "linux" => Self::Linux(Linux::new(options.linux_burst)),
            _ => return Err(UnknownScheduler::new(name)),
        })
    }

    /// The name from which it was made; for a custom scheduler its own name.
    pub fn name(&self) -> &str {
        match self {
            Self::Lay(_) => "lay",
            Self::RoundRobin(_) => "round-robin",
            Self::Weighted(_) => "weighted",
            Self::MinRtt(_) => "min-rtt",
            Self::Daps(_) => "daps",
            Self::DapsLcm(_) => "daps-lcm",
            Self::Redundant(_) => "redundant",
            Self::Backup(_) => "backup",
            Self::Bas(_) => "bas",
            Self::ReceptionIndex(_) => "reception-index",
            Self::Ods(_) => "ods",
            Self::Otias(_) => "otias",
            Self::Sttf(_) => "sttf",
            Self::Blest(_) => "blest",
            Self::Ecf(_) => "ecf",
            Self::Stms(_) => "stms",
            Self::Linux(_) => "linux",
            Self::Custom(guest) => guest.name(),
        }
    }
}

/// No built-in scheduler has this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownScheduler {
    /// The requested name.
    pub name: String,
    /// The most similar valid name.
    pub nearest: &'static str,
}

impl UnknownScheduler {
    fn new(name: &str) -> Self {
        let nearest = nearest_name(name, &Scheduler::NAMES);
        Self { name: name.to_owned(), nearest }
    }
}

impl fmt::Display for UnknownScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, nearest } = self;
        let valid = Scheduler::NAMES.join(", ");
        write!(f, "unknown scheduler {name:?}; did you mean {nearest:?}? Valid names: {valid}")
    }
}

impl core::error::Error for UnknownScheduler {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_makes_a_scheduler_that_bears_it() {
        for name in Scheduler::NAMES {
            let made = Scheduler::from_name(name, &SchedulerOptions::default());
            assert_eq!(made.expect("a registered name").name(), name);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_and_all_valid_ones() {
        for (name, nearest) in [
            ("dasp", "daps"),
            ("daps_lcm", "daps-lcm"),
            ("minrtt", "min-rtt"),
            ("roundrobin", "round-robin"),
            ("weihgted", "weighted"),
            ("back-up", "backup"),
            ("oitas", "otias"),
        ] {
            let error = Scheduler::from_name(name, &SchedulerOptions::default()).unwrap_err();
            assert_eq!(error.nearest, nearest, "for {name}");
            let text = error.to_string();
            assert!(text.contains(&format!("{name:?}; did you mean {nearest:?}?")), "{text}");
            assert!(Scheduler::NAMES.iter().all(|valid| text.contains(valid)), "{text}");
        }
    }
}
