//! Traces in the format of mahimahi's link shell. Each line is a whole number of milliseconds: the time of an
//! opportunity to deliver 1504 bytes. After the last line the trace repeats.

use core::fmt;
use core::fmt::Write as _;

use ropewalk_base::{Duration, Rate, Time};

use crate::schedule::{OutOfOrder, in_order};

/// Bytes that one opportunity delivers: a 1500-byte IP packet and the tun header.
pub const OPPORTUNITY_BYTES: u32 = 1504;

const MILLI: u64 = 1_000_000;
/// Bit-nanoseconds of one opportunity.
const WORK: u128 = OPPORTUNITY_BYTES as u128 * 8_000_000_000;

/// Transmission opportunities, repeated indefinitely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Milliseconds since the beginning of a cycle; never decreasing, never empty, the last above 0.
    millis: Vec<u64>,
}

/// Error in parsing a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TraceError {
    /// Number of the line, from 1; 0 for an error of the entire trace.
    pub line: usize,
    /// Kind of error.
    pub kind: TraceErrorKind,
}

/// Kind of error in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceErrorKind {
    /// Not a whole number of milliseconds below 2^53.
    NotMillis(String),
    /// Earlier than the line before.
    GoesBack {
        /// Value of the line before.
        previous: u64,
        /// Value of this line.
        value: u64,
    },
    /// The trace has no opportunity.
    Empty,
    /// All opportunities are at 0 ms, so a cycle would take no time.
    NoLength,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        match &self.kind {
            TraceErrorKind::NotMillis(text) => {
                write!(f, "`{text}` is not a whole number of milliseconds, for example 12")
            }
            TraceErrorKind::GoesBack { previous, value } => {
                write!(f, "{value} ms comes after {previous} ms; the lines must never decrease")
            }
            TraceErrorKind::Empty => write!(f, "no opportunity to send; give one number per line"),
            TraceErrorKind::NoLength => {
                write!(f, "the trace ends at 0 ms; its last line is its length and must be above 0")
            }
        }
    }
}

/// Parses a trace. Blank lines are skipped.
///
/// # Errors
/// The line, if it is not a number or is below the previous line. Line 0 if the trace has no
/// opportunity.
pub fn parse_mahimahi(text: &str) -> Result<Trace, TraceError> {
    let mut millis: Vec<u64> = Vec::new();
    for (index, content) in text.lines().enumerate() {
        let content = content.trim();
        if content.is_empty() {
            continue;
        }
        let fail = |kind| TraceError { line: index + 1, kind };
        // With times below 2^53 ms, no sum of times overflows within a run.
        let value = content.parse::<u64>().ok().filter(|ms| *ms < 1 << 53);
        let Some(value) = value else {
            return Err(fail(TraceErrorKind::NotMillis(content.to_owned())));
        };
        let previous = millis.last().copied().unwrap_or(0);
        if value < previous {
            return Err(fail(TraceErrorKind::GoesBack { previous, value }));
        }
        millis.push(value);
    }
    Trace::from_millis(millis)
}

impl Trace {
    /// A trace from ascending times in milliseconds.
    ///
    /// # Errors
    /// If there is none, or all are at 0 ms.
    pub fn from_millis(millis: Vec<u64>) -> Result<Self, TraceError> {
        match millis.last() {
            None => Err(TraceError { line: 0, kind: TraceErrorKind::Empty }),
            Some(0) => Err(TraceError { line: 0, kind: TraceErrorKind::NoLength }),
            Some(_) => Ok(Self { millis }),
        }
    }

    fn from_rate_steps(
        initial: Rate,
        steps: &[(Time, Rate)],
        length: Duration,
    ) -> Result<Self, TraceError> {
        let mut millis = Vec::new();
        let (mut work, mut rate, mut at, mut next) = (0u128, initial, Time::ZERO, 0);
        for ms in 1..=length.as_nanos() / MILLI {
            let end = Time::from_millis(ms);
            while let Some((step, after)) = steps.get(next).filter(|(step, _)| *step < end) {
                work += u128::from(rate.as_bps()) * u128::from(step.since(at).as_nanos());
                (at, rate, next) = (at.max(*step), *after, next + 1);
            }
            work += u128::from(rate.as_bps()) * u128::from(end.since(at).as_nanos());
            at = end;
            millis.extend((0..work / WORK).map(|_| ms));
            work %= WORK;
        }
        Self::from_millis(millis)
    }

    /// The rate of one cycle as steps of `bin` each: initial rate and steps. The last bin may be shorter.
    ///
    /// # Panics
    /// If `bin` is less than a millisecond.
    pub fn to_rate_steps(&self, bin: Duration) -> (Rate, Vec<(Time, Rate)>) {
        let bin = bin.as_nanos() / MILLI;
        assert!(bin > 0, "a trace has no detail below a millisecond");
        let mut steps = Vec::new();
        let mut from = 0;
        while from < self.period_millis() {
            let until = (from + bin).min(self.period_millis());
            // An opportunity at the end of a millisecond belongs to that millisecond; one at zero belongs to
            // the first bin.
            let count = |ms| self.millis.partition_point(|at| *at <= ms) as u64;
            let before = if from == 0 { 0 } else { count(from) };
            let bits = (count(until) - before) * u64::from(OPPORTUNITY_BYTES) * 8;
            let rate = u128::from(bits) * 1_000 / u128::from(until - from);
            steps.push((Time::from_millis(from), Rate::from_bps(rate as u64)));
            from = until;
        }
        let (_, initial) = steps.remove(0);
        (initial, steps)
    }

