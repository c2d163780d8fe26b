//! The registry of built-in congestion controls: one row each.
//!
//! A row yields the variant of [`Congestion`], its name, its construction and its dispatch.

use ropewalk_base::{PathId, Time};

use super::{
    AckSample, Balia, Bbr, BbrV1, Chihani2011, ChihaniCoupling, CongestionControl,
    CongestionFlavour, CongestionOptions, Coupled, Cubic, Disturbance, FullyCoupled, Lia,
    LostPacket, NewReno, Olia, Prague, Rfc9260, SentPacket, Uncoupled, WVegas,
};
use crate::nearest_name;
use crate::path::Pace;

/// Implements [`CongestionControl`] by the algorithm of each variant.
macro_rules! dispatch {
    ($($algorithm:ident)+) => {
        impl CongestionControl for Congestion {
            fn grow(&mut self, fresh: Self) {
                match (self, fresh) {
                    $((Self::$algorithm(own), Self::$algorithm(fresh)) => own.grow(fresh),)+
                    (own, fresh) => own.refuse(&fresh),
                }
            }

            fn renew(&mut self, path: PathId, fresh: Self) {
                match (self, fresh) {
                    $((Self::$algorithm(own), Self::$algorithm(fresh)) => own.renew(path, fresh),)+
                    (own, fresh) => own.refuse(&fresh),
                }
            }

            #[inline]
            fn on_sent(&mut self, path: PathId, now: Time, packet: &SentPacket) {
                match self {
                    $(Self::$algorithm(own) => own.on_sent(path, now, packet),)+
                }
            }

            #[inline]
            fn on_ack(&mut self, path: PathId, now: Time, sample: &AckSample) {
                match self {
                    $(Self::$algorithm(own) => own.on_ack(path, now, sample),)+
                }
            }

            fn on_lost(&mut self, path: PathId, now: Time, packet: &LostPacket) {
                match self {
                    $(Self::$algorithm(own) => own.on_lost(path, now, packet),)+
                }
            }

            fn on_loss(&mut self, path: PathId, now: Time) {
                match self {
                    $(Self::$algorithm(own) => own.on_loss(path, now),)+
                }
            }

            fn on_timeout(&mut self, path: PathId, now: Time) {
                match self {
                    $(Self::$algorithm(own) => own.on_timeout(path, now),)+
                }
            }

            fn on_spurious(&mut self, path: PathId, now: Time) {
                match self {
                    $(Self::$algorithm(own) => own.on_spurious(path, now),)+
                }
            }

            fn on_ecn(&mut self, path: PathId, now: Time) {
                match self {
                    $(Self::$algorithm(own) => own.on_ecn(path, now),)+
                }
            }

            fn on_idle(&mut self, path: PathId, now: Time) {
                match self {
                    $(Self::$algorithm(own) => own.on_idle(path, now),)+
                }
            }

            fn on_return(&mut self, path: PathId, now: Time) {
                match self {
                    $(Self::$algorithm(own) => own.on_return(path, now),)+
                }
            }

            fn penalise(&mut self, path: PathId) {
                match self {
                    $(Self::$algorithm(own) => own.penalise(path),)+
                }
            }

            fn limit(&mut self, path: PathId, most: u64) {
                match self {
                    $(Self::$algorithm(own) => own.limit(path, most),)+
                }
            }

            fn set_unit(&mut self, unit: u64) {
                match self {
                    $(Self::$algorithm(own) => own.set_unit(unit),)+
                }
            }

            #[inline]
            fn is_scalable(&self) -> bool {
                match self {
                    $(Self::$algorithm(own) => own.is_scalable(),)+
                }
            }

            #[inline]
            fn window(&self, path: PathId) -> u64 {
                match self {
                    $(Self::$algorithm(own) => own.window(path),)+
                }
            }

            #[inline]
            fn ssthresh(&self, path: PathId) -> u64 {
                match self {
                    $(Self::$algorithm(own) => own.ssthresh(path),)+
                }
            }

            #[inline]
            fn pace(&self, path: PathId) -> Option<Pace> {
                match self {
                    $(Self::$algorithm(own) => own.pace(path),)+
                }
            }

            fn set_bottlenecks(&mut self, groups: &[PathId]) {
                match self {
                    $(Self::$algorithm(own) => own.set_bottlenecks(groups),)+
                }
            }

            #[inline]
            fn disturbance(&self, path: PathId) -> Disturbance {
                match self {
                    $(Self::$algorithm(own) => own.disturbance(path),)+
                }
            }
        }
    };
}

