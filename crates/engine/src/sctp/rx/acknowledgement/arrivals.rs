//! Arrivals on each path, for acknowledgements.

use std::num::NonZeroU32;

use ropewalk_base::{PathId, Serial32};
use smallvec::SmallVec;

use crate::sctp::chunk::DelayEcho;

/// Number of later packets after which a missing packet counts as lost (RFC 9260, 7.2.4; RFC 8985, 6.2: DupThresh).
const LOSS_THRESHOLD: i32 = 3;

/// Arrivals on one path.
#[derive(Clone, Debug, Default)]
struct Path {
    /// Packets with DATA since the last SACK.
    packets: u32,
    /// User data that was stored, bytes. Duplicates are not counted. Data that was dropped to make room
    /// counts again when it is stored again.
    bytes: u64,
    /// The newest packet, to be echoed with a SACK, which has room for one echo.
    echo: Option<DelayEcho>,
    order: Order,
}

/// The numbers of the packets of a path. A missing number shows a loss on this path, while a missing TSN
/// may be in flight on another path.
#[derive(Clone, Copy, Debug, Default)]
struct Order {
    /// The highest number so far.
    newest: Option<Serial32>,
    /// The number of a packet that is missing.
    missing: Option<Serial32>,
}

impl Order {
    /// Records packet `number`. Returns whether a packet now counts as lost.
    #[inline]
    fn on_arrival(&mut self, number: Serial32) -> bool {
        let Some(newest) = self.newest else {
            self.newest = Some(number);
            return false;
        };
        if self.missing == Some(number) {
            self.missing = None;
        }
        if number.distance_from(newest) > 0 {
            if number != newest.plus(1) && self.missing.is_none() {
                self.missing = Some(newest.plus(1));
            }
            self.newest = Some(number);
        }
        let lost =
            self.missing.is_some_and(|missing| number.distance_from(missing) >= LOSS_THRESHOLD);
        if lost {
            self.missing = None;
        }
        lost
    }
}

/// Arrivals on all paths.
#[derive(Clone, Debug)]
pub struct Arrivals {
    paths: SmallVec<[Path; 2]>,
    /// The next path whose arrival is echoed. Paths take turns; otherwise busy paths would crowd out
    /// quiet ones.
    next_echo: usize,
}

impl Arrivals {
    /// Creates the state for `paths` paths without arrivals.
    pub fn new(paths: usize) -> Self {
        Self { paths: SmallVec::from_elem(Path::default(), paths), next_echo: 0 }
    }

    /// Number of paths.
    pub fn paths(&self) -> usize {
        self.paths.len()
    }

    /// Adds a path.
    pub fn add_path(&mut self) {
        self.paths.push(Path::default());
    }

    /// Keeps only these paths and renumbers them.
    pub fn retain_paths(&mut self, kept: &[bool]) {
        let mut kept = kept.iter();
        self.paths.retain(|_| kept.next().is_some_and(|kept| *kept));
        self.next_echo = 0;
    }

    /// Resets all state except the sums of bytes, because the peer has restarted.
    pub fn forget(&mut self) {
        for path in &mut self.paths {
            *path = Path { bytes: path.bytes, ..Path::default() };
        }
    }

    /// Records a packet on `path` with `bytes` of stored user data, and returns the number of packets
    /// since the last SACK.
    #[inline]
    pub fn on_packet(&mut self, path: PathId, bytes: u64) -> u32 {
        let path = &mut self.paths[path.index()];
        path.bytes += bytes;
        path.packets += 1;
        path.packets
    }

    /// Records the number that a packet has on its path. Returns whether an earlier packet of this path
    /// now counts as lost.
    #[inline]
    pub fn on_number(&mut self, path: PathId, number: NonZeroU32) -> bool {
        self.paths[path.index()].order.on_arrival(Serial32(number.get()))
    }

    /// Records the packet to be echoed.
    #[inline]
    pub fn set_echo(&mut self, path: PathId, echo: DelayEcho) {
        self.paths[path.index()].echo = Some(echo);
    }

    /// The echo for the SACK that was just built.
    #[inline]
    pub fn take_echo(&mut self) -> Option<DelayEcho> {
        for _ in 0..self.paths.len() {
            let path = self.next_echo;
            self.next_echo = if path + 1 < self.paths.len() { path + 1 } else { 0 };
            if let Some(echo) = self.paths[path].echo.take() {
                return Some(echo);
            }
        }
        None
    }

    /// A SACK has acknowledged everything.
    #[inline]
    pub fn after_sack(&mut self) {
        self.paths.iter_mut().for_each(|path| path.packets = 0);
    }

    /// Whether DATA has arrived on `path` since the last SACK.
    #[inline]
    pub fn has_news_of(&self, path: PathId) -> bool {
        self.paths[path.index()].packets > 0
    }

    /// User data that was stored since the association began, by the path on which it arrived, bytes.
    pub fn bytes_on(&self, path: PathId) -> u64 {
        self.paths.get(path.index()).map_or(0, |path| path.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_lost_once_three_later_ones_have_arrived() {
        for (numbers, lost_at) in [
            (&[1, 2, 3, 4, 5][..], vec![]),
            (&[1, 3, 4, 5, 6, 7], vec![5]),
            (&[1, 3, 4, 2, 5, 6, 7], vec![]),
            (&[1, 9, 10], vec![9]),
            (&[1, 3, 4, 5, 7, 8, 9], vec![5, 9]),
            (&[7, 3, 4, 8], vec![]),
            (&[u32::MAX, 2, 3], vec![3]),
        ] {
            let mut order = Order::default();
            let lost = numbers.iter().copied().filter(|n| order.on_arrival(Serial32(*n)));
            assert_eq!(lost.collect::<Vec<_>>(), lost_at, "{numbers:?}");
        }
    }
}
