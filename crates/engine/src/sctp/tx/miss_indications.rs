//! Loss detection by miss indications (RFC 9260, 7.2.4), per path for split fast retransmit (Iyengar et al.,
//! 2006, SFR).

use crate::recovery::Flights;

/// Counter of miss indications: a transmission counts as lost after a number of acknowledgements of later
/// ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissIndications {
    /// Miss indications required (RFC 9260, 7.2.4: 3).
    pub threshold: u32,
}

impl MissIndications {
    /// Counts one miss indication for every transmission of the path before number `newest`, which has just
    /// been acknowledged, and a second one for those before number `twice_below`. Adds the numbers of lost
    /// transmissions to `lost`.
    pub fn count(&self, flights: &mut Flights, newest: u64, twice_below: u64, lost: &mut Vec<u64>) {
        for (number, flight) in flights.live_below(newest) {
            let reports = if number < twice_below { 2 } else { 1 };
            flight.misses = flight.misses.saturating_add(reports);
            if flight.misses as u32 >= self.threshold {
                lost.push(number);
            }
        }
    }

    /// Counts miss indications in TSN order over all paths, like SCTP without CMT. Retransmissions are
    /// exempt (RFC 9260, 7.2.4 (5)): everything sent before them has a higher TSN.
    pub fn count_by_tsn(&self, flights: &mut Flights, highest: u64, lost: &mut Vec<u64>) {
        let all = flights.next_number();
        for (number, flight) in flights.live_below(all).filter(|(_, f)| f.tsn < highest && !f.again)
        {
            flight.misses = flight.misses.saturating_add(1);
            if flight.misses as u32 >= self.threshold {
                lost.push(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::RateSnapshot;
    use crate::recovery::Flight;
    use ropewalk_base::Time;

    fn path(tsns: &[u64]) -> Flights {
        let mut flights = Flights::default();
        for tsn in tsns {
            flights.push(Flight::new(*tsn, 1, Time::ZERO, RateSnapshot::default(), false));
        }
        flights
    }

    #[test]
    fn the_third_report_of_a_later_transmission_makes_it_lost() {
        let rule = MissIndications { threshold: 3 };
        let (mut flights, mut lost) = (path(&[5, 6, 7, 8]), Vec::new());
        for newest in 1..=3 {
            assert!(lost.is_empty());
            flights.end(newest);
            rule.count(&mut flights, newest, 0, &mut lost);
        }
        assert_eq!(lost, [0]);
    }

    #[test]
    fn what_left_later_is_not_blamed_though_its_tsn_is_lower() {
        let rule = MissIndications { threshold: 1 };
        let (mut flights, mut lost) = (path(&[50, 3]), Vec::new());
        flights.end(0);
        rule.count(&mut flights, 0, 0, &mut lost);
        assert!(lost.is_empty(), "TSN 3 left after 50");
        rule.count_by_tsn(&mut flights, 50, &mut lost);
        assert_eq!(lost, [1], "the unsplit rule blames it");
    }
}
