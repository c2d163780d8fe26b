//! Credit: how far the peer may send, and what it costs us.

use super::limits::{EARLY, Limits};

/// Memory that the windows of all streams share, beyond the [`EARLY`] that each has of its own, bytes.
#[derive(Debug)]
pub struct Budget {
    free: u64,
    all: u64,
}

impl Budget {
    pub const fn new(limits: &Limits) -> Self {
        Self { free: limits.shared, all: limits.shared }
    }

    /// A window for a fresh stream: as wished, or less while memory is short.
    pub fn first(&mut self, wished: u64) -> u64 {
        // An eighth of what is left, so that a rush of streams shares it.
        let more = wished.saturating_sub(EARLY).min(self.free / 8);
        self.free -= more;
        EARLY + more
    }

    /// Memory for a window that grows. False: there is too little for the others then.
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

    /// What is reserved now.
    pub const fn taken(&self) -> u64 {
        self.all - self.free
    }
}

/// How far the peer may send on one stream. Positions count bytes from the beginning of the stream.
#[derive(Debug)]
pub struct Window {
    /// Memory reserved, bytes: more is never unread.
    size: u64,
    /// The position up to which the peer may send.
    granted: u64,
    received: u64,
    consumed: u64,
    /// All that was granted has come: the sender has had to wait.
    ran_dry: bool,
    /// A CREDIT is on its way out, and will tell the newest position.
    told: bool,
}

impl Window {
    /// A window of `size` bytes (at least [`EARLY`]), of which the peer knows `granted`.
    pub const fn new(size: u64, granted: u64) -> Self {
        Self { size, granted, received: 0, consumed: 0, ran_dry: false, told: false }
    }

    /// What of it is of the shared memory.
    pub const fn shared(&self) -> u64 {
        self.size - EARLY
    }

    /// The position up to which the peer may send, as told next.
    pub const fn granted(&self) -> u64 {
        self.granted
    }

    /// Bytes came. False: more than was granted.
    pub const fn receive(&mut self, bytes: u64) -> bool {
        let up_to = self.received.saturating_add(bytes);
        if up_to > self.granted {
            return false;
        }
        self.received = up_to;
        self.ran_dry |= up_to == self.granted;
        true
    }

    /// The stream is accepted: the whole window may be used.
    pub fn open(&mut self) {
        self.granted = self.granted.max(self.consumed + self.size);
        self.ran_dry = false;
    }

    /// Bytes were read. True: a CREDIT is due that was not yet.
    ///
    /// The peer hears of it when half a window is free. If it has had to wait although the reader took
    /// all that came, the window is what limits the stream, and is doubled.
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

    /// The CREDIT leaves.
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
            // All came and all was read: the window was in the way.
            (SIZE, SIZE, 2),
            (SIZE, SIZE - SIZE / 8, 2),
            // The reader is what is slow.
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
