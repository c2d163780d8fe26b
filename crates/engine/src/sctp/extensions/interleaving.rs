//! Interleaving of user messages and stream schedulers (RFC 8260).

/// The order in which the messages of different streams are sent (RFC 8260, 3).
///
/// With I-DATA, a scheduler may switch streams after each chunk, without it only after each message.
/// Messages of one stream are always sent in the order of submission.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StreamScheduler {
    /// In the order of submission, regardless of the streams (RFC 8260, 3.1). A short message waits for
    /// all that were submitted before it.
    #[default]
    FirstCome,
    /// The streams with messages take turns (3.2).
    RoundRobin,
    /// The streams take turns, and a packet holds chunks of one stream only (3.3). A lost packet then delays one stream.
    /// Costs packets if messages are short.
    RoundRobinPerPacket,
    /// The stream with the lowest value comes first, and streams with equal values take turns (3.4). A
    /// stream without a value has 32768. A stream that never stops sending can starve streams of lower
    /// priority.
    Priority,
    /// Each stream gets the same share of the capacity, in bytes of user data (3.5).
    FairCapacity,
    /// Each stream gets a share of the capacity in proportion to its value (3.6). A stream without a value has 1.
    WeightedFair,
}

impl StreamScheduler {
    /// All schedulers with their names.
    pub const ALL: [(&'static str, Self); 6] = [
        ("first-come", Self::FirstCome),
        ("round-robin", Self::RoundRobin),
        ("round-robin-per-packet", Self::RoundRobinPerPacket),
        ("priority", Self::Priority),
        ("fair-capacity", Self::FairCapacity),
        ("weighted-fair", Self::WeightedFair),
    ];

    /// The scheduler with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, scheduler)| scheduler)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let row = Self::ALL.iter().find(|(_, one)| *one == self);
        row.map_or("first-come", |(name, _)| name)
    }
}
