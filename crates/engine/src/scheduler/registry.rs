//! The registry of built-in schedulers and of their options: one row each.
//!
//! A row yields the variant of [`Scheduler`], its name, its construction and its dispatch.

use ropewalk_base::PathId;

use super::{
    Backup, Bas, Behind, Blest, BlestOptions, CustomScheduler, Daps, DapsLcm, DapsOptions,
    Decision, Ecf, Lay, LayOptions, Linux, LinuxOptions, MinRtt, Ods, Otias, OtiasForm, Quota,
    ReceptionIndex, Redundant, RoundRobin, Schedule, SentReport, Stms, StmsOptions, Sttf, View,
    WeightSource, Weighted, ecf,
};
use crate::nearest_name;

/// Declares the built-in schedulers: description, type, name, and construction from the options.
macro_rules! schedulers {
    ($($(#[$doc:meta])+ $scheduler:ident = $name:literal, $make:expr;)+) => {
        /// A built-in or custom scheduler.
        #[derive(Clone, Debug)]
        pub enum Scheduler {
            $($(#[$doc])+ $scheduler($scheduler),)+
            /// A custom scheduler.
            Custom(Box<dyn CustomScheduler>),
        }

        impl Scheduler {
            /// The names of the built-in schedulers.
            pub const NAMES: [&'static str; [$($name),+].len()] = [$($name),+];

            /// The built-in scheduler of that name.
            ///
            /// # Errors
            /// If no scheduler has this name. The error lists the valid names and the nearest one.
            pub fn from_name(
                name: &str,
                options: &SchedulerOptions,
            ) -> Result<Self, UnknownScheduler> {
                match name {
                    $($name => {
                        let make: fn(&SchedulerOptions) -> $scheduler = $make;
                        Ok(Self::$scheduler(make(options)))
                    })+
                    _ => Err(UnknownScheduler::new(name)),
                }
            }

            /// The name from which it was made; for a custom scheduler its own name.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$scheduler(_) => $name,)+
                    Self::Custom(custom) => custom.name(),
                }
            }
        }

        impl Schedule for Scheduler {
            #[inline]
            fn decide(&mut self, view: &View<'_>) -> Decision {
                match self {
                    $(Self::$scheduler(scheduler) => scheduler.decide(view),)+
                    Self::Custom(custom) => custom.decide(view),
                }
            }

            // Inlined by force: otherwise the report would be passed through memory.
            #[inline(always)]
            fn on_sent(&mut self, sent: &SentReport) {
                match self {
                    $(Self::$scheduler(scheduler) => scheduler.on_sent(sent),)+
                    Self::Custom(custom) => custom.on_sent(sent),
                }
            }

            fn resends_when_blocked(&self) -> bool {
                match self {
                    $(Self::$scheduler(scheduler) => scheduler.resends_when_blocked(),)+
                    Self::Custom(custom) => custom.resends_when_blocked(),
                }
            }

            #[inline]
            fn behind(&self, path: PathId) -> Behind {
                match self {
                    $(Self::$scheduler(scheduler) => scheduler.behind(path),)+
                    Self::Custom(custom) => custom.behind(path),
                }
            }

            fn reads_fragment_ends(&self) -> bool {
                match self {
                    $(Self::$scheduler(scheduler) => scheduler.reads_fragment_ends(),)+
                    Self::Custom(custom) => custom.reads_fragment_ends(),
                }
            }

            #[cfg(test)]
            fn claims(&self) -> super::conformance::Claims {
                match self {
                    $(Self::$scheduler(scheduler) => scheduler.claims(),)+
                    Self::Custom(custom) => custom.claims(),
                }
            }
        }
    };
}

schedulers! {
    /// Chunks arrive when they are due: Ropewalk's own scheduler.
    Lay = "lay", |options| Lay::new(options.lay);
    /// Each open path in turn.
    RoundRobin = "round-robin", |options| RoundRobin::new(options.quota);
    /// Deficit round robin by configured or measured shares.
    Weighted = "weighted", |options| Weighted::new(options.weights);
    /// Lowest round trip first.
    MinRtt = "min-rtt", |_| MinRtt;
    /// Delay-aware: data arrives in order, Kuhn et al. (2014).
    Daps = "daps", |options| Daps::new(options.daps);
    /// Delay-aware, strictly by time, Sarwar et al. (2013).
    DapsLcm = "daps-lcm", |options| DapsLcm::new(options.daps);
    /// Copies on several paths.
    Redundant = "redundant", |options| Redundant::new(options.copies);
    /// Strict priority by cost.
    Backup = "backup", |_| Backup;
    /// Smallest ratio of outstanding data to bandwidth, Casetti and Gaiotto (2004).
    Bas = "bas", |options| Bas::new(options.bas_with_delay);
    /// The same, computed for each decision, Fiore et al. (2007).
    ReceptionIndex = "reception-index", |_| ReceptionIndex::default();
    /// On demand: the first chunk that no other path delivers sooner, Wallace and Shami (2012).
    Ods = "ods", |_| Ods;
    /// Soonest arrival behind each path's queue, Yang, Wang and Amer (2014).
    Otias = "otias", |options| Otias::new(options.otias_form);
    /// Shortest transfer time first, with the growth of windows, Hurtig et al. (2018).
    Sttf = "sttf", |_| Sttf;
    /// Lowest round trip, unless it would block, Ferlin et al. (2016).
    Blest = "blest", |options| Blest::new(options.blest);
    /// Earliest completion first: lowest round trip, unless waiting is faster, Lim et al. (2017).
    Ecf = "ecf", |options| Ecf::new(options.ecf_beta);
    /// Slide together: slow paths send a tuned gap ahead, Shi et al. (2018).
    Stms = "stms", |options| Stms::new(options.stms);
    /// Shortest queue in time, Linux MPTCP since 5.x.
    Linux = "linux", |options| Linux::new(options.linux);
}

/// Declares the options: description, name, type and default value.
macro_rules! options {
    ($($(#[$doc:meta])+ $option:ident: $kind:ty = $default:expr;)+) => {
        /// Options of the built-in schedulers. Each scheduler reads its own fields only.
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub struct SchedulerOptions {
            $($(#[$doc])+ pub $option: $kind,)+
        }

        impl Default for SchedulerOptions {
            fn default() -> Self {
                Self { $($option: $default,)+ }
            }
        }
    };
}

options! {
    /// `round-robin`: the amount that a path sends in its turn. Default [`Quota::Window`].
    quota: Quota = Quota::default();
    /// `weighted`: the basis of the shares. Default [`WeightSource::Configured`].
    weights: WeightSource = WeightSource::default();
    /// `redundant`: copies of each chunk, from 1 to the number of paths; fractions mix. Default infinity:
    /// a copy on every path.
    copies: f64 = f64::INFINITY;
    /// `daps` and `daps-lcm`.
    daps: DapsOptions = DapsOptions::default();
    /// `bas`: whether the forward delay is included. Default no, as published.
    bas_with_delay: bool = false;
    /// `otias`: the conversion of a queue to a wait. Default [`OtiasForm::Ceil`].
    otias_form: OtiasForm = OtiasForm::default();
    /// `blest`.
    blest: BlestOptions = BlestOptions::default();
    /// `ecf`: hysteresis of waiting, a factor less 1. Default 0.25 (Lim et al., 2017).
    ecf_beta: f64 = ecf::BETA;
    /// `stms`.
    stms: StmsOptions = StmsOptions::default();
    /// `linux`.
    linux: LinuxOptions = LinuxOptions::default();
    /// `lay`.
    lay: LayOptions = LayOptions::default();
}

/// No built-in scheduler has this name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "unknown scheduler {name:?}; did you mean {nearest:?}? Valid names: {}",
    Scheduler::NAMES.join(", ")
)]
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
