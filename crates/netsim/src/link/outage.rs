//! Outages: spans of time in which a link is down.

use ropewalk_base::Time;

/// A span of time, its end not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First instant inside.
    pub from: Time,
    /// First instant after.
    pub until: Time,
}

/// What becomes of packets while a link is down. In either case those that had left the transmitter
/// before go on to arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outage {
    /// Packets offered are refused. Those waiting are sent into the void: the transmitter does not
    /// notice, and whatever it is sending at any moment of the outage is lost.
    #[default]
    Drop,
    /// The transmitter stops and goes on where it stopped; packets wait, as far as the queue has room.
    Hold,
}

/// When a link is down, and what that does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outages {
    /// In order of time and apart from each other.
    pub spans: Vec<Span>,
    /// What becomes of packets.
    pub effect: Outage,
}

impl Outages {
    /// The spans if they hold packets, else none.
    pub(super) fn holds(&self) -> &[Span] {
        if self.effect == Outage::Hold { &self.spans } else { &[] }
    }

    /// The spans if they drop packets, else none.
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

/// The span of ordered `spans` that `time` lies in.
pub(super) fn covering(spans: &[Span], time: Time) -> Option<Span> {
    let next = spans.partition_point(|span| span.until <= time);
    spans.get(next).copied().filter(|span| span.from <= time)
}

/// Whether `time` lies in one of ordered `spans`.
pub(super) fn covers(spans: &[Span], time: Time) -> bool {
    covering(spans, time).is_some()
}

/// Whether one of ordered `spans` shares an instant with the time from `from` to `until`, `from`
/// included.
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
