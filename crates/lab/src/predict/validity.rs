//! Validity of each throughput model for a path.
//!
//! The bounds are those of the comparison with ns-2 in `docs/concepts/models.md`.

use serde::Serialize;

use crate::loss::LossKind;
use crate::lossy::ModelPath;

/// A remark on the figure of each model.
#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq)]
pub struct Validity {
    /// Remark on the Markov chain.
    pub markov: &'static str,
    /// Remark on the renewal model.
    pub renewal: &'static str,
    /// Remark on PFTK.
    pub pftk: &'static str,
    /// Remark on the formula of Mathis et al.
    pub mathis: &'static str,
}

impl Validity {
    pub(super) fn of(path: &ModelPath, has_renewal: bool) -> Self {
        if path.kind == LossKind::None {
            let word = "no loss: a window per round trip";
            return Self { markov: word, renewal: word, pftk: word, mathis: word };
        }
        let markov = match path.p {
            _ if path.kind == LossKind::Bursts => "counts a burst as one lost packet",
            p if p <= 1e-3 => "holds: within 2 % of packets in simulation",
            p if p <= 1e-2 => "up to 12 % too low at this loss rate",
            p if p <= 1e-1 => "up to 42 % too low at this loss rate",
            _ => "far too low at this loss rate",
        };
        let renewal = match path.p {
            _ if !has_renewal => "has no answer at this loss rate",
            p if p <= 1e-3 => "assumes correlated losses: up to 10 % too low",
            _ => "assumes correlated losses: too low",
        };
        let mathis = if path.p <= 1e-2 {
            "TCP without timeouts, cut at the window and the rate"
        } else {
            "TCP without timeouts: too much at this loss rate"
        };
        let pftk = "TCP's sending rate: lost packets are counted";
        Self { markov, renewal, pftk, mathis }
    }
}
