//! Selects the packets of a path that request an acknowledgement.
//!
//! The sender knows the purposes of acknowledgements: growth of the window, pacing, loss detection. So
//! the sender decides, as with QUIC's ACK_FREQUENCY (draft-ietf-quic-ack-frequency), but for each packet,
//! by a bit in the packet (RFC 7053). No state at the receiver can then be out of date.
//!
//! ```text
//! packets between two requests:   in flight / 8, and at least enough to keep acknowledgements
//!                                 below 1 % of the bytes sent,
//!                                 but at most in flight / 4, and at least 2
//! ```
//!
//! A request is also made where sending stops, and for data that the peer waits for.

use ropewalk_base::{Duration, Serial32};

/// Acknowledgements in a round trip (picoquic: 8 with a long round trip; draft-ietf-quic-ack-frequency, 7.2: more than
/// one).
const PER_ROUND_TRIP: u64 = 8;
/// Minimum number of acknowledgements in a round trip after the limit on byte overhead.
const LEAST_PER_ROUND_TRIP: u64 = 4;
/// Minimum number of full packets between two requests that keeps acknowledgements, of about 90 bytes
/// with all headers, at about 1 % of the bytes. The slowest uplinks have a fortieth of the rate, so
/// acknowledgements leave half of it free.
const ECONOMICAL: u64 = 6;
/// Minimum number of packets between two requests (RFC 9260, 6.2).
const LEAST: u64 = 2;
/// Maximum number of doublings while the return path has a queue.
const DOUBLINGS_MAX: u8 = 2;
/// Queueing delay of the return path from which it counts as full, and the divisor of the round trip for
/// the same.
const RETURN_QUEUE: Duration = Duration::from_millis(20);
const RETURN_QUEUE_DIVISOR: u64 = 2;

/// Acknowledgement behaviour of the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAcks {
    /// Maximum delay of its acknowledgements.
    pub delay: Duration,
    /// Whether it acknowledges on the sender's request. Otherwise it acknowledges every second packet.
    pub on_request: bool,
}

impl PeerAcks {
    /// Acknowledges every second packet, and a single packet after `delay`.
    pub const fn of_every_second_packet(delay: Duration) -> Self {
        Self { delay, on_request: false }
    }
}

/// Why a packet may need a request beyond the usual number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Occasion {
    /// The packet repeats the oldest outstanding data: the receive window opens when it arrives.
    pub oldest: bool,
    /// The congestion window or the receive window is full after this packet.
    pub window_full: bool,
    /// There is no more data after this packet.
    pub out_of_data: bool,
}

/// The requests of one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct AckRequests {
    /// Packets sent since the last request.
    packets: u16,
    /// Number of times that the usual number of packets is doubled.
    doublings: u8,
    /// The lowest bits of the round in which `doublings` last changed.
    changed_in: u8,
    /// The lowest bits of the number after the last transmission that requested an acknowledgement.
    requested_to: Serial32,
}

impl AckRequests {
    /// Records a packet and returns whether it requests an acknowledgement. `in_flight`: packets in
    /// flight, including this one. `next`: the number after its last transmission. `acked_to`: the number
    /// after the highest one acknowledged.
    pub fn on_packet(
        &mut self,
        in_flight: u64,
        (next, acked_to): (u64, u64),
        occasion: Occasion,
    ) -> bool {
        self.packets = self.packets.saturating_add(1);
        let pending = Serial32::wrap(acked_to).is_before(self.requested_to);
        let packets = u64::from(self.packets);
        let wanted = occasion.oldest
            || occasion.window_full && !pending
            || (occasion.window_full || occasion.out_of_data) && packets >= LEAST
            || packets >= self.spacing(in_flight);
        if wanted {
            (self.packets, self.requested_to) = (0, Serial32::wrap(next));
        }
        wanted
    }

    /// Packets between two requests.
    fn spacing(&self, in_flight: u64) -> u64 {
        let usual = (in_flight / PER_ROUND_TRIP).max(ECONOMICAL);
        let usual = usual.min(in_flight / LEAST_PER_ROUND_TRIP).max(LEAST);
        // Two requests in a round trip remain.
        (usual << self.doublings).min(usual.max(in_flight / 2)).min(u16::MAX.into())
    }

    /// Records the queueing delay of the return path, in a round of the path whose round trip without
    /// queues is `base`.
    pub fn on_return_queueing(&mut self, queueing: Duration, base: Duration, round: u64) {
        let round = round as u8;
        if self.changed_in == round {
            return;
        }
        let full = queueing > RETURN_QUEUE.max(base / RETURN_QUEUE_DIVISOR);
        let doublings = match full {
            true => (self.doublings + 1).min(DOUBLINGS_MAX),
            false => self.doublings.saturating_sub(1),
        };
        (self.doublings, self.changed_in) = (doublings, round);
    }

    /// Whether the acknowledgement of transmission `number` was requested.
    #[inline]
    pub const fn covers(&self, number: u64) -> bool {
        Serial32::wrap(number).is_before(self.requested_to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the packets with a request among `count` packets, with `in_flight` in flight.
    fn requested(requests: &mut AckRequests, in_flight: u64, count: u64) -> Vec<u64> {
        let occasion = Occasion::default();
        (1..=count).filter(|n| requests.on_packet(in_flight, (*n, 0), occasion)).collect()
    }

    #[test]
    fn there_are_four_to_eight_requests_in_a_round_trip() {
        for (in_flight, spacing) in
            [(1, 2), (4, 2), (11, 2), (12, 3), (20, 5), (24, 6), (40, 6), (80, 10), (800, 100)]
        {
            let numbers = requested(&mut AckRequests::default(), in_flight, 2 * spacing);
            assert_eq!(numbers, [spacing, 2 * spacing], "{in_flight} in flight");
        }
    }

    #[test]
    fn the_last_packet_before_a_pause_and_the_oldest_one_are_requested() {
        let full = Occasion { window_full: true, ..Occasion::default() };
        let end = Occasion { out_of_data: true, ..Occasion::default() };
        let oldest = Occasion { oldest: true, ..Occasion::default() };
        let mut requests = AckRequests::default();
        assert!(requests.on_packet(40, (1, 0), full), "nothing else is requested");
        assert!(!requests.on_packet(40, (2, 0), full), "the request before it is pending");
        assert!(requests.on_packet(40, (3, 0), full));
        assert!(requests.on_packet(40, (4, 0), oldest));
        assert!(requests.on_packet(40, (5, 4), full), "all requests are answered");
        assert!(!requests.on_packet(40, (6, 5), end), "a single packet waits for the timer");
        assert!(requests.on_packet(40, (7, 5), end));
        assert!(requests.covers(6) && !requests.covers(7));
    }

    #[test]
    fn a_queue_on_the_return_path_halves_the_requests_and_twice_at_most() {
        let millis = Duration::from_millis;
        let mut requests = AckRequests::default();
        for (round, queueing, spacing) in [
            (1, 15, 10),
            (2, 30, 20),
            (2, 30, 20),
            (3, 30, 40),
            (4, 30, 40),
            (5, 0, 20),
            (6, 0, 10),
        ] {
            requests.on_return_queueing(millis(queueing), millis(30), round);
            assert_eq!(requests.spacing(80), spacing, "round {round}");
        }
    }
}
