//! Counts of abandoned messages, by stream and by policy (RFC 7496, 4.3 and 4.4).

use std::collections::BTreeMap;

use ropewalk_base::StreamId;

/// The policy by which a message was abandoned (RFC 7496, 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReliabilityPolicy {
    /// Its lifetime expired (`SCTP_PR_SCTP_TTL`).
    Lifetime,
    /// Its retransmissions were used up (`SCTP_PR_SCTP_RTX`).
    Retransmissions,
    /// The send buffer was full, and a message of higher priority was submitted (`SCTP_PR_SCTP_PRIO`).
    Priority,
}

/// Number of abandoned messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AbandonedMessages {
    /// Before any part of them was sent.
    pub unsent: u64,
    /// After a part of them was sent.
    pub sent: u64,
}

impl AbandonedMessages {
    const fn plus(self, other: Self) -> Self {
        Self { unsent: self.unsent + other.unsent, sent: self.sent + other.sent }
    }
}

/// The counts of an association.
#[derive(Clone, Debug, Default)]
pub(crate) struct AbandonedCounts {
    /// By stream, in the order of [`ReliabilityPolicy`]. Contains only streams on which the user sends.
    streams: BTreeMap<u16, [AbandonedMessages; 3]>,
}

impl AbandonedCounts {
    /// Counts messages of a stream.
    pub fn count(&mut self, stream: StreamId, policy: ReliabilityPolicy, was_sent: bool, n: u64) {
        let counts = &mut self.streams.entry(stream.0).or_default()[policy as usize];
        let more = match was_sent {
            false => AbandonedMessages { unsent: n, sent: 0 },
            true => AbandonedMessages { unsent: 0, sent: n },
        };
        *counts = counts.plus(more);
    }

    /// Number of messages of a stream, or of all streams, that were abandoned by one policy, or by any
    /// policy.
    pub fn sum(
        &self,
        stream: Option<StreamId>,
        policy: Option<ReliabilityPolicy>,
    ) -> AbandonedMessages {
        let wanted = |number: u16| stream.is_none_or(|stream| stream.0 == number);
        let streams = self.streams.iter().filter(|(number, _)| wanted(**number));
        let counts = streams.flat_map(|(_, counts)| match policy {
            Some(policy) => &counts[policy as usize..=policy as usize],
            None => &counts[..],
        });
        counts.fold(AbandonedMessages::default(), |sum, one| sum.plus(*one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_by_stream_and_rule_and_added_up() {
        let mut counts = AbandonedCounts::default();
        let [one, two] = [1, 2].map(StreamId);
        counts.count(one, ReliabilityPolicy::Lifetime, false, 2);
        counts.count(one, ReliabilityPolicy::Priority, false, 3);
        counts.count(two, ReliabilityPolicy::Priority, true, 5);
        for (stream, policy, unsent, sent) in [
            (None, None, 5, 5),
            (Some(one), None, 5, 0),
            (Some(one), Some(ReliabilityPolicy::Priority), 3, 0),
            (None, Some(ReliabilityPolicy::Priority), 3, 5),
            (None, Some(ReliabilityPolicy::Retransmissions), 0, 0),
            (Some(StreamId(3)), None, 0, 0),
        ] {
            assert_eq!(counts.sum(stream, policy), AbandonedMessages { unsent, sent });
        }
    }
}
