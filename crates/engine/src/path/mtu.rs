//! Packetization layer path MTU discovery on one path (RFC 8899): a search by probes, and the detection of
//! black holes.

use ropewalk_base::{Duration, Time};
use smallvec::SmallVec;

/// Unanswered probes after which a size is given up (RFC 8899, 5.1.2: MAX_PROBES).
const MAX_PROBES: u32 = 3;
/// The MTU of most paths, which is probed first.
const COMMON: u32 = 1500;
/// The search ends when it could gain at most this many bytes, or one part in [`FINENESS`].
const STEP: u32 = 16;
const FINENESS: u32 = 64;
/// Time after which larger sizes are probed again (5.1.1: PMTU_RAISE_TIMER).
const RAISE: Duration = Duration::from_secs(600);
/// Interval of probes on a path that does not even carry the base size.
const BASE_PROBE_INTERVAL: Duration = Duration::from_secs(5);
/// Consecutive losses of large packets, with a small packet acknowledged after each, that indicate a black
/// hole.
const DOUBTS: u32 = 3;
/// Maximum time between two such losses.
const MEMORY: Duration = Duration::from_secs(30);

/// Range of the search: IP packets, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MtuRange {
    /// Used if not even the base size is delivered (MIN_PLPMTU).
    pub least: u32,
    /// Used before any result, and when large packets are lost (BASE_PLPMTU).
    pub base: u32,
    /// Upper limit (MAX_PLPMTU).
    pub most: u32,
}

/// State of the search (5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The path is not confirmed, or failed before the search began.
    Disabled,
    /// No probe was answered yet.
    Base {
        /// Number of probes of the base size.
        tries: u32,
    },
    /// Searching for a larger size.
    Searching {
        /// The size that is probed.
        size: u32,
        /// Number of probes of this size.
        tries: u32,
    },
    /// The search is complete.
    Complete {
        /// When larger sizes are probed again.
        raise_at: Time,
    },
    /// The base size is not delivered.
    Error,
}

/// The search on one path.
#[derive(Clone, Debug)]
pub struct MtuSearch {
    range: MtuRange,
    phase: Phase,
    /// The size in use, which is known or assumed to be delivered.
    current: u32,
    /// The smallest size known not to be delivered.
    refused: u32,
    /// Probes that may still be answered: nonce and size, the newest first.
    probes: [(u64, u32); 4],
    due: Option<Time>,
    /// The path has failed, so losses say nothing about sizes.
    paused: bool,
    suspicion: BlackHoleSuspicion,
}

/// Losses of large packets.
#[derive(Clone, Copy, Default, Debug)]
struct BlackHoleSuspicion {
    /// Time of the last loss, and whether no packet has been acknowledged since.
    at: Time,
    open: bool,
    /// Number of losses after which a small packet was acknowledged.
    count: u32,
}

impl MtuSearch {
    /// A search that has not started.
    ///
    /// # Panics
    /// If the sizes of the range are not in ascending order.
    pub fn new(range: MtuRange) -> Self {
        assert!(range.least <= range.base && range.base <= range.most, "{range:?}");
        Self {
            range,
            phase: Phase::Disabled,
            current: range.base,
            refused: range.most + 1,
            probes: [(0, 0); 4],
            due: None,
            paused: false,
            suspicion: BlackHoleSuspicion::default(),
        }
    }

    /// Bytes of the largest packet to send.
    pub const fn current(&self) -> u32 {
        self.current
    }

    /// Whether a probe of any size was answered.
    pub const fn is_confirmed(&self) -> bool {
        matches!(self.phase, Phase::Searching { .. } | Phase::Complete { .. })
    }

    /// Whether the search is complete.
    pub const fn is_complete(&self) -> bool {
        matches!(self.phase, Phase::Complete { .. })
    }

    /// When [`MtuSearch::sizes_due`] must be called.
    pub const fn deadline(&self) -> Option<Time> {
        self.due
    }

    /// Lowers the upper limit of the range. Must be called before the search starts.
    pub fn limit(&mut self, most: u32) {
        self.range.most = self.range.most.min(most.max(self.range.base));
        self.refused = self.range.most + 1;
    }

    /// Starts or continues the search, when the path is confirmed or returns from failure.
    pub const fn resume(&mut self, now: Time) {
        match &mut self.phase {
            Phase::Disabled => self.restart(now),
            _ if !self.paused => {}
            Phase::Base { tries } | Phase::Searching { tries, .. } => {
                *tries = 0;
                self.due = Some(now);
            }
            Phase::Complete { raise_at } => self.due = Some(*raise_at),
            Phase::Error => self.due = Some(now),
        }
        self.paused = false;
    }

    /// Pauses the search, when the path has failed or was removed.
    pub const fn pause(&mut self) {
        self.paused = true;
        self.due = None;
    }

    /// Restarts the search when the path leads through another network.
    pub const fn restart(&mut self, now: Time) {
        self.current = self.range.base;
        self.refused = self.range.most + 1;
        self.phase = Phase::Base { tries: 0 };
        self.probes = [(0, 0); 4];
        self.suspicion = BlackHoleSuspicion { at: Time::ZERO, open: false, count: 0 };
        self.due = Some(now);
    }

    /// Whether the search has begun.
    pub const fn has_begun(&self) -> bool {
        !matches!(self.phase, Phase::Disabled)
    }

