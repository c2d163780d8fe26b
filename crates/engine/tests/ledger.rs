//! A ledger of one sender, from its packets alone: the chunks that it sent, and the limit that the peer's
//! SACKs permit.

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_base::{Serial16, Serial32};
use ropewalk_engine::sctp::{Chunk, Data, ExtensionChunk, GapList, Packet, Sack};

/// A chunk that the peer's buffer, as offered, could not have held.
#[derive(Clone, Copy, Debug)]
pub struct Beyond {
    /// TSNs since the first.
    #[allow(dead_code, reason = "shown where a case fails")]
    pub chunk: u64,
    /// Its end, bytes since the first; or the end of all data that occupies room at the peer, if that is
    /// less.
    #[allow(dead_code, reason = "shown where a case fails")]
    pub end: u64,
    /// The highest offer.
    #[allow(dead_code, reason = "shown where a case fails")]
    pub edge: u64,
    /// Its size, bytes.
    pub bytes: u64,
}

/// The ledger.
#[derive(Clone, Debug)]
pub struct Ledger {
    first: Option<u32>,
    /// Sizes of the chunks sent so far, by number.
    sizes: BTreeMap<u64, u64>,
    /// Bytes of the chunks below `known`, which were all sent.
    known: (u64, u64),
    edge: u64,
    largest: u64,
    /// Bytes of all chunks sent, and the number of the last one plus one.
    sent: (u64, u64),
    /// Complete unordered messages, which the peer's user gets on arrival: those not reported yet, and
    /// those reported beyond the cumulative TSN.
    passing: BTreeSet<u64>,
    passed: BTreeSet<u64>,
    mixed: bool,
    /// Chunks beyond the cumulative TSN that requested SACKs have reported, and the number of the newest such SACK.
    reported: BTreeSet<u64>,
    newest: Option<Serial16>,
}

/// No test sends more chunks than this.
const FURTHEST: u64 = 1 << 17;

/// Minimum length of a chunk.
const LEAST: u64 = Data::HEADER as u64 + 4;

impl Ledger {
    pub fn new(largest: u32) -> Self {
        let largest = u64::from(largest);
        Self {
            first: None,
            sizes: BTreeMap::new(),
            known: (0, 0),
            edge: 0,
            largest,
            sent: (0, 0),
            passing: BTreeSet::new(),
            passed: BTreeSet::new(),
            mixed: false,
            reported: BTreeSet::new(),
            newest: None,
        }
    }

    fn size(&self, chunk: u64, unknown: u64) -> u64 {
        self.sizes.get(&chunk).copied().unwrap_or(unknown)
    }

    /// Bytes of the chunks below `chunk`. Chunks not sent yet count as `unknown` each.
    fn offset(&self, chunk: u64, unknown: u64) -> u64 {
        let (at, bytes) = self.known;
        if chunk < at {
            return bytes - (chunk..at).map(|c| self.size(c, 0)).sum::<u64>();
        }
        bytes + (at..chunk).map(|c| self.size(c, unknown)).sum::<u64>()
    }

    /// Records a sent packet. Returns a new chunk beyond the edge.
    pub fn sent(&mut self, packet: &Packet) -> Option<Beyond> {
        let mut beyond = None;
        for chunk in &packet.chunks {
            match chunk {
                Chunk::Init(init) => self.first = Some(init.initial_tsn.0),
                // Later ones contain a TSN that is valid only if the peer restarts.
                Chunk::InitAck(both) => _ = self.first.get_or_insert(both.0.initial_tsn.0),
                Chunk::Data(data) => beyond = self.sent_data(data).or(beyond),
                _ => {}
            }
        }
        beyond
    }

