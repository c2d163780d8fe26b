//! The byte streams of a proxy with a peer that says whatever it likes, while programs read, write, open and go.
//! What it can make this end keep is bounded, and nothing is left when all have gone.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ropewalk_apps::mux::{Event, Limits, Mux, Read, Refusal, Role, StreamKey};
use ropewalk_fuzz::Input;

const STREAMS: u16 = 8;
/// What each stream may have unread of its own.
const EARLY: u64 = 16 << 10;
/// Kinds of messages begin behind this payload protocol identifier.
const BASE: u32 = 0x5257_4d00;
const LIMITS: Limits = Limits {
    first_window: 40 << 10,
    largest_window: 100 << 10,
    shared: 200 << 10,
    peer_streams: 2 * STREAMS as usize,
    send_queue: 1000,
};

struct World {
    mux: Mux,
    known: Vec<StreamKey>,
    /// What the peer has sent and nobody has read.
    came: u64,
}

impl World {
    /// Whether the peer keeps to the rules so far.
    fn peer_says(&mut self, input: &mut Input<'_>) -> bool {
        let (kind, id) = (input.byte(), input.byte());
        let bytes = match kind >> 4 {
            // A number, small or large.
            0..4 => (u64::from(input.number()) << (kind >> 5 << 4)).to_be_bytes().to_vec(),
            // Much of something.
            4 => vec![7; usize::from(input.number())],
            5 => vec![0],
            _ => {
                let length = input.byte();
                input.bytes(length.into()).to_vec()
            }
        };
        let ppid = if kind & 15 == 15 { u32::from(kind) } else { BASE + u32::from(kind & 15) };
        self.came += bytes.len() as u64;
        self.mux.handle((id % (STREAMS + 1) as u8).into(), ppid, Bytes::from(bytes)).is_ok()
    }

    fn user_does(&mut self, what: u8, input: &mut Input<'_>) {
        if what.is_multiple_of(8) {
            self.known.extend(self.mux.open(Bytes::from_static(b"somewhere")));
            return;
        }
        let Some(count) = self.known.len().checked_sub(1) else { return };
        let at = count - usize::from(input.byte()) % (count + 1);
        let key = self.known[at];
        match what % 8 {
            1 => drop(self.mux.accept(key)),
            2 => {
                self.mux.refuse(key, Refusal::new(3, "no"));
                self.known.swap_remove(at);
            }
            3 => drop(self.mux.write(key, &vec![9; usize::from(input.byte()) * 8])),
            4 => drop(self.mux.finish(key)),
            5 => {
                let mut room = vec![0; usize::from(input.byte()) * 256];
                if let Ok(Read::Bytes(read)) = self.mux.read(key, &mut room) {
                    self.came = self.came.saturating_sub(read as u64);
                }
            }
            6 => {
                self.mux.release(key);
                self.known.swap_remove(at);
            }
            _ => drop(self.mux.is_open(key)),
        }
    }

    fn drain(&mut self, most: usize) {
        while let Some(event) = self.mux.poll_event() {
            if let Event::Offered(key) = event {
                self.known.push(key);
            }
        }
        for _ in 0..most {
            let Some((id, message)) = self.mux.poll_transmit(100) else { return };
            assert!(id < STREAMS);
            assert!(!message.encode().1.is_empty(), "SCTP sends no empty message");
        }
    }

    fn is_bounded(&self) {
        // Programs may hold on to what has ended; the peer's doing are the rest.
        assert!(self.mux.len() <= self.known.len() + 3 * usize::from(STREAMS));
        assert!(self.mux.reserved() <= LIMITS.shared);
    }

    /// All that can be read of what came.
    fn unread(&mut self) -> u64 {
        let mut room = vec![0; 4096];
        let mut unread = 0;
        for key in &self.known {
            while let Ok(Read::Bytes(read)) = self.mux.read(*key, &mut room) {
                unread += read as u64;
            }
        }
        unread
    }
}

fuzz_target!(|input: &[u8]| {
    let mut input = Input(input);
    let role = if input.byte() & 1 == 0 { Role::Acceptor } else { Role::Connector };
    let mut world = World { mux: Mux::new(role, LIMITS, STREAMS), known: Vec::new(), came: 0 };
    let mut obeys = true;
    while obeys && !input.is_over() {
        match input.byte() {
            what @ 0..96 => world.user_does(what, &mut input),
            what @ 96..128 => world.drain(usize::from(what - 96)),
            _ => obeys = world.peer_says(&mut input),
        }
        world.is_bounded();
    }
    world.drain(0);
    let unread = world.unread();
    assert!(unread <= LIMITS.shared + 2 * u64::from(STREAMS) * EARLY, "{unread} B unread");
    world.mux.end();
    world.unread();
    for key in std::mem::take(&mut world.known) {
        world.mux.release(key);
    }
    assert_eq!((world.mux.len(), world.mux.reserved()), (0, 0));
});
