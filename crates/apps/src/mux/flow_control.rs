//! Flow control: how far the peer may send, and the memory that this requires.

use super::limits::{Limits, MIN_WINDOW};

/// Memory that the windows of all streams share, beyond the [`MIN_WINDOW`] bytes of each stream, in bytes.
#[derive(Debug)]
pub struct WindowMemory {
    free: u64,
    all: u64,
}

impl WindowMemory {
    pub const fn new(limits: &Limits) -> Self {
        Self { free: limits.shared, all: limits.shared }
    }

    /// The window for a new stream: as requested, or less while memory is short.
    pub fn initial_window(&mut self, wanted: u64) -> u64 {
        // An eighth of the free memory, so that many new streams can share it.
        let more = wanted.saturating_sub(MIN_WINDOW).min(self.free / 8);
        self.free -= more;
        MIN_WINDOW + more
    }

    /// Reserves memory for a growing window. Returns false if too little would be left for others.
    pub const fn grow(&mut self, bytes: u64) -> bool {
        if bytes > self.free / 8 {
            return false;
        }
        self.free -= bytes;
        true
    }

    pub fn release(&mut self, bytes: u64) {
        self.free += bytes;
        assert!(self.free <= self.all, "memory given back that was never taken");
    }

    /// Reserved memory, bytes.
    pub const fn reserved(&self) -> u64 {
        self.all - self.free
    }
}

/// How far the peer may send on one stream. Positions count bytes from the start of the stream.
#[derive(Debug)]
pub struct Window {
    /// Reserved memory, bytes: the maximum that can be unread.
    size: u64,
    /// The position up to which the peer may send.
    granted: u64,
    received: u64,
    consumed: u64,
    /// Whether everything granted has arrived, so that the sender had to wait.
    exhausted: bool,
    /// Whether a CREDIT is queued, which will contain the newest position.
    update_queued: bool,
}

impl Window {
    /// A window of `size` bytes (at least [`MIN_WINDOW`]); the peer knows the position `granted`.
    pub const fn new(size: u64, granted: u64) -> Self {
        Self { size, granted, received: 0, consumed: 0, exhausted: false, update_queued: false }
    }

    /// The part of the window that is shared memory.
    pub const fn shared(&self) -> u64 {
        self.size - MIN_WINDOW
    }

    /// The position up to which the peer may send, as in the next CREDIT.
    pub const fn granted(&self) -> u64 {
        self.granted
    }

    /// Records received bytes. Returns false if they exceed what was granted.
    pub const fn receive(&mut self, bytes: u64) -> bool {
        let up_to = self.received.saturating_add(bytes);
        if up_to > self.granted {
            return false;
        }
        self.received = up_to;
        self.exhausted |= up_to == self.granted;
        true
    }

    /// Grants the entire window when the stream is accepted.
    pub fn open(&mut self) {
        self.granted = self.granted.max(self.consumed + self.size);
        self.exhausted = false;
    }

    /// Records bytes that were read. Returns true if a CREDIT must be queued.
    ///
    /// A CREDIT is due when half the window is free. If the sender had to wait although the reader read everything
    /// that arrived, the window limits the stream and is doubled.
    pub fn consume(&mut self, bytes: u64, largest: u64, window_memory: &mut WindowMemory) -> bool {
        self.consumed += bytes;
        let unread = self.received - self.consumed;
        let slack = self.consumed + self.size - self.granted;
        if slack < self.size / 2 {
            return false;
        }
        if self.exhausted && unread <= self.size / 8 {
            let more = self.size.min(largest.saturating_sub(self.size));
            if window_memory.grow(more) {
                self.size += more;
            }
        }
        self.exhausted = false;
        self.granted = self.consumed + self.size;
        !std::mem::replace(&mut self.update_queued, true)
    }

