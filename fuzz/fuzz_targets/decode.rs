//! Any bytes are a packet or an error, and what was understood can be said again.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ropewalk_engine::sctp::Packet;
use ropewalk_engine::sctp::wire::{Checksum, decode, encode};

fuzz_target!(|input: &[u8]| {
    // A fuzzer does not guess checksums.
    let checksum = Checksum::None;
    let mut packet = Packet::default();
    let Ok(ports) = decode(&Bytes::copy_from_slice(input), checksum, &mut packet) else { return };
    let mut again = Vec::new();
    encode(&packet, ports, checksum, &mut again);
    assert_eq!(again.len(), packet.wire_len() as usize);
    let mut other = Packet::default();
    assert_eq!(decode(&again.into(), checksum, &mut other), Ok(ports));
    assert_eq!(packet, other);
});
