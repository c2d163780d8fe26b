//! Packets for other tools: `tests/wire` checks them with scapy and tshark.
//!
//! `wire emit` prints packets of this engine, one per line: a description, and its bytes in hex. `wire
//! read` reads packets in hex from standard input. For each it prints the bytes to which the engine
//! encodes the decoded packet, and its description; or `error` and the reason.

mod samples;

use std::io::{BufRead, Write, stdin, stdout};

use ropewalk_engine::sctp::Packet;
use ropewalk_engine::sctp::wire::{Checksum, Ports, decode, encode};

const PORTS: Ports = Ports { source: 5001, destination: 9899 };

fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let done = match mode.as_str() {
        "emit" => emit(),
        "read" => read(),
        other => {
            eprintln!("no mode is called `{other}`: `emit` or `read`");
            std::process::exit(2);
        }
    };
    if let Err(error) = done {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn emit() -> std::io::Result<()> {
    let mut out = stdout().lock();
    for (what, packet) in samples::all() {
        writeln!(out, "{what}\t{}", hex(&packet, PORTS))?;
    }
    Ok(())
}

fn read() -> std::io::Result<()> {
    let mut out = stdout().lock();
    for line in stdin().lock().lines() {
        let line = line?;
        let Some(bytes) = unhex(line.trim()) else {
            writeln!(out, "error\tnot hex: {line}")?;
            continue;
        };
        let mut packet = Packet::default();
        match decode(&bytes, Checksum::Crc32c, &mut packet) {
            Ok(ports) => writeln!(out, "{}\t{packet:?}", hex(&packet, ports))?,
            Err(error) => writeln!(out, "error\t{error}")?,
        }
    }
    Ok(())
}

fn hex(packet: &Packet, ports: Ports) -> String {
    let mut bytes = Vec::new();
    encode(packet, ports, Checksum::Crc32c, &mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
