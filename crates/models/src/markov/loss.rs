//! The two models of loss within a round (Section 4.2).

use core::fmt;
use core::str::FromStr;

/// Dependence of losses within a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossModel {
    /// Independent loss of each packet: a lossy link (Eq 6).
    Independent,
    /// After the first loss, all later packets of the round are lost: an overflowing queue (Eq 7).
    Correlated,
}

impl LossModel {
    /// Both models, in the order of the paper.
    pub const ALL: [Self; 2] = [Self::Independent, Self::Correlated];

    /// Name in scenarios and arguments.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::Correlated => "correlated",
        }
    }

    /// Probability that none of `sent` packets is lost; `p` is the loss probability of a packet.
    pub(crate) fn none_lost(self, p: f64, sent: u32) -> f64 {
        (f64::from(sent) * (-p).ln_1p()).exp()
    }

    /// Probability that one or more of `sent` packets are lost, accurate even if it is tiny.
    pub(crate) fn some_lost(self, p: f64, sent: u32) -> f64 {
        -(f64::from(sent) * (-p).ln_1p()).exp_m1()
    }

    /// Probability that all of `sent` packets are lost.
    pub(crate) fn all_lost(self, p: f64, sent: u32) -> f64 {
        match self {
            Self::Independent => (f64::from(sent) * p.ln()).exp(),
            Self::Correlated => p,
        }
    }

    /// Expected arrivals of `sent` packets.
    pub(crate) fn delivered(self, p: f64, sent: u32) -> f64 {
        match self {
            Self::Independent => f64::from(sent) * (1.0 - p),
            Self::Correlated => (1.0 - p) * self.some_lost(p, sent) / p,
        }
    }
}

impl fmt::Display for LossModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A loss model that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no loss model `{0}`: take `independent` or `correlated`")]
pub struct UnknownLossModel(
    /// The given name.
    pub String,
);

impl FromStr for LossModel {
    type Err = UnknownLossModel;

    fn from_str(name: &str) -> Result<Self, UnknownLossModel> {
        Self::ALL
            .into_iter()
            .find(|model| model.name() == name)
            .ok_or_else(|| UnknownLossModel(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_a_wrong_one_is_told_what_is_right() {
        for model in LossModel::ALL {
            assert_eq!(model.to_string().parse(), Ok(model));
        }
        let error = "bursty".parse::<LossModel>().unwrap_err().to_string();
        assert_eq!(error, "there is no loss model `bursty`: take `independent` or `correlated`");
    }

    #[test]
    fn three_packets_by_hand() {
        let (p, q) = (0.2_f64, 0.8_f64);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-15, "{a} {b}");
        for model in LossModel::ALL {
            close(model.none_lost(p, 3), q * q * q);
            close(model.some_lost(p, 3), 1.0 - q * q * q);
        }
        close(LossModel::Independent.all_lost(p, 3), p * p * p);
        close(LossModel::Correlated.all_lost(p, 3), p);
        close(LossModel::Independent.delivered(p, 3), 2.4);
        close(LossModel::Correlated.delivered(p, 3), q + q * q + q * q * q);
    }
}
