//! Any bytes are a packet or an error, and what was understood can be said again, in the standard and in the compact form.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ropewalk_base::Serial32;
use ropewalk_engine::sctp::wire::{Checksum, compact, decode, encode};
use ropewalk_engine::sctp::{DelayEcho, Packet, PacketForm};

/// The bit of forms that end with a datagram.
const DATAGRAM: u8 = 8;

fuzz_target!(|input: &[u8]| {
    standard(input);
    if let Some((form, rest)) = input.split_first() {
        compact_form(form & 31 | 1, rest);
    }
});

fn standard(input: &[u8]) {
    // A fuzzer does not guess checksums.
    let checksum = Checksum::None;
    let mut packet = Packet::default();
    let Ok(ports) = decode(input, checksum, &mut packet) else { return };
    let mut again = Vec::new();
    encode(&packet, ports, checksum, &mut again);
    assert_eq!(again.len(), packet.wire_len() as usize);
    let mut other = Packet::default();
    assert_eq!(decode(&again, checksum, &mut other), Ok(ports));
    assert_eq!(packet, other);
}

fn compact_form(form: u8, input: &[u8]) {
    let context = compact::Context { tag: 7, near: Serial32(u32::MAX - 3) };
    let read = |form: u8, bytes: &[u8]| {
        let mut packet = Packet::default();
        compact::decode(form, bytes, context, &mut packet).ok().map(|()| packet)
    };
    let Some(packet) = read(form, input) else { return };
    let sent = compact::form_of(&packet);
    // A peer may send chunks in this form that we send in the other one, a datagram as a chunk with its whole TSN, and an
    // echo as a chunk with nanoseconds.
    let is_exact =
        |echo: DelayEcho| echo.received.is_multiple_of(1000) && (echo.received / 1000) >> 48 == 0;
    if sent == compact::STANDARD
        || sent & DATAGRAM != form & DATAGRAM
        || !packet.echo.is_none_or(is_exact)
    {
        return;
    }
    let form = sent;
    let mut again = Vec::new();
    compact::encode(&packet, &mut again);
    assert_eq!(again.len(), packet.wire_len_in(PacketForm::Compact) as usize);
    // The TSN of a datagram in front of another one is sent in full, and the order of chunks stays.
    assert_eq!(read(form, &again), Some(packet));
}
