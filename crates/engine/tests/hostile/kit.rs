//! Raw chunks, and ends that receive them.

use bytes::Bytes;
use ropewalk_base::{PathId, Seed, Serial32, Time};
use ropewalk_engine::sctp::association::State;
use ropewalk_engine::sctp::wire::{Checksum, DecodeError, decode};
use ropewalk_engine::sctp::{
    Answer, Association, Chunk, Config, CookieContent, CookieKey, Listener, Packet, Preset,
};

use crate::driver::{Fate, Pair, in_turn, name, preset_config};

/// Address of the hostile peer.
pub const HOME: &[u8] = b"192.0.2.1:9899";

/// Chunk types (RFC 9260, 3.2), as on the wire. Independent of the codec: these tests compare the codec
/// with the RFC, so a wrong number in the codec must not be repeated here.
pub mod kind {
    pub const DATA: u8 = 0;
    pub const INIT: u8 = 1;
    pub const INIT_ACK: u8 = 2;
    pub const SACK: u8 = 3;
    pub const HEARTBEAT: u8 = 4;
    pub const HEARTBEAT_ACK: u8 = 5;
    pub const ABORT: u8 = 6;
    pub const SHUTDOWN: u8 = 7;
    pub const SHUTDOWN_ACK: u8 = 8;
    pub const ERROR: u8 = 9;
    pub const COOKIE_ECHO: u8 = 10;
    pub const COOKIE_ACK: u8 = 11;
    pub const SHUTDOWN_COMPLETE: u8 = 14;
    pub const AUTH: u8 = 0x0f;
    pub const PAD: u8 = 0x84;
}

/// U, B, E of DATA, and B with E.
pub const UNORDERED: u8 = 4;
pub const BEGIN: u8 = 2;
pub const END: u8 = 1;
pub const WHOLE: u8 = 3;

/// A chunk with its padding.
pub fn chunk(kind: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + body.len()).expect("16 bits of length");
    let [a, b] = length.to_be_bytes();
    padded([&[kind, flags, a, b], body].concat())
}

/// A parameter or an error cause with its padding.
pub fn parameter(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).expect("16 bits of length");
    padded([&kind.to_be_bytes(), &length.to_be_bytes(), value].concat())
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

pub fn heartbeat(info: &[u8]) -> Vec<u8> {
    chunk(kind::HEARTBEAT, 0, &parameter(1, info))
}

pub fn data(tsn: Serial32, stream: u16, ssn: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut body = tsn.0.to_be_bytes().to_vec();
    body.extend(stream.to_be_bytes());
    body.extend(ssn.to_be_bytes());
    body.extend([0; 4]);
    body.extend(payload);
    chunk(kind::DATA, flags, &body)
}

/// A SACK; the top bits of `flags` count packets.
pub fn sack(cumulative: Serial32, window: u32, gaps: &[(u16, u16)], flags: u8) -> Vec<u8> {
    let mut body = cumulative.0.to_be_bytes().to_vec();
    body.extend(window.to_be_bytes());
    body.extend((gaps.len() as u16).to_be_bytes());
    body.extend([0; 2]);
    for (start, end) in gaps {
        body.extend(start.to_be_bytes());
        body.extend(end.to_be_bytes());
    }
    chunk(kind::SACK, flags, &body)
}

/// The fixed part of INIT and INIT ACK.
pub fn fixed(tag: u32, window: u32, outbound: u16, inbound: u16) -> Vec<u8> {
    let mut body = tag.to_be_bytes().to_vec();
    body.extend(window.to_be_bytes());
    body.extend(outbound.to_be_bytes());
    body.extend(inbound.to_be_bytes());
    body.extend(77u32.to_be_bytes());
    body
}

/// A valid INIT with these parameters.
pub fn init(tag: u32, parameters: &[u8]) -> Vec<u8> {
    chunk(kind::INIT, 0, &[&fixed(tag, 1 << 16, 5, 5), parameters].concat())
}

/// A packet of these chunks with valid ports and a valid checksum.
pub fn datagram<C: AsRef<[u8]>>(tag: u32, chunks: &[C]) -> Bytes {
    let mut out = vec![0x13, 0x89, 0x26, 0xab];
    out.extend(tag.to_be_bytes());
    out.extend([0; 4]);
    chunks.iter().for_each(|one| out.extend(one.as_ref()));
    with_sum(out)
}

/// The same bytes with a valid checksum.
pub fn with_sum(mut bytes: Vec<u8>) -> Bytes {
    bytes[8..12].fill(0);
    let sum = crc32c::crc32c(&bytes);
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
    bytes.into()
}

pub fn read(bytes: &Bytes) -> Result<Packet, DecodeError> {
    let mut packet = Packet::default();
    decode(bytes, Checksum::Crc32c, &mut packet).map(|_| packet)
}