    /// Formats the trace.
    pub fn to_mahimahi(&self) -> String {
        let mut text = String::new();
        for ms in &self.millis {
            writeln!(text, "{ms}").expect("a string takes any text");
        }
        text
    }

    /// Bits per second over one cycle, rounded down.
    pub fn mean_rate(&self) -> Rate {
        let bits = self.millis.len() as u128 * u128::from(OPPORTUNITY_BYTES) * 8;
        Rate::from_bps((bits * 1_000 / u128::from(self.period_millis())) as u64)
    }

    /// The length of one cycle.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_millis().saturating_mul(MILLI))
    }

    /// Opportunities in one cycle.
    #[allow(clippy::len_without_is_empty, reason = "a trace is never empty")]
    pub fn len(&self) -> usize {
        self.millis.len()
    }

    fn period_millis(&self) -> u64 {
        self.millis[self.millis.len() - 1]
    }

    /// The instant of an opportunity.
    #[inline]
    pub(crate) fn time_of(&self, cycle: u64, index: usize) -> Time {
        let millis = cycle.saturating_mul(self.period_millis()).saturating_add(self.millis[index]);
        Time::from_nanos(millis.saturating_mul(MILLI))
    }

    /// Cycle and index of the first opportunity that does not lie before `time`.
    pub(crate) fn first_from(&self, time: Time) -> (u64, usize) {
        let millis = time.as_nanos().div_ceil(MILLI);
        // The end of a cycle is also the start of the next one; the earlier cycle comes first.
        let cycle = millis.saturating_sub(1) / self.period_millis();
        let within = millis - cycle * self.period_millis();
        (cycle, self.millis.partition_point(|at| *at < within))
    }

    /// Number of opportunities before `time`.
    pub(crate) fn opportunities_before(&self, time: Time) -> u64 {
        let (cycle, index) = self.first_from(time);
        cycle * self.millis.len() as u64 + index as u64
    }
}

/// Converts a link whose rate is `initial` and changes at `steps`, from 0 to `length`, to a trace. It has an
/// opportunity at the end of each millisecond by which another 1504 bytes have been sent. The format repeats a
/// trace after its last opportunity, so the mean rate can exceed that of the steps: the last, incomplete
/// opportunity is cut.
///
/// # Errors
/// If the steps are not in order of time, or contain less than one opportunity.
pub fn to_mahimahi(
    initial: Rate,
    steps: &[(Time, Rate)],
    length: Duration,
) -> Result<Trace, ConvertError> {
    in_order(steps).map_err(ConvertError::Steps)?;
    Trace::from_rate_steps(initial, steps, length).map_err(ConvertError::Trace)
}

/// Error in converting rate steps to a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The steps go back in time.
    #[error("{0}")]
    Steps(OutOfOrder),
    /// The result is not a valid trace.
    #[error("{0}")]
    Trace(TraceError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_survives_being_written_and_read() {
        let text = "0\n1\n1\n7\n20\n";
        let trace = parse_mahimahi(text).expect("a good trace");
        assert_eq!(trace.to_mahimahi(), text);
        assert_eq!(parse_mahimahi(&trace.to_mahimahi()), Ok(trace));
    }

    #[test]
    fn rate_steps_survive_becoming_a_trace() {
        // 12.032 Mbit/s is one opportunity per millisecond.
        let step = |ms, per_ms: u64| (Time::from_millis(ms), Rate::from_bps(12_032_000 * per_ms));
        let steps = [step(100, 3), step(200, 0), step(300, 2)];
        let trace = to_mahimahi(Rate::from_bps(12_032_000), &steps, Duration::from_millis(400))
            .expect("plenty of opportunities");
        assert_eq!(trace.len(), 100 + 300 + 200);
        let (initial, back) = trace.to_rate_steps(Duration::from_millis(100));
        assert_eq!((initial, back.as_slice()), (Rate::from_bps(12_032_000), &steps[..]));
    }

    #[test]
    fn a_slow_rate_is_kept_on_average() {
        let rate = Rate::from_bps(1_234_567);
        let trace = to_mahimahi(rate, &[], Duration::from_secs(60)).expect("plenty");
        let mean = trace.mean_rate().as_bps() as f64;
        assert!((mean / 1_234_567.0 - 1.0).abs() < 2e-4, "{mean}");
    }

    #[test]
    fn errors_name_the_line_and_the_value() {
        for (text, message) in [
            ("1\nx\n", "line 2: `x` is not a whole number of milliseconds, for example 12"),
            ("-1\n", "line 1: `-1` is not a whole number of milliseconds, for example 12"),
            ("5\n\n4\n", "line 3: 4 ms comes after 5 ms; the lines must never decrease"),
            ("", "no opportunity to send; give one number per line"),
            ("0\n0\n", "the trace ends at 0 ms; its last line is its length and must be above 0"),
        ] {
            let error = parse_mahimahi(text).expect_err(text);
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn looking_up_an_instant_agrees_with_counting() {
        let trace = parse_mahimahi("0\n3\n3\n8\n10\n").expect("a good trace");
        let all: Vec<(u64, usize)> =
            (0..5).flat_map(|cycle| (0..trace.len()).map(move |i| (cycle, i))).collect();
        for tenth in 0..450u64 {
            let time = Time::from_nanos(tenth * MILLI / 10);
            let before = all.iter().filter(|(c, i)| trace.time_of(*c, *i) < time).count();
            assert_eq!(trace.first_from(time), all[before], "at {time:?}");
            assert_eq!(trace.opportunities_before(time), before as u64);
        }
    }
}
