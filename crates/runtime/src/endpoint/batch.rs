//! Datagrams for one destination that leave with one system call.

use std::net::{IpAddr, SocketAddr};

/// Bytes in one call at most: what an IPv4 datagram can say of its own length, less headers.
const BYTES_LIMIT: usize = 65_000;

/// Datagrams of one size, one after the other; the last may be shorter (generic segmentation
/// offload asks for that).
#[derive(Debug)]
pub struct Batch {
    destination: SocketAddr,
    /// The own address that it leaves from; none: the system chooses.
    source: Option<IpAddr>,
    segment: usize,
    count: usize,
    bytes: Vec<u8>,
    /// The network may cut it.
    may_be_cut: bool,
    /// The network may mark it.
    ect: bool,
}

impl Batch {
    /// An empty one.
    pub const fn new(destination: SocketAddr) -> Self {
        Self {
            destination,
            source: None,
            segment: 0,
            count: 0,
            bytes: Vec::new(),
            may_be_cut: false,
            ect: false,
        }
    }

    /// Where it goes.
    pub const fn destination(&self) -> SocketAddr {
        self.destination
    }

    /// The own address that it leaves from; none: the system chooses.
    pub const fn source(&self) -> Option<IpAddr> {
        self.source
    }

    /// It leaves from that own address.
    pub const fn set_source(&mut self, source: Option<IpAddr>) {
        self.source = source;
    }

    /// Bytes of each datagram but the last.
    pub const fn segment(&self) -> usize {
        self.segment
    }

    /// All datagrams.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The network may mark what is in it, or may not (ECT(0), RFC 3168).
    ///
    /// # Panics
    /// If there is something in it that differs.
    pub fn set_ect(&mut self, ect: bool) {
        assert!(self.is_empty() || self.ect == ect, "one call, one code point");
        self.ect = ect;
    }

    /// Whether the network may mark it.
    pub const fn ect(&self) -> bool {
        self.ect
    }

    /// What is in it is longer than its path carries, and cannot be cut smaller here.
    pub const fn let_be_cut(&mut self) {
        self.may_be_cut = true;
    }

    /// Whether the network may cut it.
    pub const fn may_be_cut(&self) -> bool {
        self.may_be_cut
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether one more datagram like the first has to wait for the next batch.
    pub const fn is_full(&self, segments: usize) -> bool {
        self.count >= segments || self.bytes.len() + self.segment > BYTES_LIMIT
    }

    /// Adds the datagram that `write` appends to the buffer. If it is longer than those before, it
    /// is taken out again and returned by its place: the batch has to leave first.
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

    /// Splits off what [`Fit::Longer`] told of; it becomes the batch, and what was before it is
    /// returned.
    #[must_use]
    pub fn split(&mut self, from: usize) -> Self {
        let longer = self.bytes.split_off(from);
        let before = self.take();
        self.ect = before.ect;
        self.segment = longer.len();
        self.count = 1;
        self.bytes = longer;
        before
    }

    /// Takes all; an empty batch for the same destination stays.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let empty = Self { source: self.source, ..Self::new(self.destination) };
        std::mem::replace(self, empty)
    }

    /// Forgets all; the memory stays.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.segment = 0;
        self.may_be_cut = false;
    }

    /// The next datagrams go elsewhere.
    ///
    /// # Panics
    /// If there is something in it.
    pub fn redirect(&mut self, destination: SocketAddr) {
        assert!(self.is_empty(), "a batch has one destination");
        self.destination = destination;
    }
}

/// How a datagram fits to those before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// More may follow.
    More,
    /// Nothing was written.
    Nothing,
    /// It is shorter than the others: nothing may follow.
    Last,
    /// It is longer: it stands at `from` and must be split off.
    Longer {
        /// Where it begins.
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
    }
}