    fn sent_data(&mut self, data: &Data) -> Option<Beyond> {
        let chunk = u64::from(data.tsn.0.wrapping_sub(self.first?));
        if chunk > FURTHEST {
            // From the association before a restart.
            return None;
        }
        let bytes = u64::from(data.wire_len());
        if self.sizes.insert(chunk, bytes).is_some() {
            return None;
        }
        while let Some(size) = self.sizes.get(&self.known.0) {
            self.known = (self.known.0 + 1, self.known.1 + size);
        }
        self.sent = (self.sent.0 + bytes, self.sent.1.max(chunk + 1));
        if data.is_unordered_unfragmented() {
            self.mixed = true;
            self.passing.insert(chunk);
        }
        // Unsent chunks before it count with the minimum length, to avoid false alarms.
        let end = (self.offset(chunk, LEAST) + bytes).min(self.claimed());
        (end > self.edge).then_some(Beyond { chunk, end, edge: self.edge, bytes })
    }

    /// The end of the data that occupies room at the peer: all numbered chunks, except those that its
    /// user already has.
    fn claimed(&self) -> u64 {
        let unsent = self.sent.1 - self.sizes.len() as u64;
        let passed: u64 = self.passed.iter().map(|c| self.size(*c, 0)).sum();
        self.sent.0 + if self.mixed { 0 } else { unsent * LEAST } - passed
    }

    /// Records a received packet.
    pub fn received(&mut self, packet: &Packet) {
        for chunk in &packet.chunks {
            match chunk {
                Chunk::Init(init) => self.edge = self.edge.max(u64::from(init.window)),
                Chunk::InitAck(both) => self.edge = self.edge.max(u64::from(both.0.window)),
                Chunk::Sack(sack) => match sack.number {
                    None => self.note(sack.cumulative, sack.window, &[&sack.gaps]),
                    Some(number) => self.note_requested(sack, number),
                },
                Chunk::Extension(one) => {
                    if let ExtensionChunk::NrSack(sack) = &**one {
                        self.note(sack.cumulative, sack.window, &[&sack.gaps, &sack.kept]);
                    }
                }
                _ => {}
            }
        }
    }

    /// A requested SACK lists only recent blocks, so earlier ones also count. Its window is valid if it
    /// is the newest.
    fn note_requested(&mut self, sack: &Sack, number: Serial16) {
        let Some(first) = self.first else { return };
        let acked = u64::from(sack.cumulative.0.wrapping_sub(first).wrapping_add(1));
        let blocks = sack.gaps.offsets(sack.cumulative);
        self.reported.extend(
            blocks.flat_map(|g| u64::from(g.start)..=u64::from(g.end)).map(|g| acked + g - 1),
        );
        if self.newest.is_some_and(|newest| number.distance_from(newest) <= 0) {
            return;
        }
        self.newest = Some(number);
        self.reported = self.reported.split_off(&acked);
        let held = self.reported.iter().filter(|chunk| {
            if self.passing.remove(*chunk) {
                self.passed.insert(**chunk);
            }
            !self.passed.contains(*chunk)
        });
        let held: u64 =
            held.map(|chunk| self.sizes.get(chunk).copied().unwrap_or(self.largest)).sum();
        self.passed = self.passed.split_off(&acked);
        self.edge = self.edge.max(self.offset(acked, 0) + u64::from(sack.window) + held);
    }

    fn note(&mut self, cumulative: Serial32, window: u32, lists: &[&GapList]) {
        let Some(first) = self.first else { return };
        let acked = i64::from(cumulative.0.wrapping_sub(first) as i32) + 1;
        let Ok(acked) = u64::try_from(acked) else { return };
        let blocks = lists.iter().flat_map(|list| list.offsets(cumulative));
        let gaps = blocks.flat_map(|g| u64::from(g.start)..=u64::from(g.end));
        let mut held = 0;
        for chunk in gaps.map(|g| acked + g - 1) {
            if self.passing.remove(&chunk) {
                self.passed.insert(chunk);
            }
            if !self.passed.contains(&chunk) {
                held += self.size(chunk, self.largest);
            }
        }
        self.passed = self.passed.split_off(&acked);
        let edge = self.offset(acked, 0) + u64::from(window) + held;
        self.edge = self.edge.max(edge);
    }
}
