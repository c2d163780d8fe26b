//! Derives a verdict from a measured interval and the values that a statement accepts.

use super::expected::{Entry, Relation};
use super::row::Verdict;

/// The range of differences that a statement accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accepted {
    least: f64,
    most: f64,
    /// Whether the ends are excluded, as by `greater` and `less`.
    strict: bool,
}

/// Relation of a measured interval to the accepted range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// All of the interval is accepted.
    Holds,
    /// Part of the interval is accepted.
    Undecided,
    /// No part of the interval is accepted.
    Fails,
}

/// A mean and its 95 % confidence interval; all three are equal for a single value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Lower end.
    pub least: f64,
    /// Upper end.
    pub most: f64,
}

impl Spread {
    /// An exact value.
    pub const fn point(value: f64) -> Self {
        Self { mean: value, least: value, most: value }
    }

    /// Mean and ends, divided by a positive number.
    pub fn over(self, by: f64) -> Self {
        Self { mean: self.mean / by, least: self.least / by, most: self.most / by }
    }

    /// Mean and ends of a monotonic function of the value.
    pub fn map(self, function: impl Fn(f64) -> f64) -> Self {
        let (a, b) = (function(self.least), function(self.most));
        Self { mean: function(self.mean), least: a.min(b), most: a.max(b) }
    }

    /// Both ends.
    pub const fn ends(self) -> [f64; 2] {
        [self.least, self.most]
    }
}

impl Accepted {
    /// Accepts from `-allowed` to `allowed`.
    pub const fn around_zero(allowed: f64) -> Self {
        Self { least: -allowed, most: allowed, strict: false }
    }

    /// Accepts only positive values.
    pub const POSITIVE: Self = Self { least: 0.0, most: f64::INFINITY, strict: true };

    /// The range that `relation` accepts for `subject - limit`, with a tolerance of `allowed`. `None` if
    /// the relation is not about such a difference.
    pub fn of(relation: Relation, allowed: f64) -> Option<Self> {
        let (least, most, strict) = match relation {
            Relation::Greater | Relation::GainOver => (0.0, f64::INFINITY, true),
            Relation::Less => (f64::NEG_INFINITY, 0.0, true),
            Relation::NotLess => (-allowed, f64::INFINITY, false),
            Relation::NotGreater | Relation::NotRising => (f64::NEG_INFINITY, allowed, false),
            // A printed "up to 77 %" requires a best case of 77 %; 99 % does not meet it.
            Relation::Near | Relation::Gain | Relation::ReductionBest => (-allowed, allowed, false),
            Relation::GainRises | Relation::ReductionRises => return None,
        };
        Some(Self { least, most, strict })
    }

    /// Decides on a measured difference.
    pub fn decide(self, measured: Spread) -> Decision {
        let above = |x: f64| if self.strict { x > self.least } else { x >= self.least };
        let below = |x: f64| if self.strict { x < self.most } else { x <= self.most };
        if above(measured.least) && below(measured.most) {
            Decision::Holds
        } else if above(measured.most) && below(measured.least) {
            Decision::Undecided
        } else {
            Decision::Fails
        }
    }
}

impl Decision {
    /// The verdict on a claim.
    pub const fn of_claim(self) -> Verdict {
        match self {
            Self::Holds => Verdict::ClaimHolds,
            Self::Undecided => Verdict::Undecided,
            Self::Fails => Verdict::ClaimFails,
        }
    }

    /// The verdict on a number.
    pub const fn of_value(self) -> Verdict {
        match self {
            Self::Holds => Verdict::Agrees,
            Self::Undecided => Verdict::Undecided,
            Self::Fails => Verdict::Differs,
        }
    }

    /// Combines two statements that must both hold.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Fails, _) | (_, Self::Fails) => Self::Fails,
            (Self::Undecided, _) | (_, Self::Undecided) => Self::Undecided,
            (Self::Holds, Self::Holds) => Self::Holds,
        }
    }
}

/// The tolerance of a statement around `limit`.
pub fn allowed(entry: &Entry, limit: f64) -> f64 {
    entry.tolerance.map_or(0.0, |tolerance| tolerance.around(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(least: f64, most: f64) -> Spread {
        Spread { mean: f64::midpoint(least, most), least, most }
    }

    #[test]
    fn an_interval_holds_inside_fails_outside_and_is_undecided_across_a_limit() {
        use Decision::{Fails, Holds, Undecided};
        use Relation::{Greater, Less, Near, NotGreater, NotLess, ReductionBest};
        let cases = [
            (Near, spread(-0.04, 0.04), Holds),
            (Near, spread(0.04, 0.06), Undecided),
            (Near, spread(-0.06, -0.04), Undecided),
            (Near, spread(-0.2, 0.2), Undecided),
            (Near, spread(0.051, 0.2), Fails),
            (ReductionBest, spread(0.2, 0.23), Fails),
            (ReductionBest, spread(-0.23, -0.2), Fails),
            (Greater, spread(0.001, 0.2), Holds),
            (Greater, spread(-0.001, 0.2), Undecided),
            (Greater, spread(-0.2, 0.0), Fails),
            (Greater, spread(0.0, 0.0), Fails),
            (Less, spread(-0.2, -0.001), Holds),
            (Less, spread(-0.2, 0.2), Undecided),
            (Less, spread(0.0, 0.2), Fails),
            (NotLess, spread(-0.05, 0.5), Holds),
            (NotLess, spread(-0.06, 0.5), Undecided),
            (NotGreater, spread(-0.5, 0.05), Holds),
            (NotGreater, spread(0.06, 0.07), Fails),
            (Near, spread(f64::NAN, f64::NAN), Fails),
        ];
        for (relation, measured, expected) in cases {
            let decision = Accepted::of(relation, 0.05).unwrap().decide(measured);
            assert_eq!(decision, expected, "{relation:?} {measured:?}");
        }
        assert_eq!(Accepted::POSITIVE.decide(spread(-1.0, 1.0)), Undecided);
        assert_eq!(Accepted::of(Relation::GainRises, 0.05), None);
    }

    #[test]
    fn of_several_statements_the_worst_decides() {
        use Decision::{Fails, Holds, Undecided};
        assert_eq!(Holds.and(Undecided), Undecided);
        assert_eq!(Undecided.and(Fails), Fails);
        assert_eq!(Holds.and(Holds), Holds);
    }
}
