//! Data acknowledged in excess of the estimated bandwidth (`bbr_update_ack_aggregation`).

use ropewalk_base::{Duration, Time};

use super::super::bbr::model::product;

/// Rounds after which one of the two maxima is given up (`bbr_extra_acked_win_rtts`).
const ROUNDS: u32 = 5;
/// Maximum time whose data the window may hold in addition (`bbr_extra_acked_max_us`).
const MOST: Duration = Duration::from_millis(100);

/// Maximum acknowledged data in excess of the rate, over the last five to ten rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    since: Time,
    /// Bytes acknowledged since then.
    acked: u64,
    /// Maxima of the current and of the last five rounds, bytes.
    extra: [u64; 2],
    rounds: u32,
}

impl Aggregation {
    /// Restarts the count, because nothing was in flight.
    pub const fn restart(&mut self, now: Time) {
        self.since = now;
        self.acked = 0;
    }

    /// Processes the acknowledgement of `acked` bytes, at `rate` bits per second and with `window` bytes.
    pub fn on_ack(&mut self, now: Time, acked: u64, round_start: bool, rate: u64, window: u64) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.extra = [0, self.extra[0]];
            }
        }
        let mut expected = product(rate, now.since(self.since));
        if self.acked <= expected {
            self.restart(now);
            expected = 0;
        }
        self.acked += acked;
        self.extra[0] = self.extra[0].max((self.acked - expected).min(window));
    }

    /// Bytes that the window may hold in addition, at `rate` bits per second.
    pub fn extra(&self, rate: u64) -> u64 {
        self.extra[0].max(self.extra[1]).min(product(rate, MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_of_much_data_counts_for_five_to_ten_rounds() {
        let mut aggregation = Aggregation::default();
        // A byte per microsecond; 30 kB are acknowledged in one burst.
        let (rate, window) = (8_000_000, 1 << 20);
        aggregation.on_ack(Time::from_millis(10), 30_000, true, rate, window);
        assert_eq!(aggregation.extra(rate), 30_000);
        let mut lasted = 0;
        for round in 1..20 {
            let now = Time::from_millis(100 + 10 * round);
            aggregation.on_ack(now, 1000, true, rate, window);
            lasted += u64::from(aggregation.extra(rate) == 30_000);
        }
        assert!((5..10).contains(&lasted), "{lasted}");
        assert_eq!(aggregation.extra(rate), 1000);
    }
}
