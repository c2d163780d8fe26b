//! A peer of byte streams that opens, resets, sends single bytes and contradicts itself, while the application
//! accepts streams and reads little.

use bytes::Bytes;
use ropewalk_apps::mux::{Event, Limits, Message, Mux, Refusal, Role, StreamKey};

use crate::{Noise, allocated, allocated_in_all, turn};

const NUMBERS: u16 = 512;
const LIMITS: Limits = Limits {
    first_window: 64 << 10,
    largest_window: 1 << 20,
    shared: 1 << 20,
    peer_streams: 16,
    send_queue: 16 << 10,
};
/// Memory that is not charged to a peer: the tables of the machine itself.
const TABLES: u64 = 64 << 10;

/// Cost of one run.
struct Cost {
    /// Maximum number of bytes allocated at a time.
    bytes: u64,
    /// Maximum number of events caused by one message.
    events: usize,
    /// Bytes allocated per byte of messages and bookkeeping.
    copies: f64,
}

/// The next message of a hostile peer.
fn message(noise: &mut Noise, greedy: bool) -> Message {
    let credit = [0, 1, 1 << 20, u64::MAX][noise.below(4) as usize];
    let size = [1, 1, 100, 1400, 16 << 10][noise.below(5) as usize];
    match noise.below(if greedy { 4 } else { 9 }) {
        0 => Message::Open { credit, target: vec![b'x'; noise.below(512) as usize].into() },
        1..=3 => Message::Data(vec![7; size].into()),
        4 => Message::Credit(credit),
        5 => Message::Reset,
        6 => Message::Fin,
        7 => Message::Last(vec![7; size].into()),
        _ => Message::Refused(Refusal::new(noise.below(256) as u8, "x".repeat(200))),
    }
}

struct World {
    mux: Mux,
    keys: Vec<StreamKey>,
}

impl World {
    fn new(limits: Limits) -> Self {
        Self { mux: Mux::new(Role::Connector, limits, NUMBERS), keys: Vec::new() }
    }

    /// Drains the events. Returns their number.
    fn drain(&mut self) -> usize {
        let mut events = 0;
        while let Some(event) = self.mux.poll_event() {
            events += 1;
            if let Event::Offered(key) = event {
                self.keys.push(key);
            }
        }
        events
    }

    /// The application accepts streams, writes, reads a little and releases handles, like a slow program.
    fn use_streams(&mut self, noise: &mut Noise) {
        let Some(count) = (self.keys.len() as u64).checked_sub(1) else { return };
        let at = noise.below(count + 1) as usize;
        let key = self.keys[at];
        match noise.below(8) {
            0..=2 => _ = self.mux.accept(key),
            3 => drop(self.mux.write(key, &[1; 3000])),
            4 => drop(self.mux.read(key, &mut [0; 50])),
            5 => {
                self.mux.release(key);
                self.keys.swap_remove(at);
            }
            _ => {}
        }
    }
}

fn run(limits: Limits, seed: u64, greedy: bool) -> Cost {
    let mut noise = Noise(seed | 1);
    let (before, before_in_all) = (allocated(), allocated_in_all());
    let mut world = World::new(limits);
    let mut cost = Cost { bytes: 0, events: 0, copies: 0.0 };
    let mut charged = TABLES;
    for _ in 0..40_000 {
        let id = noise.below(u64::from(NUMBERS) + 1) as u16;
        let (ppid, bytes) = message(&mut noise, greedy).encode();
        charged += 2048 + 4 * bytes.len() as u64;
        // A peer that violates the protocol is disconnected. Here it continues, which is worse.
        let _ = world.mux.handle(id, ppid, bytes);
        cost.events = cost.events.max(world.drain());
        if greedy {
            let World { mux, keys } = &mut world;
            keys.drain(..).for_each(|key| assert!(mux.accept(key) || !mux.is_empty()));
        } else {
            world.use_streams(&mut noise);
        }
        // The peer accepts messages only occasionally.
        if noise.below(3) == 0 {
            drop(world.mux.poll_transmit(1400));
        }
        world.drain();
        cost.bytes = cost.bytes.max(allocated().saturating_sub(before));
    }
    cost.copies = (allocated_in_all() - before_in_all) as f64 / charged as f64;
    cost
}

/// The memory that the limits allow.
fn bound(limits: &Limits) -> u64 {
    limits.memory(NUMBERS) + limits.peer_streams as u64 * 2 * limits.send_queue as u64 + TABLES
}

#[test]
fn a_hostile_peer_of_byte_streams_costs_no_more_than_the_limits_say() {
    let _turn = turn();
    for seed in 1..=6 {
        for greedy in [false, true] {
            let cost = run(LIMITS, seed * 0x9e37_79b9, greedy);
            assert!(cost.bytes <= bound(&LIMITS), "seed {seed}: {} bytes", cost.bytes);
            assert!(cost.events <= 4, "seed {seed}: {} events of one message", cost.events);
            assert!(cost.copies <= 1.0, "seed {seed}: copied {} times", cost.copies);
        }
    }
}

#[test]
fn a_limit_that_is_missing_is_noticed() {
    let _turn = turn();
    let all_streams = Limits { peer_streams: usize::MAX, ..LIMITS };
    let all_memory = Limits { shared: 1 << 40, first_window: 1 << 30, ..LIMITS };
    for (defect, limits) in [("streams", all_streams), ("windows", all_memory)] {
        let cost = run(limits, 7, true);
        assert!(cost.bytes > bound(&LIMITS), "{defect}: only {} bytes", cost.bytes);
    }
}

#[test]
fn an_offer_that_nobody_takes_costs_one_entry_however_often_it_is_repeated() {
    let _turn = turn();
    let before = allocated();
    let mut world = World::new(LIMITS);
    for _ in 0..100_000 {
        for message in [Message::Open { credit: 0, target: Bytes::new() }, Message::Reset] {
            let (ppid, bytes) = message.encode();
            let _ = world.mux.handle(1, ppid, bytes);
        }
        while world.mux.poll_transmit(1400).is_some() {}
        world.drain();
    }
    drop(std::mem::take(&mut world.keys));
    let grown = allocated().saturating_sub(before);
    assert!(grown <= bound(&LIMITS), "{grown} bytes");
    assert!(world.mux.len() <= LIMITS.peer_streams + usize::from(NUMBERS));
}