    /// Sizes to be probed once the deadline has passed. Report each probe to
    /// [`MtuSearch::on_probe_sent`]. `patience`: maximum time to wait for an answer (5.1.1: PROBE_TIMER).
    ///
    /// The first time, several sizes are probed simultaneously, the largest first. The result is then
    /// known after one round trip; probing the sizes in turn would take several.
    pub fn sizes_due(&mut self, now: Time, patience: Duration) -> SmallVec<[u32; 3]> {
        if let Phase::Searching { size, tries: MAX_PROBES } = self.phase {
            self.refused = self.refused.min(size);
            self.continue_search(now);
        } else if let Phase::Complete { .. } = self.phase {
            self.refused = self.range.most + 1;
            self.continue_search(now);
        }
        if self.due.is_none_or(|due| due > now) {
            return SmallVec::new();
        }
        self.due = Some(now + patience);
        let base = self.range.base;
        match &mut self.phase {
            Phase::Disabled | Phase::Complete { .. } => SmallVec::new(),
            Phase::Base { tries: MAX_PROBES } => {
                self.phase = Phase::Error;
                self.current = self.range.least;
                SmallVec::from_slice(&[base])
            }
            Phase::Base { tries } => {
                *tries += 1;
                let hopes = if *tries == 1 { [self.range.most, COMMON] } else { [0; 2] };
                let mut sizes = SmallVec::new();
                for size in hopes.into_iter().filter(|size| (base + 1..self.refused).contains(size))
                {
                    if sizes.last() != Some(&size) {
                        sizes.push(size);
                    }
                }
                sizes.push(base);
                sizes
            }
            Phase::Searching { size, tries } => {
                *tries += 1;
                SmallVec::from_slice(&[*size])
            }
            Phase::Error => {
                self.due = Some(now + patience.max(BASE_PROBE_INTERVAL));
                SmallVec::from_slice(&[base])
            }
        }
    }

    /// Records that a probe was sent.
    pub fn on_probe_sent(&mut self, nonce: u64, size: u32) {
        self.probes.rotate_right(1);
        self.probes[0] = (nonce, size);
    }

    /// Records the answer to a probe. Returns its size if the probe was outstanding.
    pub fn on_answer(&mut self, now: Time, nonce: u64) -> Option<u32> {
        let at = self.probes.iter().position(|(one, size)| *one == nonce && *size > 0)?;
        let (_, size) = std::mem::take(&mut self.probes[at]);
        self.on_through(now, size);
        if size < self.current && self.is_confirmed() {
            return Some(size);
        }
        self.current = size.max(self.range.least);
        if self.refused <= size {
            self.refused = self.range.most + 1;
        }
        match self.phase {
            Phase::Searching { size: sought, .. } if sought > size => {}
            Phase::Complete { .. } | Phase::Disabled => {}
            _ => self.continue_search(now),
        }
        Some(size)
    }

    /// Records that the system refused a packet of this size. Returns whether packets must become smaller.
    pub fn on_too_long(&mut self, now: Time, size: u32) -> bool {
        self.refused = self.refused.min(size.max(self.range.least + 1));
        self.probes.iter_mut().filter(|(_, probes)| *probes >= size).for_each(|one| *one = (0, 0));
        if self.current >= size {
            self.fall(now);
            return true;
        }
        if let Phase::Searching { size: sought, .. } = self.phase
            && sought >= size
        {
            self.continue_search(now);
        }
        false
    }

    /// The next size: the most common one, then the maximum, then the middle of the remaining range.
    fn next_size(&self) -> Option<u32> {
        let (current, refused, most) = (self.current, self.refused, self.range.most);
        if current < COMMON && COMMON < refused && COMMON <= most {
            return Some(COMMON);
        }
        if refused > most {
            return (current < most).then_some(most);
        }
        let gap = refused.saturating_sub(current);
        (gap > STEP.max(current / FINENESS)).then_some(current + gap / 2)
    }

    fn continue_search(&mut self, now: Time) {
        let Some(size) = self.next_size() else {
            let raise_at = now + RAISE;
            self.phase = Phase::Complete { raise_at };
            self.due = Some(raise_at);
            return;
        };
        // The first probes may have included this size already.
        let probes = self.probes.iter().any(|(_, probes)| *probes == size);
        self.phase = Phase::Searching { size, tries: probes as u32 };
        if !probes {
            self.due = Some(now);
        }
    }

    /// The next smaller safe size. Packets up to this size cannot reveal a black hole.
    pub const fn fallback_size(&self) -> u32 {
        if self.current > self.range.base { self.range.base } else { self.range.least }
    }

    /// Records the loss of packets larger than [`MtuSearch::fallback_size`].
    pub fn on_lost(&mut self, now: Time) {
        if self.current > self.fallback_size() {
            if now.since(self.suspicion.at) > MEMORY {
                self.suspicion.count = 0;
            }
            (self.suspicion.at, self.suspicion.open) = (now, true);
        }
    }

    /// Records that a packet of this size was delivered. Returns whether packets must become smaller:
    /// this packet was small, and the large ones before it were lost repeatedly (4.3).
    pub fn on_through(&mut self, now: Time, size: u32) -> bool {
        if size > self.fallback_size() {
            self.suspicion = BlackHoleSuspicion::default();
        } else if std::mem::take(&mut self.suspicion.open) {
            self.suspicion.count += 1;
        }
        let hole = self.suspicion.count >= DOUBTS;
        if hole {
            self.refused = self.refused.min(self.current);
            self.fall(now);
        }
        hole
    }

    /// Falls back to a safe size, and searches again from there.
    fn fall(&mut self, now: Time) {
        self.suspicion = BlackHoleSuspicion::default();
        self.due = Some(now);
        if self.refused > self.range.base && self.current > self.range.base {
            self.current = self.range.base;
            self.phase = Phase::Base { tries: 0 };
        } else {
            self.current = self.range.least;
            self.phase = Phase::Error;
        }
    }
}

#[cfg(test)]
#[path = "mtu_tests.rs"]
mod tests;
