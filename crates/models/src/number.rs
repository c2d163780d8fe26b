//! Validation of arguments, and the errors that report invalid ones.

/// A number outside the range for which the model is defined.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{name} = {value} is out of range: it must be {valid}")]
pub struct OutOfRange {
    /// Name of the argument, with its unit.
    pub name: &'static str,
    /// The given value.
    pub value: f64,
    /// The accepted range, in words.
    pub valid: &'static str,
}

/// Error in the arguments of a model of several paths.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum PathsError {
    /// A number is out of range.
    #[error(transparent)]
    Number(#[from] OutOfRange),
    /// Fewer paths than the model needs.
    #[error("{given} path(s) given, this model needs at least {least}")]
    TooFew {
        /// Number of paths given.
        given: usize,
        /// Number of paths required.
        least: usize,
    },
    /// Lists that should have one entry per path differ in length.
    #[error("{rates} rates but {round_trips} round trips: give one of each per path")]
    Lengths {
        /// Entries of the rates.
        rates: usize,
        /// Entries of the round trips.
        round_trips: usize,
    },
}

/// `value` if it is finite and above zero.
pub(crate) fn positive(name: &'static str, value: f64) -> Result<f64, OutOfRange> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(OutOfRange { name, value, valid: "a finite number above 0" })
}

/// `value` if it is finite and not negative.
pub(crate) fn not_negative(name: &'static str, value: f64) -> Result<f64, OutOfRange> {
    if value.is_finite() && value >= 0.0 {
        return Ok(value);
    }
    Err(OutOfRange { name, value, valid: "a finite number, 0 or above" })
}

/// `value` if it lies strictly between 0 and 1.
pub(crate) fn probability(name: &'static str, value: f64) -> Result<f64, OutOfRange> {
    if value > 0.0 && value < 1.0 {
        return Ok(value);
    }
    Err(OutOfRange { name, value, valid: "above 0 and below 1" })
}

/// Checks that there are at least `least` paths.
pub(crate) fn at_least(given: usize, least: usize) -> Result<(), PathsError> {
    if given >= least { Ok(()) } else { Err(PathsError::TooFew { given, least }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_not_a_usable_number_and_says_why() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(positive("rate_bps", bad).is_err(), "{bad} was accepted");
        }
        assert!(not_negative("rtt_s", 0.0).is_ok());
        assert!(not_negative("rtt_s", -1e-9).is_err());
        let message = positive("rate_bps", -3.0).unwrap_err().to_string();
        assert_eq!(message, "rate_bps = -3 is out of range: it must be a finite number above 0");
    }
}
