//! Interframe spaces of a channel, and the contention windows of its stations.

use ropewalk_base::Duration;

use super::phy::{Phy, Standard};

/// Interframe spaces and slot of a channel.
///
/// One 802.11b station forces its slot of 20 us on all (19.8.4: the short slot requires a cell of ERP stations
/// alone).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// One slot of the backoff.
    pub slot: Duration,
    /// Space between a frame and its acknowledgement.
    pub sifs: Duration,
    /// Idle time before slots count.
    pub difs: Duration,
    /// Idle time after a frame with errors: SIFS, an acknowledgement at the lowest rate, DIFS (9.3.2.3.7). The
    /// senders of such a frame wait equally long, because the acknowledgement is missing.
    pub eifs: Duration,
}

/// SIFS of both layers: 802.11b has this value, and ERP-OFDM reaches it by its signal extension.
const SIFS_US: u64 = 10;

impl Timing {
    /// The times of a channel with stations of these standards.
    pub fn of(standards: impl IntoIterator<Item = Standard> + Clone) -> Self {
        let old = |standard: Standard| matches!(standard, Standard::Dot11b(_));
        let with_old = standards.clone().into_iter().any(old);
        let slot = Duration::from_micros(if with_old { 20 } else { 9 });
        let sifs = Duration::from_micros(SIFS_US);
        let difs = sifs + slot * 2;
        let ack = standards.into_iter().map(Phy::longest_ack).max().unwrap_or(Duration::ZERO);
        Self { slot, sifs, difs, eifs: sifs + ack + difs }
    }
}

/// Minimum contention window of a station (19.8.4: aCWmin).
pub(super) const fn cw_min(standard: Standard) -> u32 {
    match standard {
        Standard::Dot11b(_) => 31,
        Standard::Dot11g => 15,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::phy::Preamble;

    #[test]
    fn spaces_are_those_of_the_standard_and_an_old_station_slows_all() {
        let old = Standard::Dot11b(Preamble::Long);
        for (standards, slot, difs, eifs) in [
            (vec![old], 20, 50, 10 + 304 + 50),
            (vec![Standard::Dot11g], 9, 28, 10 + 50 + 28),
            (vec![Standard::Dot11g, old], 20, 50, 10 + 304 + 50),
        ] {
            let timing = Timing::of(standards.iter().copied());
            let expected = [slot, 10, difs, eifs].map(Duration::from_micros);
            let found = [timing.slot, timing.sifs, timing.difs, timing.eifs];
            assert_eq!(found, expected, "{standards:?}");
        }
    }
}
