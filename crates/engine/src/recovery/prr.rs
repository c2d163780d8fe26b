//! Proportional rate reduction (RFC 6937bis, draft-ietf-tcpm-prr-rfc6937bis): the amount that may be sent
//! for each acknowledgement in recovery.
//!
//! Without it, a window that was reduced after a loss holds back all data until enough of the old window
//! has left the network, and then each acknowledgement permits as much as it covers. With it, sending
//! continues from the first acknowledgement on, at the ratio of the new window to the old one. If the
//! losses leave less than the new window in flight, delivered data is replaced, and while no further
//! losses are detected, one more packet is sent per acknowledgement.

/// The reduction of one recovery.
#[derive(Clone, Copy, Debug)]
pub struct Prr {
    /// Window before the reduction, bytes (RecoverFS; `prior_cwnd` in Linux).
    before: u64,
    /// Target of the reduction, bytes (ssthresh).
    target: u64,
    /// A full packet, bytes (SMSS).
    unit: u64,
    /// Bytes delivered, and bytes sent, since recovery began.
    delivered: u64,
    sent: u64,
    /// Maximum data in flight until the next acknowledgement, bytes.
    window: u64,
}

/// An acknowledgement in recovery.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Bytes that it reports as delivered (DeliveredData).
    pub delivered: u64,
    /// Bytes in flight after it (inflight).
    pub in_flight: u64,
    /// Whether the cumulative acknowledgement advanced and no further loss was detected (SafeACK).
    pub safe: bool,
}

impl Prr {
    /// Recovery begins: the window falls from `before` to `target` bytes. One packet may be sent
    /// immediately.
    pub const fn new(before: u64, target: u64, unit: u64, in_flight: u64) -> Self {
        let before = if before == 0 { 1 } else { before };
        Self { before, target, unit, delivered: 0, sent: 0, window: in_flight + unit }
    }

    /// Records a transmission.
    pub const fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// Processes an acknowledgement.
    pub fn on_ack(&mut self, ack: Progress) {
        if ack.delivered == 0 {
            return;
        }
        self.delivered += ack.delivered;
        let room = if ack.in_flight > self.target {
            // Proportional rate reduction.
            let allowed =
                (self.delivered as u128 * self.target as u128).div_ceil(self.before as u128) as u64;
            allowed.saturating_sub(self.sent)
        } else {
            // PRR-CRB by default, PRR-SSRB while recovery makes progress.
            let owed = self.delivered.saturating_sub(self.sent).max(ack.delivered);
            let more = if ack.safe { self.unit } else { 0 };
            (owed + more).min(self.target - ack.in_flight)
        };
        // The fast retransmit is always sent.
        let least = if self.sent == 0 { self.unit } else { 0 };
        self.window = ack.in_flight + room.max(least);
    }

    /// Maximum data in flight now, bytes.
    #[inline]
    pub const fn window(&self) -> u64 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of 20 packets loses its first `lost` ones and is reduced to 14. Returns the number of
    /// packets sent after each acknowledgement.
    fn recover(lost: u64) -> Vec<u64> {
        let mut prr = Prr::new(20, 14, 1, 20 - lost);
        let mut in_flight = 20 - lost;
        let mut sends = Vec::new();
        for _ in 0..20 - lost {
            in_flight -= 1;
            prr.on_ack(Progress { delivered: 1, in_flight, safe: false });
            let send = prr.window().saturating_sub(in_flight);
            (0..send).for_each(|_| prr.on_sent(1));
            in_flight += send;
            sends.push(send);
        }
        sends
    }

    #[test]
    fn one_loss_spreads_seven_tenths_of_a_window_over_the_round_trip() {
        let sends = recover(1);
        assert_eq!(sends.iter().sum::<u64>(), 14);
        assert!(sends.iter().all(|send| *send <= 1), "{sends:?}");
    }

    #[test]
    fn when_much_is_lost_what_is_delivered_is_replaced() {
        let sends = recover(10);
        assert!(sends.iter().all(|send| *send == 1), "{sends:?}");
    }

    #[test]
    fn without_further_losses_the_window_grows_to_its_target_by_a_packet_per_acknowledgement() {
        let mut prr = Prr::new(20, 14, 1, 8);
        for (in_flight, window) in [(8, 10), (9, 11), (12, 14), (13, 14)] {
            prr.on_ack(Progress { delivered: 1, in_flight, safe: true });
            (0..prr.window() - in_flight).for_each(|_| prr.on_sent(1));
            assert_eq!(prr.window(), window);
        }
    }
}
