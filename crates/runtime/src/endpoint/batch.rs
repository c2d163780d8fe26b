//! Datagrams to one destination that are sent with one system call.

use std::net::{IpAddr, SocketAddr};

use ropewalk_base::Ecn;

use super::dscp::Dscp;

/// Maximum number of bytes in one call: the largest IPv4 datagram, less headers.
const BYTES_LIMIT: usize = 65_000;

/// Consecutive datagrams of one size. The last one may be shorter, as generic segmentation offload requires.
#[derive(Debug)]
pub struct Batch {
    destination: SocketAddr,
    /// The local address to send from. `None` leaves the choice to the system.
    source: Option<IpAddr>,
    segment: usize,
    count: usize,
    bytes: Vec<u8>,
    /// Whether the network may fragment the datagram.
    may_be_fragmented: bool,
    /// ECN field of the datagrams.
    ecn: Ecn,
    /// DSCP of the datagrams.
    dscp: Dscp,
}

impl Batch {
    /// An empty batch.
    pub const fn new(destination: SocketAddr) -> Self {
        Self {
            destination,
            source: None,
            segment: 0,
            count: 0,
            bytes: Vec::new(),
            may_be_fragmented: false,
            ecn: Ecn::NotEct,
            dscp: Dscp::DEFAULT,
        }
    }

    /// The destination.
    pub const fn destination(&self) -> SocketAddr {
        self.destination
    }

    /// The local address to send from. `None` leaves the choice to the system.
    pub const fn source(&self) -> Option<IpAddr> {
        self.source
    }

    /// Sets the local address to send from.
    pub const fn set_source(&mut self, source: Option<IpAddr>) {
        self.source = source;
    }

    /// Size of each datagram except the last, bytes.
    pub const fn segment(&self) -> usize {
        self.segment
    }

    /// The bytes of all datagrams.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Sets the ECN field of the datagrams.
    ///
    /// # Panics
    /// If the batch contains datagrams with another codepoint.
    pub fn set_ecn(&mut self, ecn: Ecn) {
        assert!(self.is_empty() || self.ecn == ecn, "one call, one codepoint");
        self.ecn = ecn;
    }

    /// ECN field of the datagrams.
    pub const fn ecn(&self) -> Ecn {
        self.ecn
    }

    /// Sets the DSCP of the datagrams.
    pub const fn set_dscp(&mut self, dscp: Dscp) {
        self.dscp = dscp;
    }

    /// DSCP of the datagrams.
    pub const fn dscp(&self) -> Dscp {
        self.dscp
    }

    /// Allows fragmentation by the network: the datagram exceeds the path MTU and cannot be made smaller.
    pub const fn allow_fragmentation(&mut self) {
        self.may_be_fragmented = true;
    }

    /// Whether the network may fragment the datagram.
    pub const fn may_be_fragmented(&self) -> bool {
        self.may_be_fragmented
    }

    /// Whether the batch has no datagrams.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether another datagram of the same size has to wait for the next batch.
    pub const fn is_full(&self, segments: usize) -> bool {
        self.count >= segments || self.bytes.len() + self.segment > BYTES_LIMIT
    }

    /// Adds the datagram that `write` appends to the buffer. If it is longer than the previous ones, the batch has to
    /// be split and sent first: see [`Fit::Longer`].
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Fit {
        let before = self.bytes.len();
        write(&mut self.bytes);
        let length = self.bytes.len() - before;
        if length == 0 {
            return Fit::Nothing;
        }
        if self.count == 0 {
            self.segment = length;
        } else if length > self.segment {
            return Fit::Longer { from: before };
        }
        self.count += 1;
        if length < self.segment { Fit::Last } else { Fit::More }
    }

    /// Skips the first datagrams, which total `bytes`.
    pub fn skip(&mut self, bytes: usize) {
        self.bytes.drain(..bytes);
        self.count -= bytes.div_ceil(self.segment.max(1));
    }

    /// Splits the batch at the place that [`Fit::Longer`] gave. The longer datagram remains as the batch; the
    /// datagrams before it are returned.
    #[must_use]
    pub fn split(&mut self, from: usize) -> Self {
        let longer = self.bytes.split_off(from);
        let before = self.take();
        self.ecn = before.ecn;
        self.segment = longer.len();
        self.count = 1;
        self.bytes = longer;
        before
    }

    /// Returns the batch and leaves an empty one for the same destination.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let (source, dscp) = (self.source, self.dscp);
        let empty = Self { source, dscp, ..Self::new(self.destination) };
        std::mem::replace(self, empty)
    }

    /// Removes all datagrams and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.segment = 0;
        self.may_be_fragmented = false;
    }

    /// Changes the destination of the next datagrams.
    ///
    /// # Panics
    /// If the batch is not empty.
    pub fn redirect(&mut self, destination: SocketAddr) {
        assert!(self.is_empty(), "a batch has one destination");
        self.destination = destination;
    }
}

/// How a datagram relates to the previous ones in its batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// Another datagram may follow.
    More,
    /// No datagram was written.
    Nothing,
    /// The datagram is shorter than the others: none may follow.
    Last,
    /// The datagram is longer than the others and must be split off.
    Longer {
        /// Where it begins in the buffer, bytes.
        from: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_datagrams_join_a_shorter_one_ends_the_row_and_a_longer_one_begins_another() {
        let to = SocketAddr::from(([127, 0, 0, 1], 9899));
        let mut batch = Batch::new(to);
        let write = |n: usize| move |out: &mut Vec<u8>| out.resize(out.len() + n, 7);
        let from = Some([127, 0, 0, 9].into());
        batch.set_source(from);
        assert_eq!(batch.push(write(100)), Fit::More);
        assert_eq!(batch.push(write(100)), Fit::More);
        assert_eq!(batch.push(write(140)), Fit::Longer { from: 200 });
        let before = batch.split(200);
        assert_eq!((before.bytes().len(), before.segment()), (200, 100));
        assert_eq!((before.source(), batch.source()), (from, from));
        assert_eq!((batch.bytes().len(), batch.segment(), batch.destination()), (140, 140, to));
        assert_eq!(batch.push(write(20)), Fit::Last);
        assert!(batch.is_full(2) && !batch.is_full(3));
        batch.skip(140);
        assert_eq!((batch.bytes().len(), batch.is_full(2)), (20, false));
        batch.skip(20);
        assert!(batch.is_empty());
    }
}
