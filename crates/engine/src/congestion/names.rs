//! Congestion control by name.

use core::fmt;

use ropewalk_base::{PathId, Rate, Time};

use super::{
    AckSample, Balia, Chihani2011, ChihaniCoupling, CongestionControl, CongestionFlavour,
    CongestionOptions, Coupled, Cubic, FullyCoupled, Lia, NewReno, Olia, Rfc9260, Rfc9260Options,
    Uncoupled, WVegas,
};
use crate::nearest_name;

/// A built-in algorithm, for all paths of a connection.
#[derive(Clone, Debug)]
pub enum Congestion {
    /// SCTP's algorithm, independent per path.
    Rfc9260(Uncoupled<Rfc9260>),
    /// TCP's algorithm, independent per path.
    NewReno(Uncoupled<NewReno>),
    /// Linked increases.
    Lia(Coupled<Lia>),
    /// Fully coupled: all paths act as one.
    FullyCoupled(Coupled<FullyCoupled>),
    /// Opportunistic linked increases.
    Olia(Coupled<Olia>),
    /// Balanced linked adaptation.
    Balia(Coupled<Balia>),
    /// Weighted Vegas.
    WVegas(WVegas),
    /// CUBIC, independent per path.
    Cubic(Uncoupled<Cubic>),
    /// [`CongestionFlavour::Chihani2011`].
    Chihani2011(Chihani2011),
}

impl Congestion {
    /// The names of the built-in algorithms.
    pub const NAMES: [&'static str; 8] =
        ["rfc9260", "newreno", "lia", "fully-coupled", "olia", "balia", "wvegas", "cubic"];
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
        let options = *options;
        if let CongestionFlavour::Chihani2011 { compensated } = options.flavour {
            return Self::chihani2011(name, options, paths, compensated);
        }
        Ok(match name {
            "rfc9260" => Self::rfc9260(&options, paths),
            "newreno" => Self::NewReno(Uncoupled::new(vec![NewReno::new(options); paths])),
            "lia" => Self::Lia(Coupled::new(options, paths, Lia)),
            "fully-coupled" => Self::FullyCoupled(Coupled::new(options, paths, FullyCoupled)),
            "olia" => Self::Olia(Coupled::new(options, paths, Olia::new(paths))),
            "balia" => Self::Balia(Coupled::new(options, paths, Balia)),
            "wvegas" => Self::WVegas(WVegas::new(options, paths)),
            "cubic" => Self::Cubic(Uncoupled::new(vec![Cubic::new(options); paths])),
            _ => return Err(UnknownCongestion::new(name, &Self::NAMES)),
        })
    }

    fn rfc9260(options: &CongestionOptions, paths: usize) -> Self {
        let options = Rfc9260Options {
            pmdcs: options.unit,
            initial_window: options.initial_window,
            initial_ssthresh: options.initial_ssthresh,
            min_ssthresh_chunks: options.min_ssthresh_units,
            byte_counting_limit: options.byte_counting_limit,
            growth_when_full_only: options.growth_when_full_only,
            idle_decay: options.idle_decay,
            partial_bytes_capped: options.partial_bytes_capped,
            rounding: options.rounding,
        };
        Self::Rfc9260(Uncoupled::new(vec![Rfc9260::new(options); paths]))
    }

    fn chihani2011(
        name: &str,
        options: CongestionOptions,
        paths: usize,
        compensated: bool,
    ) -> Result<Self, UnknownCongestion> {
        let coupling = match (name, compensated) {
            ("newreno", _) => ChihaniCoupling::Uncoupled,
            ("lia", true) => ChihaniCoupling::Compensated,
            ("lia", false) => ChihaniCoupling::Linked,
            ("fully-coupled", _) => ChihaniCoupling::Full,
            _ => return Err(UnknownCongestion::new(name, &Self::CHIHANI_NAMES)),
        };
        Ok(Self::Chihani2011(Chihani2011::new(options, paths, coupling)))
    }

    /// The name from which it was made.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Rfc9260(_) => "rfc9260",
            Self::NewReno(_) => "newreno",
            Self::Lia(_) => "lia",
            Self::FullyCoupled(_) => "fully-coupled",
            Self::Olia(_) => "olia",
            Self::Balia(_) => "balia",
            Self::WVegas(_) => "wvegas",
            Self::Cubic(_) => "cubic",
            Self::Chihani2011(rules) => match rules.coupling() {
                ChihaniCoupling::Uncoupled => "newreno",
                ChihaniCoupling::Linked | ChihaniCoupling::Compensated => "lia",
                ChihaniCoupling::Full => "fully-coupled",
            },
        }
    }
}

