//! Puts unordered messages back into order.
//!
//! The association delivers messages as they arrive, so that none waits in its receive buffer, which may therefore be
//! small even if the paths are very unequal. Early messages wait here instead, outside the receive buffer's limit.

use std::collections::BTreeMap;

use bytes::Bytes;

/// Maximum number of messages that may wait for a missing one: twice as many as an association has outstanding.
const AHEAD_LIMIT: u32 = 1 << 16;
/// Maximum size of all waiting messages, bytes: as many as an association with our largest send buffer has
/// outstanding.
const BYTES_LIMIT: usize = 64 << 20;

/// Memory overhead of a message, bytes.
const MESSAGE_COST: usize = 128;
/// Messages shorter than this are copied, bytes.
const SMALL: usize = 512;

/// An invalid message: too far ahead, duplicated, or too many bytes waiting for a missing message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfOrder;

/// The messages that wait for a missing one.
#[derive(Debug, Default)]
pub struct ReorderBuffer {
    next: u32,
    early: BTreeMap<u32, Bytes>,
    /// Bytes of the messages in `early`.
    bytes: usize,
}

impl ReorderBuffer {
    /// Takes message `number`, which counts from 0 and wraps around. Appends all messages that are now in order.
    ///
    /// # Errors
    /// [`OutOfOrder`].
    pub fn take(
        &mut self,
        number: u32,
        message: Bytes,
        into: &mut Vec<Bytes>,
    ) -> Result<(), OutOfOrder> {
        if number != self.next {
            self.bytes += MESSAGE_COST + message.len();
            let ahead = number.wrapping_sub(self.next);
            let fits = ahead < AHEAD_LIMIT && self.bytes <= BYTES_LIMIT;
            // Copied, because a small message would keep its entire datagram in memory.
            let small = message.len() < SMALL;
            let kept = if small { Bytes::copy_from_slice(&message) } else { message };
            let fresh = fits && self.early.insert(number, kept).is_none();
            return if fresh { Ok(()) } else { Err(OutOfOrder) };
        }
        into.push(message);
        self.next = number.wrapping_add(1);
        while !self.early.is_empty()
            && let Some(message) = self.early.remove(&self.next)
        {
            self.bytes -= MESSAGE_COST + message.len();
            into.push(message);
            self.next = self.next.wrapping_add(1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(number: u32) -> Bytes {
        Bytes::copy_from_slice(&number.to_le_bytes())
    }

    proptest! {
        #[test]
        fn whatever_the_order_of_arrival_they_come_out_in_their_own(
            first in prop_oneof![Just(0), Just(u32::MAX - 20), any::<u32>()],
            places in proptest::collection::vec(any::<u16>(), 1..200),
        ) {
            let mut numbers: Vec<u32> = (0..places.len() as u32).map(|i| first.wrapping_add(i)).collect();
            numbers.sort_by_key(|n| places[n.wrapping_sub(first) as usize]);
            let (mut reorder_buffer, mut out) = (ReorderBuffer { next: first, ..ReorderBuffer::default() }, Vec::new());
            for number in numbers {
                reorder_buffer.take(number, message(number), &mut out).unwrap();
            }
            let expected: Vec<_> = (0..places.len() as u32).map(|i| message(first.wrapping_add(i))).collect();
            prop_assert_eq!(out, expected);
            prop_assert_eq!((reorder_buffer.early.len(), reorder_buffer.bytes), (0, 0));
        }
    }

    #[test]
    fn what_no_honest_sender_sends_is_refused() {
        let mut out = Vec::new();
        let mut reorder_buffer = ReorderBuffer::default();
        assert_eq!(
            reorder_buffer.take(AHEAD_LIMIT, message(0), &mut out),
            Err(OutOfOrder),
            "too far"
        );
        let mut reorder_buffer = ReorderBuffer::default();
        assert_eq!(reorder_buffer.take(u32::MAX, message(0), &mut out), Err(OutOfOrder), "behind");
        let mut reorder_buffer = ReorderBuffer::default();
        reorder_buffer.take(5, message(5), &mut out).unwrap();
        assert_eq!(reorder_buffer.take(5, message(5), &mut out), Err(OutOfOrder), "twice");
        let mut reorder_buffer = ReorderBuffer::default();
        let large = Bytes::from(vec![0; BYTES_LIMIT / 4 - MESSAGE_COST]);
        for number in 1..=4 {
            reorder_buffer.take(number, large.clone(), &mut out).unwrap();
        }
        assert_eq!(reorder_buffer.take(5, message(5), &mut out), Err(OutOfOrder), "too much");
        assert!(out.is_empty());
    }
}
