//! Whether a congestion window is in use: the rule of Linux (`tcp_cwnd_validate` in net/ipv4/tcp_output.c,
//! `tcp_is_cwnd_limited` in include/net/tcp.h, 6.18).
//!
//! RFC 7661 lets a window grow if it was full when the acknowledged data was sent. Linux records for a
//! window of data whether it was full at any time. In slow start Linux also lets the window grow to twice
//! the maximum data in flight, so a path that is limited otherwise may have a window of twice what it
//! needs.

use super::SentPacket;

/// Data in flight during the last window of data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowUse {
    /// Whether the window was full (`is_cwnd_limited`).
    full: bool,
    /// Otherwise the maximum data in flight, bytes (`max_packets_out`).
    most: u64,
    /// The packet whose acknowledgement ends this window of data (`cwnd_usage_seq`).
    until: u64,
    /// The oldest packet in flight.
    oldest: u64,
}

impl WindowUse {
    /// Records an acknowledgement. `oldest`: the oldest packet that is still in flight.
    pub fn on_ack(&mut self, oldest: u64) {
        self.oldest = self.oldest.max(oldest);
    }

    /// Records a packet that is sent with a window of `cwnd` bytes. `unit`: length of a full packet.
    pub fn on_sent(&mut self, packet: &SentPacket, cwnd: f64, unit: f64) {
        let out = packet.in_flight_before + packet.bytes;
        let full = out as f64 + unit > cwnd;
        if self.oldest >= self.until || full || (!self.full && out > self.most) {
            *self = Self { full, most: out, until: packet.number + 1, ..*self };
        }
    }

    /// Whether a window of `cwnd` bytes may grow.
    pub fn permits_growth(&self, cwnd: f64, in_slow_start: bool) -> bool {
        self.full || (in_slow_start && cwnd < 2.0 * self.most as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(usage: &mut WindowUse, number: u64, in_flight_before: u64) {
        let packet = SentPacket {
            number,
            bytes: 1000,
            in_flight_before,
            app_limited: false,
            out_of_data: false,
        };
        usage.on_sent(&packet, 10_000.0, 1000.0);
    }

    #[test]
    fn a_window_that_was_full_once_may_grow_for_a_window_of_data() {
        let mut usage = WindowUse::default();
        for number in 0..10 {
            send(&mut usage, number, number * 1000);
        }
        assert!(usage.permits_growth(10_000.0, false));
        usage.on_ack(9);
        send(&mut usage, 10, 1000);
        assert!(usage.permits_growth(10_000.0, false), "packet 9 is still in flight");
        usage.on_ack(11);
        send(&mut usage, 11, 0);
        assert!(!usage.permits_growth(10_000.0, false));
    }

    #[test]
    fn in_slow_start_it_may_grow_to_twice_what_was_in_flight() {
        let mut usage = WindowUse::default();
        for number in 0..6 {
            send(&mut usage, number, number * 1000);
        }
        for (cwnd, slow_start, grows) in
            [(11_999.0, true, true), (12_000.0, true, false), (11_999.0, false, false)]
        {
            assert_eq!(usage.permits_growth(cwnd, slow_start), grows, "{cwnd}");
        }
    }
}