/// Declares the built-in algorithms: description, variant, type, name, and construction from the options and the
/// number of paths.
macro_rules! algorithms {
    ($($(#[$doc:meta])+ $algorithm:ident($kind:ty) = $name:literal, $make:expr;)+) => {
        /// A built-in algorithm, for all paths of a connection.
        #[derive(Clone, Debug)]
        pub enum Congestion {
            $($(#[$doc])+ $algorithm($kind),)+
            /// [`CongestionFlavour::Chihani2011`].
            Chihani2011(Chihani2011),
        }

        impl Congestion {
            /// The names of the built-in algorithms.
            pub const NAMES: [&'static str; [$($name),+].len()] = [$($name),+];

            /// The algorithm of that name as it was published.
            fn published(
                name: &str,
                options: CongestionOptions,
                paths: usize,
            ) -> Result<Self, UnknownCongestion> {
                match name {
                    $($name => {
                        let make: fn(CongestionOptions, usize) -> $kind = $make;
                        Ok(Self::$algorithm(make(options, paths)))
                    })+
                    _ => Err(UnknownCongestion::new(name, &Self::NAMES)),
                }
            }

            /// The name from which it was made.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$algorithm(_) => $name,)+
                    Self::Chihani2011(rules) => rules.coupling().name(),
                }
            }
        }

        dispatch! { $($algorithm)+ Chihani2011 }
    };
}

algorithms! {
    /// SCTP's algorithm per path.
    Rfc9260(Uncoupled<Rfc9260>) = "rfc9260",
        |options, paths| Uncoupled::new(options, vec![Rfc9260::new(options.into()); paths]);
    /// TCP's algorithm per path.
    NewReno(Uncoupled<NewReno>) = "newreno",
        |options, paths| Uncoupled::new(options, vec![NewReno::new(options); paths]);
    /// Linked increases.
    Lia(Coupled<Lia>) = "lia", |options, paths| Coupled::new(options, paths, Lia);
    /// Fully coupled: all paths act as one.
    FullyCoupled(Coupled<FullyCoupled>) = "fully-coupled",
        |options, paths| Coupled::new(options, paths, FullyCoupled);
    /// Opportunistic linked increases.
    Olia(Coupled<Olia>) = "olia", |options, paths| Coupled::new(options, paths, Olia::new(paths));
    /// Balanced linked adaptation.
    Balia(Coupled<Balia>) = "balia", |options, paths| Coupled::new(options, paths, Balia);
    /// Weighted Vegas.
    WVegas(WVegas) = "wvegas", WVegas::new;
    /// CUBIC per path.
    Cubic(Uncoupled<Cubic>) = "cubic",
        |options, paths| Uncoupled::new(options, vec![Cubic::new(options); paths]);
    /// BBR version 3 per path.
    Bbr(Uncoupled<Bbr>) = "bbr",
        |options, paths| Uncoupled::new(options, Bbr::for_paths(options, paths));
    /// BBR version 1 as in Linux, independent per path.
    BbrV1(Uncoupled<BbrV1>) = "bbr-v1",
        |options, paths| Uncoupled::new(options, BbrV1::for_paths(options, paths));
    /// Prague per path.
    Prague(Uncoupled<Prague>) = "prague",
        |options, paths| Uncoupled::new(options, vec![Prague::new(options); paths]);
}

impl Congestion {
    /// The names that [`CongestionFlavour::Chihani2011`] supports.
    pub const CHIHANI_NAMES: [&'static str; 3] = ["newreno", "lia", "fully-coupled"];

    /// The built-in algorithm of that name, for `paths` new paths.
    ///
    /// # Errors
    /// If the requested flavour has no algorithm of that name. The error lists the valid names and the
    /// nearest one.
    ///
    /// # Panics
    /// If `options.unit` is 0.
    pub fn from_name(
        name: &str,
        options: &CongestionOptions,
        paths: usize,
    ) -> Result<Self, UnknownCongestion> {
        let CongestionFlavour::Chihani2011 { compensated } = options.flavour else {
            return Self::published(name, *options, paths);
        };
        let coupling = ChihaniCoupling::from_name(name, compensated)
            .ok_or_else(|| UnknownCongestion::new(name, &Self::CHIHANI_NAMES))?;
        Ok(Self::Chihani2011(Chihani2011::new(*options, paths, coupling)))
    }

    /// Panics: an algorithm can only take over state of the same algorithm.
    fn refuse(&self, fresh: &Self) -> ! {
        unreachable!("{} takes over from its like, not from {}", self.name(), fresh.name())
    }
}

/// No built-in algorithm has this name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "unknown congestion control {name:?}; did you mean {nearest:?}? Valid names: {valid}",
    valid = .valid.join(", ")
)]
pub struct UnknownCongestion {
    /// The requested name.
    pub name: String,
    /// The most similar valid name.
    pub nearest: &'static str,
    /// The valid names.
    pub valid: &'static [&'static str],
}

impl UnknownCongestion {
    fn new(name: &str, valid: &'static [&'static str]) -> Self {
        let nearest = nearest_name(name, valid);
        Self { name: name.to_owned(), nearest, valid }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_makes_an_algorithm_that_bears_it() {
        let options = CongestionOptions::tcp(1460);
        for name in Congestion::NAMES {
            let made = Congestion::from_name(name, &options, 2).expect("a registered name");
            assert_eq!(made.name(), name);
        }
        for compensated in [false, true] {
            let flavour = CongestionFlavour::Chihani2011 { compensated };
            let options = CongestionOptions { flavour, ..options };
            for name in Congestion::CHIHANI_NAMES {
                let made = Congestion::from_name(name, &options, 2).expect("a registered name");
                assert_eq!(made.name(), name);
                assert!(matches!(made, Congestion::Chihani2011(_)));
            }
            let error = Congestion::from_name("cubic", &options, 2).unwrap_err();
            assert_eq!(error.valid, Congestion::CHIHANI_NAMES);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_and_all_valid_ones() {
        for (name, nearest) in [
            ("reno", "newreno"),
            ("new-reno", "newreno"),
            ("fullycoupled", "fully-coupled"),
            ("qubic", "cubic"),
            ("vegas", "wvegas"),
            ("ballia", "balia"),
        ] {
            let error = Congestion::from_name(name, &CongestionOptions::tcp(1460), 1).unwrap_err();
            let text = error.to_string();
            assert_eq!(error.nearest, nearest, "for {name}");
            assert!(text.contains(&format!("{name:?}; did you mean")), "{text}");
            assert!(Congestion::NAMES.iter().all(|valid| text.contains(valid)), "{text}");
        }
    }
}
