//! Recent losses, and the value of a queue for a path with losses.

use ropewalk_base::{Duration, Rate};

use super::manager::ManagedPath;

/// Share of the counts that is kept from one update to the next. With two updates per second, the time
/// constant is ten seconds.
const KEPT: f64 = 0.95;
/// Minimum number of transmissions before a loss rate is used. A path that sends too slowly to keep this
/// many in ten seconds is averaged over a longer time.
const ENOUGH: f64 = 200.0;

/// Recent transmissions and losses of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossMemory {
    sent_before: u64,
    lost_before: u64,
    sent: f64,
    lost: f64,
    seconds: f64,
}

impl LossMemory {
    /// Adds the transmissions and losses since the last update, which was `since` ago.
    pub fn update(&mut self, path: &ManagedPath, since: Duration) {
        let new = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let kept = if self.sent * KEPT > ENOUGH { KEPT } else { 1.0 };
        self.sent = self.sent * kept + new(path.sent, self.sent_before);
        self.lost = self.lost * kept + new(path.lost, self.lost_before);
        self.seconds = self.seconds * kept + since.as_secs_f64();
        (self.sent_before, self.lost_before) = (path.sent, path.lost);
    }

    /// The loss rate, with half a loss added: a path without losses may lose a packet soon.
    pub fn share(&self) -> Option<f64> {
        (self.sent >= ENOUGH).then(|| (self.lost + 0.5) / (self.sent + 1.0))
    }

    /// Transmissions per second, and losses per second.
    fn per_second(&self) -> (f64, f64) {
        let sent = self.sent / self.seconds.max(1e-9);
        (sent, sent * self.share().unwrap_or(0.0))
    }
}

/// The best queue for path `i` with rate `rate`, as a share of its BDP, if the buffer has space for it.
///
/// A loss halves the window. A queue reduces the number of packets that are then missing to the BDP: a
/// queue of q packets above a BDP of k packets saves (k² - (k - q)²) / 8 packets per loss. But the queue
/// delays retransmissions on this path, and all other paths wait for them: each loss on any path then
/// costs all paths the time q / rate. With loss rates p, and rates r in packets/s, the gain equals the
/// cost at q = k - 4 c · Σ p_j r_j · Σ r_j / (p_i r_i²). The factor c is the share of the losses whose
/// retransmission uses this path and finds the receive window closed. c = 1/4, one half for each
/// condition, agrees with simulations.
pub(super) fn worthwhile_queue(
    i: usize,
    rate: Rate,
    round_trip: Duration,
    chunk: u64,
    memory: &[LossMemory],
) -> f64 {
    let Some(own) = memory.get(i).and_then(LossMemory::share) else { return 0.0 };
    let rate = rate.as_bps() as f64 / (8 * chunk) as f64;
    let pipe = rate * round_trip.as_secs_f64();
    let (sent, lost) = memory
        .iter()
        .map(LossMemory::per_second)
        .fold((0.0, 0.0), |all, path| (all.0 + path.0, all.1 + path.1));
    (1.0 - lost * sent / (own * rate * rate * pipe)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::manager::tests::{CHUNK, path};
    use super::*;

    /// The state after 20 s with `sent` transmissions and `lost` losses per second.
    fn remembered(sent: u64, lost: u64) -> LossMemory {
        let mut memory = LossMemory::default();
        for second in 1..=20 {
            let seen = ManagedPath { sent: sent * second, lost: lost * second, ..path(20, 40, 60) };
            memory.update(&seen, Duration::from_secs(1));
        }
        memory
    }

    #[test]
    fn a_share_is_believed_once_enough_was_sent() {
        for (sent, lost, share) in
            [(5, 1, None), (12, 3, Some(0.25)), (2000, 2, Some(0.001)), (2000, 0, Some(0.0))]
        {
            let found = remembered(sent, lost).share();
            assert_eq!(found.is_some(), share.is_some(), "{sent} sent, {lost} lost per second");
            let off = found.unwrap_or(0.0) - share.unwrap_or(0.0);
            assert!(off.abs() < 2e-3, "{sent} sent, {lost} lost per second: {found:?}");
        }
    }

    #[test]
    fn a_queue_is_worth_most_where_the_losses_are_and_nothing_where_it_delays_others_repairs() {
        let rate = Rate::from_bps(20_000_000);
        let queue = |own: (u64, u64), other: (u64, u64)| {
            let memory = [remembered(own.0, own.1), remembered(other.0, other.1)];
            worthwhile_queue(0, rate, Duration::from_millis(40), CHUNK, &memory)
        };
        let alone = queue((2500, 5), (0, 0));
        assert!((0.95..1.0).contains(&alone), "{alone}");
        let alike = queue((2500, 5), (2500, 5));
        assert!((0.9..alone).contains(&alike), "{alike}");
        assert_eq!(queue((2500, 1), (2500, 100)), 0.0);
        assert_eq!(queue((1, 0), (2500, 50)), 0.0, "nothing is known of its losses");
    }
}
