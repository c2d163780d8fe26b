//! Flow control: how far the peer may send, and the memory that this costs.

use super::limits::{EARLY, Limits};

/// Memory that the windows of all streams share, beyond the [`EARLY`] bytes of each stream, in bytes.
#[derive(Debug)]
pub struct Budget {
    free: u64,
    all: u64,
}

impl Budget {
    pub const fn new(limits: &Limits) -> Self {
        Self { free: limits.shared, all: limits.shared }
    }

    /// The window for a new stream: as requested, or less while memory is short.
    pub fn first(&mut self, wished: u64) -> u64 {
        // An eighth of the free memory, so that many new streams can share it.
        let more = wished.saturating_sub(EARLY).min(self.free / 8);
        self.free -= more;
        EARLY + more
    }

    /// Reserves memory for a growing window. Returns false if too little would be left for others.
    pub const fn grow(&mut self, bytes: u64) -> bool {
        if bytes > self.free / 8 {
            return false;
        }
        self.free -= bytes;
        true
    }

    pub fn give(&mut self, bytes: u64) {
        self.free += bytes;
        assert!(self.free <= self.all, "memory given back that was never taken");
    }

    /// Reserved memory, bytes.
    pub const fn taken(&self) -> u64 {
        self.all - self.free
    }
}

/// How far the peer may send on one stream. Positions count bytes from the start of the stream.
#[derive(Debug)]
pub struct Window {
    /// Reserved memory, bytes: the most that can be unread.
    size: u64,
    /// The position up to which the peer may send.
    granted: u64,
    received: u64,
    consumed: u64,
    /// Whether everything granted has arrived, so that the sender had to wait.
    ran_dry: bool,
    /// Whether a CREDIT is queued, which will contain the newest position.
    told: bool,
}

impl Window {
    /// A window of `size` bytes (at least [`EARLY`]), of which the peer knows the position `granted`.
    pub const fn new(size: u64, granted: u64) -> Self {
        Self { size, granted, received: 0, consumed: 0, ran_dry: false, told: false }
    }

    /// The part of the window that is shared memory.
    pub const fn shared(&self) -> u64 {
        self.size - EARLY
    }

    /// The position up to which the peer may send, as the next CREDIT will say.
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
        self.ran_dry |= up_to == self.granted;
        true
    }

    /// The stream is accepted: grants the whole window.
    pub fn open(&mut self) {
        self.granted = self.granted.max(self.consumed + self.size);
        self.ran_dry = false;
    }

    /// Records bytes that were read. Returns true if a CREDIT must be queued.
    ///
    /// A CREDIT is due when half the window is free. If the sender had to wait although the reader read everything
    /// that arrived, the window limits the stream and is doubled.
    pub fn consume(&mut self, bytes: u64, largest: u64, budget: &mut Budget) -> bool {
        self.consumed += bytes;
        let unread = self.received - self.consumed;
        let slack = self.consumed + self.size - self.granted;
        if slack < self.size / 2 {
            return false;
        }
        if self.ran_dry && unread <= self.size / 8 {
            let more = self.size.min(largest.saturating_sub(self.size));
            if budget.grow(more) {
                self.size += more;
            }
        }
        self.ran_dry = false;
        self.granted = self.consumed + self.size;
        !std::mem::replace(&mut self.told, true)
    }

    /// Returns the position for the CREDIT that is sent now.
    pub const fn tell(&mut self) -> u64 {
        self.told = false;
        self.granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 4 * EARLY;

    fn budget(shared: u64) -> Budget {
        Budget::new(&Limits { shared, ..Limits::default() })
    }

    fn window(budget: &mut Budget) -> Window {
        assert_eq!(budget.first(SIZE), SIZE);
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
            let mut budget = budget(64 << 20);
            let mut window = window(&mut budget);
            assert!(window.receive(received));
            assert!(window.consume(consumed, 1 << 30, &mut budget), "half of it is free");
            assert_eq!(window.tell(), consumed + times * SIZE, "{received} {consumed}");
            assert_eq!(window.shared(), times * SIZE - EARLY);
            assert_eq!(budget.taken(), window.shared());
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
            let mut budget = budget(shared);
            let mut window = window(&mut budget);
            assert!(window.receive(SIZE));
            window.consume(SIZE, largest, &mut budget);
            assert_eq!(window.shared() + EARLY, size_after, "{largest} {shared}");
        }
    }

    #[test]
    fn more_than_was_granted_is_refused() {
        for (granted, pieces, last_fits) in
            [(10, vec![10], true), (10, vec![11], false), (10, vec![4, 6, 1], false)]
        {
            let mut window = Window::new(EARLY, granted);
            let fits: Vec<_> = pieces.iter().map(|n| window.receive(*n)).collect();
            assert_eq!(fits.last(), Some(&last_fits), "{granted} {pieces:?}");
        }
    }

    #[test]
    fn however_many_streams_there_are_each_has_its_least_and_all_stay_within_the_memory() {
        let mut budget = budget(1 << 20);
        let sizes: Vec<_> = (0..1000).map(|_| budget.first(256 << 10)).collect();
        assert_eq!(sizes[0], EARLY + (1 << 17), "an eighth");
        assert!(sizes.iter().all(|size| *size >= EARLY));
        let shared: u64 = sizes.iter().map(|size| size - EARLY).sum();
        assert_eq!(shared, budget.taken());
        assert!(shared <= 1 << 20);
    }

    #[test]
    fn a_reader_is_told_of_once_until_the_credit_has_left() {
        let mut budget = budget(64 << 20);
        let mut window = window(&mut budget);
        assert!(window.receive(SIZE));
        assert!(!window.consume(SIZE / 2 - 1, SIZE, &mut budget), "not worth a message yet");
        assert!(window.consume(1, SIZE, &mut budget));
        assert!(!window.consume(SIZE / 2, SIZE, &mut budget), "the one that waits tells it all");
        assert_eq!(window.tell(), 2 * SIZE);
        assert!(window.receive(SIZE));
        assert!(window.consume(SIZE, SIZE, &mut budget));
    }
}