    /// Returns the position for the CREDIT that is sent now.
    pub const fn take_update(&mut self) -> u64 {
        self.update_queued = false;
        self.granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 4 * MIN_WINDOW;

    fn window_memory(shared: u64) -> WindowMemory {
        WindowMemory::new(&Limits { shared, ..Limits::default() })
    }

    fn window(window_memory: &mut WindowMemory) -> Window {
        assert_eq!(window_memory.initial_window(SIZE), SIZE);
        Window::new(SIZE, SIZE)
    }

    #[test]
    fn a_window_doubles_only_for_a_reader_that_keeps_up_with_a_sender_that_had_to_wait() {
        for (received, consumed, times) in [
            // Everything arrived and was read: the window limits the stream.
            (SIZE, SIZE, 2),
            (SIZE, SIZE - SIZE / 8, 2),
            // The reader is slow.
            (SIZE, SIZE / 2, 1),
            // The sender never had to wait.
            (SIZE - 1, SIZE - 1, 1),
        ] {
            let mut window_memory = window_memory(64 << 20);
            let mut window = window(&mut window_memory);
            assert!(window.receive(received));
            assert!(window.consume(consumed, 1 << 30, &mut window_memory), "half of it is free");
            assert_eq!(window.take_update(), consumed + times * SIZE, "{received} {consumed}");
            assert_eq!(window.shared(), times * SIZE - MIN_WINDOW);
            assert_eq!(window_memory.reserved(), window.shared());
        }
    }

    #[test]
    fn a_window_grows_neither_past_its_limit_nor_past_its_share_of_the_memory() {
        for (largest, shared, size_after) in [
            (SIZE + 5, 64 << 20, SIZE + 5),
            (SIZE - 5, 64 << 20, SIZE),
            (1 << 30, 10 * SIZE, 2 * SIZE),
            (1 << 30, 8 * SIZE, SIZE),
        ] {
            let mut window_memory = window_memory(shared);
            let mut window = window(&mut window_memory);
            assert!(window.receive(SIZE));
            window.consume(SIZE, largest, &mut window_memory);
            assert_eq!(window.shared() + MIN_WINDOW, size_after, "{largest} {shared}");
        }
    }

    #[test]
    fn more_than_was_granted_is_refused() {
        for (granted, pieces, last_fits) in
            [(10, vec![10], true), (10, vec![11], false), (10, vec![4, 6, 1], false)]
        {
            let mut window = Window::new(MIN_WINDOW, granted);
            let fits: Vec<_> = pieces.iter().map(|n| window.receive(*n)).collect();
            assert_eq!(fits.last(), Some(&last_fits), "{granted} {pieces:?}");
        }
    }

    #[test]
    fn however_many_streams_there_are_each_has_its_least_and_all_stay_within_the_memory() {
        let mut window_memory = window_memory(1 << 20);
        let sizes: Vec<_> = (0..1000).map(|_| window_memory.initial_window(256 << 10)).collect();
        assert_eq!(sizes[0], MIN_WINDOW + (1 << 17), "an eighth");
        assert!(sizes.iter().all(|size| *size >= MIN_WINDOW));
        let shared: u64 = sizes.iter().map(|size| size - MIN_WINDOW).sum();
        assert_eq!(shared, window_memory.reserved());
        assert!(shared <= 1 << 20);
    }

    #[test]
    fn a_reader_is_told_of_once_until_the_credit_has_left() {
        let mut window_memory = window_memory(64 << 20);
        let mut window = window(&mut window_memory);
        assert!(window.receive(SIZE));
        assert!(!window.consume(SIZE / 2 - 1, SIZE, &mut window_memory), "not worth a message yet");
        assert!(window.consume(1, SIZE, &mut window_memory));
        assert!(
            !window.consume(SIZE / 2, SIZE, &mut window_memory),
            "the one that waits tells it all"
        );
        assert_eq!(window.take_update(), 2 * SIZE);
        assert!(window.receive(SIZE));
        assert!(window.consume(SIZE, SIZE, &mut window_memory));
    }
}