macro_rules! each {
    ($self:ident, $inner:ident => $call:expr) => {
        match $self {
            Congestion::Rfc9260($inner) => $call,
            Congestion::NewReno($inner) => $call,
            Congestion::Lia($inner) => $call,
            Congestion::FullyCoupled($inner) => $call,
            Congestion::Olia($inner) => $call,
            Congestion::Balia($inner) => $call,
            Congestion::WVegas($inner) => $call,
            Congestion::Cubic($inner) => $call,
            Congestion::Chihani2011($inner) => $call,
        }
    };
}

/// The same for two objects of one algorithm.
macro_rules! each_pair {
    ($one:expr, $other:expr, ($own:ident, $fresh:ident) => $call:expr) => {
        match ($one, $other) {
            (Self::Rfc9260($own), Self::Rfc9260($fresh)) => $call,
            (Self::NewReno($own), Self::NewReno($fresh)) => $call,
            (Self::Lia($own), Self::Lia($fresh)) => $call,
            (Self::FullyCoupled($own), Self::FullyCoupled($fresh)) => $call,
            (Self::Olia($own), Self::Olia($fresh)) => $call,
            (Self::Balia($own), Self::Balia($fresh)) => $call,
            (Self::WVegas($own), Self::WVegas($fresh)) => $call,
            (Self::Cubic($own), Self::Cubic($fresh)) => $call,
            (Self::Chihani2011($own), Self::Chihani2011($fresh)) => $call,
            (own, fresh) => {
                unreachable!("{} takes over from its like, not from {}", own.name(), fresh.name())
            }
        }
    };
}

impl CongestionControl for Congestion {
    fn grow(&mut self, fresh: Self) {
        each_pair!(self, fresh, (own, fresh) => own.grow(fresh));
    }
    fn renew(&mut self, path: PathId, fresh: Self) {
        each_pair!(self, fresh, (own, fresh) => own.renew(path, fresh));
    }
    #[inline]
    fn on_sent(&mut self, path: PathId, now: Time, bytes: u64) {
        each!(self, inner => inner.on_sent(path, now, bytes));
    }
    #[inline]
    fn on_ack(&mut self, path: PathId, now: Time, sample: &AckSample) {
        each!(self, inner => inner.on_ack(path, now, sample));
    }
    fn on_loss(&mut self, path: PathId, now: Time) {
        each!(self, inner => inner.on_loss(path, now));
    }
    fn on_timeout(&mut self, path: PathId, now: Time) {
        each!(self, inner => inner.on_timeout(path, now));
    }
    fn on_spurious(&mut self, path: PathId, now: Time) {
        each!(self, inner => inner.on_spurious(path, now));
    }
    fn on_ecn(&mut self, path: PathId, now: Time) {
        each!(self, inner => inner.on_ecn(path, now));
    }
    fn on_idle(&mut self, path: PathId, now: Time) {
        each!(self, inner => inner.on_idle(path, now));
    }
    fn on_return(&mut self, path: PathId, now: Time) {
        each!(self, inner => inner.on_return(path, now));
    }
    fn penalise(&mut self, path: PathId) {
        each!(self, inner => inner.penalise(path));
    }
    fn limit(&mut self, path: PathId, most: u64) {
        each!(self, inner => inner.limit(path, most));
    }
    fn set_unit(&mut self, unit: u64) {
        each!(self, inner => inner.set_unit(unit));
    }
    #[inline]
    fn window(&self, path: PathId) -> u64 {
        each!(self, inner => inner.window(path))
    }
    #[inline]
    fn ssthresh(&self, path: PathId) -> u64 {
        each!(self, inner => inner.ssthresh(path))
    }
    #[inline]
    fn pacing_rate(&self, path: PathId) -> Option<Rate> {
        each!(self, inner => inner.pacing_rate(path))
    }
}

/// No built-in algorithm has this name.
#[derive(Clone, PartialEq, Eq, Debug)]
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

impl fmt::Display for UnknownCongestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, nearest, valid } = self;
        let valid = valid.join(", ");
        write!(
            f,
            "unknown congestion control {name:?}; did you mean {nearest:?}? Valid names: {valid}"
        )
    }
}

impl core::error::Error for UnknownCongestion {}

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
