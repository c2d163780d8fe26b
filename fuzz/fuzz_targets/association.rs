//! An association that is fed whatever a peer with the right tag may send, between honest traffic.
//! It may end; it may not panic, nor grow, nor talk for ever.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ropewalk_base::{Duration, PathId, Seed, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::scheduler::{Scheduler, SchedulerOptions};
use ropewalk_engine::sctp::wire::{Checksum, decode};
use ropewalk_engine::sctp::{Association, Config, Packet, PathConfig, Preset};
use ropewalk_fuzz::Input;

const BUFFER: u64 = 1 << 16;
/// Most packets in answer to one input: a window of small chunks, and something beside it.
const ANSWERS: usize = 4000;

/// Schedulers of each kind: by delays, by position, by copies.
const SCHEDULERS: [&str; 4] = ["lay", "round-robin", "daps", "redundant"];
const PRESETS: [Preset; 3] = [Preset::Rfc9260, Preset::Live, Preset::Paper2013];

fn end(name: &str, kind: u8, opens: bool) -> Association {
    let preset = PRESETS[usize::from(kind) % PRESETS.len()];
    let mut config = Config::preset(preset, vec![PathConfig::default(); 2], BUFFER);
    config.streams = 1 + u16::from(kind >> 6);
    config.interleaving = kind >> 3 & 1 == 1;
    config.nr_sack = kind >> 2 & 1 == 1;
    let scheduler = SCHEDULERS[usize::from(kind >> 4) % SCHEDULERS.len()];
    let scheduler = Scheduler::from_name(scheduler, &SchedulerOptions::default());
    let scheduler = scheduler.expect("a built-in scheduler");
    let seed = Seed::root(1).child(name);
    if opens {
        Association::connect(config, scheduler, seed, Time::ZERO)
    } else {
        Association::listen(config, scheduler, seed)
    }
}

fn drain(end: &mut Association, now: Time) -> Vec<(PathId, Packet)> {
    let mut sent = Vec::new();
    while let Some(transmit) = end.poll_transmit(now) {
        sent.push((transmit.path, transmit.packet));
        assert!(sent.len() < ANSWERS, "it talks for ever");
    }
    while end.poll_event().is_some() {}
    while end.read(now).is_some() {}
    sent
}

/// Both ends up, with all that they had to say said.
fn pair(kind: u8, now: Time) -> [Association; 2] {
    let mut ends = [end("left", kind, true), end("right", kind, false)];
    for round in 0..20 {
        let from = round % 2;
        for (path, packet) in drain(&mut ends[from], now) {
            ends[1 - from].handle_datagram(now, path, packet);
        }
    }
    ends
}

fuzz_target!(|input: &[u8]| {
    let mut input = Input(input);
    let mut now = Time::from_millis(1);
    let [mut left, mut right] = pair(input.byte(), now);
    let (tag, peer) = right.tags();
    // One byte tells what happens, two how long the packet is, and then it follows.
    while !input.is_over() {
        let what = input.byte();
        let bytes = input.block();
        now += Duration::from_millis(u64::from(what) * u64::from(what));
        if right.next_deadline().is_some_and(|at| at <= now) {
            right.handle_timeout(now);
        }
        if what % 8 == 0 {
            let _ = left.send(StreamId(0), Payload::Length(3000), false);
            let _ = right.send(StreamId(0), Payload::Length(5000), what % 16 == 0);
        }
        let mut packet = Packet::default();
        if decode(&Bytes::copy_from_slice(bytes), Checksum::None, &mut packet).is_ok() {
            // A fuzzer does not guess tags either.
            packet.tag = [tag, tag, peer, 0][what as usize % 4];
            right.handle_datagram(now, PathId(what & 1), packet);
        }
        for (path, packet) in drain(&mut right, now) {
            left.handle_datagram(now, path, packet);
        }
        for (path, packet) in drain(&mut left, now) {
            right.handle_datagram(now, path, packet);
        }
        let (held, free) = right.receive_occupancy();
        assert!(held + free <= BUFFER, "{held} B held, {free} B free");
    }
});
