//! How large packets may be on one path: a search by probes (RFC 8899), and the doubt that finds out
//! when what was found holds no longer.

use ropewalk_base::{Duration, Time};
use smallvec::SmallVec;

/// A size is given up after so many probes without an answer (RFC 8899, 5.1.2: MAX_PROBES).
const MAX_PROBES: u32 = 3;
/// What most paths carry: looked for before anything else.
const COMMON: u32 = 1500;
/// The search ends where it could gain no more than this, or one part in [`FINENESS`].
const STEP: u32 = 16;
const FINENESS: u32 = 64;
/// Larger sizes are tried again after so long (5.1.1: PMTU_RAISE_TIMER).
const RAISE: Duration = Duration::from_secs(600);
/// A path that carries not even the base is asked so often whether it does.
const PLEA: Duration = Duration::from_secs(5);
/// So many times in a row large packets are lost and a small one is answered: a black hole.
const DOUBTS: u32 = 3;
/// Doubts that lie further apart than this have nothing to do with each other.
const MEMORY: Duration = Duration::from_secs(30);

/// Between which sizes is searched: IP packets, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MtuRange {
    /// Taken where not even the base gets through (MIN_PLPMTU).
    pub least: u32,
    /// Taken before anything is known, and when large packets vanish (BASE_PLPMTU).
    pub base: u32,
    /// Never more (MAX_PLPMTU).
    pub most: u32,
}

/// Where the search stands (5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The path is not proved, or failed before the search began.
    Disabled,
    /// Nothing was answered yet.
    Base {
        /// Probes of the base.
        tries: u32,
    },
    /// More than what is known is looked for.
    Searching {
        /// This.
        size: u32,
        /// Probes of it.
        tries: u32,
    },
    /// Nothing more is to be found until then.
    Complete {
        /// When to look again.
        raise_at: Time,
    },
    /// The base does not get through.
    Error,
}

/// The search on one path.
#[derive(Clone, Debug)]
pub struct MtuSearch {
    range: MtuRange,
    phase: Phase,
    /// Known to get through, or taken to.
    current: u32,
    /// The least size that does not get through, as far as is known.
    refused: u32,
    /// Probes that may still be answered: nonce and size, the newest first.
    asked: [(u64, u32); 4],
    due: Option<Time>,
    /// The path has failed: nothing can be learnt from what is lost.
    paused: bool,
    doubt: Doubt,
}

/// Large packets were lost.
#[derive(Clone, Copy, Default, Debug)]
struct Doubt {
    /// The last time, and whether nothing is known since.
    at: Time,
    open: bool,
    /// How often something small was answered after it.
    count: u32,
}

impl MtuSearch {
    /// A search that has not begun.
    ///
    /// # Panics
    /// If the range is none.
    pub fn new(range: MtuRange) -> Self {
        assert!(range.least <= range.base && range.base <= range.most, "{range:?}");
        Self {
            range,
            phase: Phase::Disabled,
            current: range.base,
            refused: range.most + 1,
            asked: [(0, 0); 4],
            due: None,
            paused: false,
            doubt: Doubt::default(),
        }
    }

    /// Bytes of the largest packet to send.
    pub const fn current(&self) -> u32 {
        self.current
    }

    /// Whether a probe, of whatever size, was answered.
    pub const fn is_proven(&self) -> bool {
        matches!(self.phase, Phase::Searching { .. } | Phase::Complete { .. })
    }

    /// Whether there is nothing to look for now.
    pub const fn is_complete(&self) -> bool {
        matches!(self.phase, Phase::Complete { .. })
    }

    /// When [`MtuSearch::sizes_due`] is to be called.
    pub const fn deadline(&self) -> Option<Time> {
        self.due
    }

    /// Never more than this, though the range allows it; before the search begins.
    pub fn limit(&mut self, most: u32) {
        self.range.most = self.range.most.min(most.max(self.range.base));
        self.refused = self.range.most + 1;
    }

    /// The path is proved, or works again: the search begins, or goes on where it stood.
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

    /// The path has failed, or is no more.
    pub const fn pause(&mut self) {
        self.paused = true;
        self.due = None;
    }

    /// The path leads elsewhere now: nothing is known of it.
    pub const fn restart(&mut self, now: Time) {
        self.current = self.range.base;
        self.refused = self.range.most + 1;
        self.phase = Phase::Base { tries: 0 };
        self.asked = [(0, 0); 4];
        self.doubt = Doubt { at: Time::ZERO, open: false, count: 0 };
        self.due = Some(now);
    }

