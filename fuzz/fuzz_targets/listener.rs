//! A listener answers each packet with one that is not much larger, or not at all, and stays as it is.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ropewalk_base::{Seed, Time};
use ropewalk_engine::sctp::wire::{Checksum, decode};
use ropewalk_engine::sctp::{Answer, Config, Listener, Packet, PathConfig, Preset};

fuzz_target!(|input: &[u8]| {
    let mut packet = Packet::default();
    if decode(&Bytes::copy_from_slice(input), Checksum::None, &mut packet).is_err() {
        return;
    }
    let config = Config::preset(Preset::Rfc9260, vec![PathConfig::default(); 2], 1 << 16);
    let mut listener = Listener::new(config, Seed::root(1));
    match listener.handle(Time::ZERO, b"somewhere", &mut packet) {
        Answer::Nothing => {}
        // With the header of IPv4 below both.
        Answer::Reply(answer) => assert!(answer.wire_len() + 20 <= 3 * (input.len() as u32 + 20)),
        Answer::Accept(_) => panic!("a forged cookie"),
    }
});
