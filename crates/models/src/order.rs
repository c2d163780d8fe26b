//! Assignment of packets to paths for arrival in order.

use core::fmt;

/// A run of packets, `first..=last`. The papers number packets from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PacketRange {
    /// The first packet.
    pub first: u64,
    /// The last packet, included.
    pub last: u64,
}

impl PacketRange {
    /// Number of packets.
    pub fn count(&self) -> u64 {
        self.last - self.first + 1
    }

    /// The runs in a rising list of packet numbers.
    pub(crate) fn runs(packets: impl IntoIterator<Item = u64>) -> Vec<Self> {
        let mut runs: Vec<Self> = Vec::new();
        for packet in packets {
            match runs.last_mut() {
                Some(run) if run.last + 1 == packet => run.last = packet,
                _ => runs.push(Self { first: packet, last: packet }),
            }
        }
        runs
    }
}

impl fmt::Display for PacketRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            return write!(f, "{}", self.first);
        }
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// Maximum length of an order vector. A longer schedule indicates an unsuitable quantum.
pub const ORDER_ENTRIES_MAX: u64 = 1 << 20;

/// Error in making an order or lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// A path with a delay of zero ticks would always be due.
    #[error("path {path} has a delay of 0 ticks, it must be at least 1")]
    ZeroDelay {
        /// Index of the path.
        path: usize,
    },
    /// The vector would exceed [`ORDER_ENTRIES_MAX`].
    #[error(
        "the order would have {entries} entries, at most {ORDER_ENTRIES_MAX} are made: \
         take a larger quantum or a shorter period"
    )]
    TooLong {
        /// Number of entries.
        entries: u64,
    },
    /// The order names a path without a capacity.
    #[error("the order names path {path}, but there are only {paths}")]
    UnknownPath {
        /// Index of the path.
        path: usize,
        /// Number of paths.
        paths: usize,
    },
    /// A path with capacity 0 is due.
    #[error("path {path} is due with 0 packets, it must have at least 1")]
    ZeroPackets {
        /// Index of the path.
        path: usize,
    },
}

/// The order in which paths deliver in one period: entry j is the path whose packets should
/// arrive j-th (Sarwar et al. 2013, Algorithm 1).
///
/// Path i is due at D_i, 2 D_i, ... up to the period, in ticks. At the same instant the path of
/// the shorter delay comes first, then the one given first. The instants are enumerated per path
/// and sorted, rather than walked tick by tick, so a fine quantum costs nothing.
///
/// # Errors
/// No delay may be zero; at most [`ORDER_ENTRIES_MAX`] entries.
pub fn receive_order(delays: &[u64], period_ticks: u64) -> Result<Vec<usize>, OrderError> {
    if let Some(path) = delays.iter().position(|&d| d == 0) {
        return Err(OrderError::ZeroDelay { path });
    }
    let entries = delays.iter().fold(0_u64, |n, d| n.saturating_add(period_ticks / d));
    if entries > ORDER_ENTRIES_MAX {
        return Err(OrderError::TooLong { entries });
    }
    let mut due: Vec<(u64, u64, usize)> = Vec::with_capacity(entries as usize);
    for (path, &delay) in delays.iter().enumerate() {
        due.extend((1..=period_ticks / delay).map(|k| (k * delay, delay, path)));
    }
    due.sort_unstable();
    Ok(due.into_iter().map(|(_, _, path)| path).collect())
}

/// The packets of each path at each of its turns: path i's list has one run of `capacities[i]` packets for each
/// occurrence in the order (Sarwar et al. 2013, Algorithm 2). Packets are numbered from 1.
///
/// # Errors
/// Each path that the order names must have a capacity above zero.
pub fn sequence_lists(
    order: &[usize],
    capacities: &[u64],
) -> Result<Vec<Vec<PacketRange>>, OrderError> {
    let mut lists = vec![Vec::new(); capacities.len()];
    let mut last = 0_u64;
    for &path in order {
        let paths = capacities.len();
        let &packets = capacities.get(path).ok_or(OrderError::UnknownPath { path, paths })?;
        if packets == 0 {
            return Err(OrderError::ZeroPackets { path });
        }
        lists[path].push(PacketRange { first: last + 1, last: last + packets });
        last += packets;
    }
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_order_is_ten_turns_of_the_fast_path_then_the_slow_one() {
        let order = receive_order(&[10, 100], 100).unwrap();
        assert_eq!(order, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn the_papers_lists_are_1_to_20_and_21_to_25() {
        let lists = sequence_lists(&receive_order(&[10, 100], 100).unwrap(), &[2, 5]).unwrap();
        let fast: Vec<String> = lists[0].iter().map(ToString::to_string).collect();
        assert_eq!(fast.first().map(String::as_str), Some("1-2"));
        assert_eq!(fast.last().map(String::as_str), Some("19-20"));
        assert_eq!((fast.len(), lists[1].clone()), (10, vec![PacketRange { first: 21, last: 25 }]));
    }

    #[test]
    fn three_paths_interleave_and_ties_go_to_the_shorter_delay() {
        // The paths are not sorted by delay.
        assert_eq!(receive_order(&[3, 2, 6], 6).unwrap(), [1, 0, 1, 1, 0, 2]);
        assert_eq!(receive_order(&[4, 4], 4).unwrap(), [0, 1]);
    }

    #[test]
    fn a_walk_over_every_tick_gives_the_same_order() {
        // Algorithm 1 as it is printed, for paths sorted by delay.
        for delays in [[3_u64, 7, 10], [1, 2, 5], [4, 6, 9]] {
            let walked: Vec<usize> = (1..=120_u64)
                .flat_map(|t| (0..3).filter(move |&i| t.is_multiple_of(delays[i])))
                .collect();
            assert_eq!(receive_order(&delays, 120).unwrap(), walked, "{delays:?}");
        }
    }

    #[test]
    fn a_quantum_too_fine_for_memory_is_refused() {
        let error = receive_order(&[1, 2], u64::MAX).unwrap_err();
        assert_eq!(error, OrderError::TooLong { entries: u64::MAX });
        assert_eq!(receive_order(&[0], 1), Err(OrderError::ZeroDelay { path: 0 }));
    }

    #[test]
    fn lists_need_a_capacity_for_each_path_in_the_order() {
        let unknown = OrderError::UnknownPath { path: 2, paths: 2 };
        assert_eq!(sequence_lists(&[0, 2], &[1, 1]), Err(unknown));
        assert_eq!(sequence_lists(&[1], &[1, 0]), Err(OrderError::ZeroPackets { path: 1 }));
    }

    #[test]
    fn runs_join_neighbours_and_keep_gaps() {
        let runs = PacketRange::runs([1, 2, 3, 7, 9, 10]);
        let shown: Vec<String> = runs.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["1-3", "7", "9-10"]);
        assert_eq!(runs.iter().map(PacketRange::count).sum::<u64>(), 6);
    }
}