    /// Whether the search has begun.
    pub const fn has_begun(&self) -> bool {
        !matches!(self.phase, Phase::Disabled)
    }

    /// The deadline has come: sizes to be probed, each of which is to be told to [`MtuSearch::on_asked`].
    /// `patience` is how long an answer may take (5.1.1: PROBE_TIMER).
    ///
    /// The first time several sizes are asked for at once, the largest first: what is answered then
    /// is known after one round trip, where one after the other would take several.
    pub fn sizes_due(&mut self, now: Time, patience: Duration) -> SmallVec<[u32; 3]> {
        if let Phase::Searching { size, tries: MAX_PROBES } = self.phase {
            self.refused = self.refused.min(size);
            self.go_on(now);
        } else if let Phase::Complete { .. } = self.phase {
            self.refused = self.range.most + 1;
            self.go_on(now);
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
                self.due = Some(now + patience.max(PLEA));
                SmallVec::from_slice(&[base])
            }
        }
    }

    /// A probe is on its way.
    pub fn on_asked(&mut self, nonce: u64, size: u32) {
        self.asked.rotate_right(1);
        self.asked[0] = (nonce, size);
    }

    /// A probe was answered. Its size, if it was one of those on their way.
    pub fn on_answer(&mut self, now: Time, nonce: u64) -> Option<u32> {
        let at = self.asked.iter().position(|(one, size)| *one == nonce && *size > 0)?;
        let (_, size) = std::mem::take(&mut self.asked[at]);
        self.on_through(now, size);
        if size < self.current && self.is_proven() {
            return Some(size);
        }
        self.current = size.max(self.range.least);
        if self.refused <= size {
            self.refused = self.range.most + 1;
        }
        match self.phase {
            Phase::Searching { size: sought, .. } if sought > size => {}
            Phase::Complete { .. } | Phase::Disabled => {}
            _ => self.go_on(now),
        }
        Some(size)
    }

    /// The system would not send a packet of so many bytes. Returns whether packets must be smaller now.
    pub fn on_too_long(&mut self, now: Time, size: u32) -> bool {
        self.refused = self.refused.min(size.max(self.range.least + 1));
        self.asked.iter_mut().filter(|(_, asked)| *asked >= size).for_each(|one| *one = (0, 0));
        if self.current >= size {
            self.fall(now);
            return true;
        }
        if let Phase::Searching { size: sought, .. } = self.phase
            && sought >= size
        {
            self.go_on(now);
        }
        false
    }

    /// What comes next: the size that most paths have, then the most, then the middle of what is left.
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

    fn go_on(&mut self, now: Time) {
        let Some(size) = self.next_size() else {
            let raise_at = now + RAISE;
            self.phase = Phase::Complete { raise_at };
            self.due = Some(raise_at);
            return;
        };
        // It may be on its way since the first time.
        let asked = self.asked.iter().any(|(_, asked)| *asked == size);
        self.phase = Phase::Searching { size, tries: asked as u32 };
        if !asked {
            self.due = Some(now);
        }
    }

    /// The next smaller size that is safe: packets that are no larger are of no use against a black hole.
    pub const fn resort(&self) -> u32 {
        if self.current > self.range.base { self.range.base } else { self.range.least }
    }

    /// Packets that were larger than [`MtuSearch::resort`] are lost.
    pub fn on_lost(&mut self, now: Time) {
        if self.current > self.resort() {
            if now.since(self.doubt.at) > MEMORY {
                self.doubt.count = 0;
            }
            (self.doubt.at, self.doubt.open) = (now, true);
        }
    }

    /// A packet of so many bytes got through. Returns whether packets must be smaller from now on:
    /// that one was small, and the large ones before it vanished again and again (4.3).
    pub fn on_through(&mut self, now: Time, size: u32) -> bool {
        if size > self.resort() {
            self.doubt = Doubt::default();
        } else if std::mem::take(&mut self.doubt.open) {
            self.doubt.count += 1;
        }
        let hole = self.doubt.count >= DOUBTS;
        if hole {
            self.refused = self.refused.min(self.current);
            self.fall(now);
        }
        hole
    }

    /// Back to what is safe, and on from there.
    fn fall(&mut self, now: Time) {
        self.doubt = Doubt::default();
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
