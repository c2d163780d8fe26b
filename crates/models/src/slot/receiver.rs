//! The receiver: one buffer for out-of-order packets.

use std::collections::BTreeSet;

/// Cumulative point and stored packets.
#[derive(Debug, Clone)]
pub(super) struct Receiver {
    /// The highest packet up to which everything has been delivered; 0 before the first.
    pub delivered_to: u64,
    stored: BTreeSet<u64>,
    capacity: u64,
}

impl Receiver {
    pub fn new(capacity: u64) -> Self {
        Self { delivered_to: 0, stored: BTreeSet::new(), capacity }
    }

    /// Packets held out of order.
    pub fn stored(&self) -> u64 {
        self.stored.len() as u64
    }

    /// Free places: the receive window.
    pub fn free(&self) -> u64 {
        self.capacity - self.stored()
    }

    /// Processes a packet. Returns false if it had to be discarded.
    pub fn accept(&mut self, packet: u64) -> bool {
        assert!(packet > self.delivered_to, "packet {packet} was delivered before");
        if packet == self.delivered_to + 1 {
            self.delivered_to = packet;
            while self.stored.remove(&(self.delivered_to + 1)) {
                self.delivered_to += 1;
            }
            return true;
        }
        if self.free() == 0 {
            return false;
        }
        assert!(self.stored.insert(packet), "packet {packet} is stored already");
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_in_order_packet_passes_a_full_buffer_and_frees_it() {
        let mut receiver = Receiver::new(2);
        assert!(receiver.accept(2) && receiver.accept(3));
        assert!(!receiver.accept(4), "full: out of order is discarded");
        assert!(receiver.accept(1));
        assert_eq!((receiver.delivered_to, receiver.free()), (3, 2));
    }
}
