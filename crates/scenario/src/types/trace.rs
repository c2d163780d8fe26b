//! Link traces in the format of Mahimahi: one line per delivery opportunity, in milliseconds.

use ropewalk_base::{Duration, Rate};

/// Size of one delivery opportunity, bytes: a packet of 1500 bytes with the header of Mahimahi's tunnel
/// device.
const OPPORTUNITY_BYTES: u64 = 1504;

/// Times at which a link can deliver [`Trace::OPPORTUNITY_BYTES`]. The trace repeats after the last
/// opportunity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// File name in the scenario.
    pub file: String,
    /// Times since the start of a cycle; ascending, may be equal.
    pub opportunities: Vec<Duration>,
}

impl Trace {
    /// Bytes that one delivery opportunity carries.
    pub const OPPORTUNITY_BYTES: u64 = OPPORTUNITY_BYTES;

    /// Length of one cycle: the time of the last opportunity, above zero.
    pub fn period(&self) -> Duration {
        self.opportunities.last().copied().unwrap_or(Duration::ZERO)
    }

    /// Mean rate of the trace, rounded to a bit per second, at least one.
    pub fn mean_rate(&self) -> Rate {
        let bits = self.opportunities.len() as u128 * u128::from(OPPORTUNITY_BYTES) * 8;
        let nanos = u128::from(self.period().as_nanos()).max(1);
        Rate::from_bps(u64::try_from(bits * 1_000_000_000 / nanos).unwrap_or(u64::MAX).max(1))
    }

    /// The text of a trace file with these opportunities, rounded down to milliseconds.
    pub fn to_text(&self) -> String {
        self.opportunities.iter().map(|at| format!("{}\n", at.as_nanos() / 1_000_000)).collect()
    }

    /// Parses the text of a trace file. Empty lines and lines that begin with `#` are ignored.
    ///
    /// # Errors
    /// The line (from 1; 0 for the entire file) and a description of the problem.
    pub fn parse(file: &str, text: &str) -> Result<Self, (usize, String)> {
        let mut opportunities: Vec<Duration> = Vec::new();
        for (line, content) in numbered_lines(text) {
            let millis = content
                .parse::<u64>()
                .ok()
                .filter(|ms| *ms <= MOST_MILLIS)
                .ok_or_else(|| (line, format!("`{content}` is not a whole number of milliseconds from 0 to {MOST_MILLIS}")))?;
            let at = Duration::from_millis(millis);
            if opportunities.last().is_some_and(|last| at < *last) {
                return Err((
                    line,
                    format!("{millis} ms lies before the line above; times must ascend"),
                ));
            }
            opportunities.push(at);
        }
        match opportunities.last() {
            None => {
                Err((0, "the trace is empty; it needs one time in milliseconds per line".into()))
            }
            Some(last) if last.is_zero() => {
                Err((0, "the trace ends at 0 ms; its last line says how long it is".into()))
            }
            Some(_) => Ok(Self { file: file.into(), opportunities }),
        }
    }
}

/// Ten days: longer than any run, and far from overflow.
const MOST_MILLIS: u64 = 864_000_000;

/// Lines with content, with their numbers from 1.
pub(crate) fn numbered_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}