/// The names of all chunks in these packets.
pub fn names(packets: &[Packet]) -> Vec<&'static str> {
    packets.iter().flat_map(|packet| packet.chunks.iter().map(name)).collect()
}

/// The default configuration of sockets, towards a peer that announces nothing.
pub fn live(paths: usize, buffer: u64) -> Config {
    preset_config(Preset::Live, paths, buffer)
}

/// A pair that is up and whose links are cut: only packets of the test arrive.
pub struct Victim {
    pub pair: Pair,
}

impl Victim {
    pub fn up(paths: usize) -> Self {
        Self::of(Pair::up(&live(paths, 1 << 18), &[10, 30][..paths]))
    }

    pub fn of(mut pair: Pair) -> Self {
        pair.script(|_| Fate::Drop);
        pair.log.clear();
        Self { pair }
    }

    /// The tag of packets to `end`, and the tag of its peer.
    pub fn tags(&self, end: usize) -> (u32, u32) {
        self.pair.ends[end].tags()
    }

    /// The first TSN that `end` sends.
    pub fn first_tsn(&self, end: usize) -> Serial32 {
        self.pair.ends[1 - end].peer_initial_tsn().expect("it is up")
    }

    /// Handles a datagram on a path. Returns the immediate answers.
    pub fn take(&mut self, end: usize, path: usize, bytes: &Bytes) -> Vec<Packet> {
        let before = self.pair.log.len();
        if let Ok(packet) = read(bytes) {
            self.pair.inject(end, path, packet);
        }
        self.pair.log[before..].iter().map(|sent| sent.packet.clone()).collect()
    }

    /// Passes a packet of these chunks with the right tag to an end.
    pub fn hit<C: AsRef<[u8]>>(&mut self, end: usize, chunks: &[C]) -> Vec<Packet> {
        let bytes = datagram(self.tags(end).0, chunks);
        self.take(end, 0, &bytes)
    }

    pub fn state(&self, end: usize) -> &State {
        self.pair.ends[end].state()
    }

    /// The complete state of an end.
    pub fn all(&self, end: usize) -> String {
        format!("{:?}", self.pair.ends[end])
    }
}

pub const LISTENER_SEED: u64 = 11;

pub fn listener() -> Listener {
    Listener::new(live(1, 1 << 16), Seed::root(LISTENER_SEED))
}

/// The reply of a listener to a datagram from [`HOME`], `None` if it accepts the peer or stays silent.
pub fn reply(listener: &mut Listener, now: Time, bytes: &Bytes) -> Option<Packet> {
    let mut packet = read(bytes).ok()?;
    match listener.handle(now, HOME, &mut packet) {
        Answer::Reply(packet) => Some(packet),
        Answer::Nothing | Answer::Accept(_) => None,
    }
}

/// The first key generated from a seed, as ends and listeners do.
fn key(seed: Seed) -> CookieKey {
    let mut rng = seed.rng();
    let mut key = [0; 32];
    for piece in key.as_chunks_mut::<8>().0 {
        *piece = rng.next_u64().to_le_bytes();
    }
    CookieKey::new(key)
}

/// A cookie sealed like that of the association created with this seed.
pub fn own_cookie(seed: Seed, content: &CookieContent) -> Bytes {
    key(seed.child("association")).seal(content, &[])
}

/// The tie-tags of the association between these tags, computed like those of the end created with this
/// seed.
pub fn own_tie_tags(seed: Seed, (local, peer): (u32, u32)) -> (u32, u32) {
    key(seed.child("association")).tie_tags(local, peer)
}

/// The seed of [`client`].
pub const CLIENT_SEED: Seed = Seed::root(12);

/// A client on two paths whose INIT has been sent, and its tag.
pub fn client() -> (Association, u32) {
    let mut end = Association::connect(live(2, 1 << 16), in_turn(), CLIENT_SEED, Time::ZERO);
    let init = end.poll_transmit(Time::ZERO).expect("an INIT").packet;
    let Chunk::Init(init) = &init.chunks[0] else { panic!("{init:?}") };
    let tag = init.tag;
    (end, tag)
}

/// Passes a datagram to an end. Returns the answers.
pub fn send_to(end: &mut Association, now: Time, path: u8, bytes: &Bytes) -> Vec<Packet> {
    if let Ok(packet) = read(bytes) {
        end.handle_datagram(now, PathId(path), packet);
    }
    std::iter::from_fn(|| end.poll_transmit(now)).map(|transmit| transmit.packet).collect()
}

/// A packet in its wire format.
pub fn bytes_of(packet: &Packet) -> Bytes {
    let ports = ropewalk_engine::sctp::wire::Ports { source: 5001, destination: 9899 };
    let mut out = Vec::new();
    ropewalk_engine::sctp::wire::encode(packet, ports, Checksum::Crc32c, &mut out);
    out.into()
}
