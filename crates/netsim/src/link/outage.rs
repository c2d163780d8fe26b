//! Outages: periods in which a link is down.

use ropewalk_base::Time;

/// A half-open interval of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First instant of the interval.
    pub from: Time,
    /// First instant after the interval.
    pub until: Time,
}

/// Effect of an outage on packets. In either case, packets that left the transmitter before it still arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outage {
    /// Offered packets are dropped. The transmitter keeps working through its queue, and everything that it
    /// sends during the outage is lost.
    #[default]
    Drop,
    /// The transmitter pauses and later resumes in the middle of its packet. Offered packets wait if the queue
    /// has space.
    Hold,
}

/// The outages of a link, and their effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outages {
    /// Outages in order of time, without overlap.
    pub spans: Vec<Span>,
    /// Effect on packets.
    pub effect: Outage,
}

impl Outages {
    /// The outages if they hold packets, otherwise empty.
    pub(super) fn holds(&self) -> &[Span] {
        if self.effect == Outage::Hold { &self.spans } else { &[] }
    }

    /// The outages if they drop packets, otherwise empty.
    pub(super) fn drops(&self) -> &[Span] {
        if self.effect == Outage::Drop { &self.spans } else { &[] }
    }

    /// The first span that is empty or begins before its predecessor ends.
    pub(super) fn misplaced(&self) -> Option<Span> {
        let mut end = Time::ZERO;
        self.spans.iter().copied().find(|span| {
            let wrong = span.from < end || span.until <= span.from;
            end = span.until;
            wrong
        })
    }
}

/// The span of ordered `spans` that contains `time`.
pub(super) fn covering(spans: &[Span], time: Time) -> Option<Span> {
    let next = spans.partition_point(|span| span.until <= time);
    spans.get(next).copied().filter(|span| span.from <= time)
}

/// Whether `time` lies in one of ordered `spans`.
pub(super) fn covers(spans: &[Span], time: Time) -> bool {
    covering(spans, time).is_some()
}

/// Whether one of ordered `spans` overlaps the time from `from` (inclusive) to `until`.
pub(super) fn touches(spans: &[Span], from: Time, until: Time) -> bool {
    let next = spans.partition_point(|span| span.until <= from);
    spans.get(next).is_some_and(|span| span.from <= from || span.from < until)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: u64, until: u64) -> Span {
        Span { from: Time::from_millis(from), until: Time::from_millis(until) }
    }

    #[test]
    fn a_span_has_its_beginning_and_not_its_end() {
        let spans = [span(10, 20), span(20, 25), span(40, 50)];
        for (ms, inside) in
            [(9, false), (10, true), (20, true), (25, false), (49, true), (50, false)]
        {
            assert_eq!(covers(&spans, Time::from_millis(ms)), inside, "at {ms} ms");
        }
        for (from, until, touching) in [
            (5, 10, false),
            (5, 11, true),
            (24, 30, true),
            (25, 40, false),
            (30, 41, true),
            (45, 45, true),
        ] {
            let got = touches(&spans, Time::from_millis(from), Time::from_millis(until));
            assert_eq!(got, touching, "{from} to {until} ms");
        }
    }

    #[test]
    fn overlapping_or_empty_spans_are_found() {
        let outages = |spans: &[Span]| Outages { spans: spans.to_vec(), effect: Outage::Drop };
        assert_eq!(outages(&[span(1, 2), span(2, 3)]).misplaced(), None);
        assert_eq!(outages(&[span(1, 5), span(4, 6)]).misplaced(), Some(span(4, 6)));
        assert_eq!(outages(&[span(3, 3)]).misplaced(), Some(span(3, 3)));
    }
}
