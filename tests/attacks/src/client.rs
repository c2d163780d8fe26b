//! A client that seals arbitrary packets: the library performs the handshake, and everything after
//! it is hand-written.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ropewalk_base::{Serial16, Serial32, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::wire::{Checksum, Ports, compact, decode, encode};
use ropewalk_engine::sctp::{
    Chunk, Data, DataFlags, Extensions, GapList, Init, InitOptions, Packet, Sack,
};
use ropewalk_runtime::clock::Clock;
use ropewalk_runtime::endpoint::PORT;
use ropewalk_runtime::seal::{Finish, Initiator, PublicKey, SecretKey, Session, Timestamp};

use crate::figure::Failure;

/// SCTP ports inside the sealed packets.
const PORTS: Ports = Ports { source: PORT, destination: PORT };
/// Payload of the client's handshake message: version and number of paths.
const HELLO: [u8; 2] = [1, 1];
/// Timeout of one attempt of a handshake, and number of attempts.
const ANSWER: Duration = Duration::from_millis(500);
const TRIES: usize = 20;
/// Headers of IPv4 and UDP, bytes, so that sizes are those on the link.
pub const BELOW: u64 = 28;
const OWN_TAG: u32 = 0x5eed_0001;
const FIRST_TSN: u32 = 1000;
const STREAMS: u16 = 1024;
const WINDOW: u32 = 16 << 20;

/// An association with an honest server.
pub struct Client {
    pub socket: UdpSocket,
    session: Session,
    clock: Clock,
    server: SocketAddr,
    pub peer_tag: u32,
    /// The TSN of the next DATA chunk.
    pub tsn: u32,
    /// Streams that the server accepts.
    pub streams: u16,
    /// The server's data that has arrived.
    pub received: Downloaded,
}

/// TSNs that have arrived.
#[derive(Default)]
pub struct Downloaded {
    pub cumulative: u32,
    /// The highest TSN seen on any socket.
    pub highest: u32,
    ahead: BTreeSet<u32>,
    pub packets: u64,
}

impl Downloaded {
    fn take(&mut self, tsn: u32) {
        // No attack lasts for half of the number space, so serial numbers compare correctly.
        if tsn.wrapping_sub(self.highest) < 1 << 31 {
            self.highest = tsn;
        }
        if tsn.wrapping_sub(self.cumulative) < 1 << 31 {
            self.ahead.insert(tsn);
        }
        while self.ahead.remove(&self.cumulative.wrapping_add(1)) {
            self.cumulative = self.cumulative.wrapping_add(1);
        }
    }
}

impl Client {
    /// Opens an association from this address with this key.
    pub fn open(
        from: IpAddr,
        server: SocketAddr,
        key: PublicKey,
        secret: &SecretKey,
    ) -> Result<Self, Failure> {
        let socket = UdpSocket::bind((from, 0))?;
        let clock = Clock::start();
        let session = handshake(&socket, server, key, secret, &clock)?;
        let (peer_tag, tsn, streams) = (0, FIRST_TSN, 0);
        let received = Downloaded::default();
        let mut client = Self { socket, session, clock, server, peer_tag, tsn, streams, received };
        client.associate()?;
        Ok(client)
    }

    /// INIT, INIT ACK, COOKIE ECHO, COOKIE ACK (RFC 9260, 5.1).
    fn associate(&mut self) -> Result<(), Failure> {
        let options = InitOptions { extensions: Extensions::OURS, ..InitOptions::default() };
        let init = Init {
            tag: OWN_TAG,
            window: WINDOW,
            outbound_streams: STREAMS,
            inbound_streams: STREAMS,
            initial_tsn: Serial32(FIRST_TSN),
            options,
            ..Init::default()
        };
        let init = Chunk::Init(Box::new(init));
        let found = self.until(0, &init, |chunk| match chunk {
            Chunk::InitAck(both) => Some(both.as_ref().clone()),
            _ => None,
        });
        let (theirs, cookie) = found?;
        let cookie = cookie.ok_or("an INIT ACK without a cookie")?;
        self.peer_tag = theirs.tag;
        self.streams = theirs.inbound_streams.min(STREAMS);
        self.received.cumulative = theirs.initial_tsn.0.wrapping_sub(1);
        self.received.highest = self.received.cumulative;
        let echo = Chunk::CookieEcho(cookie);
        self.until(theirs.tag, &echo, |chunk| (*chunk == Chunk::CookieAck).then_some(()))
    }

    /// Sends a chunk repeatedly until `wanted` accepts a received packet.
    fn until<T>(
        &mut self,
        tag: u32,
        chunk: &Chunk,
        wanted: impl Fn(&Chunk) -> Option<T>,
    ) -> Result<T, Failure> {
        for _ in 0..TRIES {
            self.send(&Packet::of(tag, chunk.clone()))?;
            let until = Instant::now() + ANSWER;
            while let Some(packet) = self.receive(until)? {
                if let Some(found) = packet.chunks.iter().find_map(&wanted) {
                    return Ok(found);
                }
            }
        }
        Err("the server does not answer inside the session".into())
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    /// Sends a packet from the client's own socket on path 0.
    pub fn send(&mut self, packet: &Packet) -> Result<u64, Failure> {
        let datagram = self.sealed(0, packet)?;
        self.socket.send_to(&datagram, self.server)?;
        Ok(datagram.len() as u64 + BELOW)
    }

    /// Sends a packet on a path from another socket. Returns its size on the link, bytes.
    pub fn send_from(
        &mut self,
        socket: &UdpSocket,
        path: u8,
        packet: &Packet,
    ) -> Result<u64, Failure> {
        let datagram = self.sealed(path, packet)?;
        socket.send_to(&datagram, self.server)?;
        Ok(datagram.len() as u64 + BELOW)
    }

    fn sealed(&mut self, path: u8, packet: &Packet) -> Result<Vec<u8>, Failure> {
        let mut out = Vec::new();
        let sealed = self.session.seal(path, &mut out, |out| {
            encode(packet, PORTS, Checksum::None, out);
        });
        sealed.map_err(|error| format!("sealing: {error:?}"))?;
        Ok(out)
    }

    /// The next packet that arrives at the client's own socket before `until`.
    pub fn receive(&mut self, until: Instant) -> Result<Option<Packet>, Failure> {
        let mut bytes = vec![0; 1 << 16];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.socket.set_read_timeout(Some(left))?;
            let size = match self.socket.recv_from(&mut bytes) {
                Ok((size, _)) => size,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Ok(None);
                }
                Err(e) if e.kind() == ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(error.into()),
            };
            if let Some(packet) = self.open_datagram(&mut bytes[..size]) {
                return Ok(Some(packet));
            }
        }
    }

    /// Opens a datagram of the server, received on any socket. Its data counts as received.
    pub fn open_datagram(&mut self, datagram: &mut [u8]) -> Option<Packet> {
        let now = self.now();
        let opened = self.session.open(now, datagram).ok()?;
        let mut packet = Packet::default();
        let inside = Bytes::copy_from_slice(&datagram[opened.body]);
        if opened.form == compact::STANDARD {
            decode(&inside, Checksum::None, &mut packet).ok()?;
        } else {
            let context =
                compact::Context { tag: OWN_TAG, near: Serial32(self.received.cumulative) };
            compact::decode(opened.form, &inside, context, &mut packet).ok()?;
        }
        self.received.packets += 1;
        for chunk in &packet.chunks {
            if let Chunk::Data(data) = chunk {
                self.received.take(data.tsn.0);
            }
        }
        Some(packet)
    }

    /// Behaves correctly until `until`: answers HEARTBEATs and acknowledges every second packet.
    pub fn behave(&mut self, until: Instant) -> Result<(), Failure> {
        while let Some(packet) = self.receive(until)? {
            for chunk in &packet.chunks {
                if let Chunk::Heartbeat(info) = chunk {
                    let answer = Chunk::HeartbeatAck(info.clone());
                    self.send(&Packet::of(self.peer_tag, answer))?;
                }
            }
            if self.received.packets.is_multiple_of(2) {
                let sack = self.sack(self.received.cumulative);
                self.send(&sack)?;
            }
        }
        Ok(())
    }

    /// A SACK for everything up to `cumulative`.
    pub fn sack(&self, cumulative: u32) -> Packet {
        let sack = Sack {
            cumulative: Serial32(cumulative),
            window: WINDOW,
            gaps: GapList::default(),
            duplicates: Vec::new(),
            data_packets: 0,
            number: None,
        };
        Packet::of(self.peer_tag, Chunk::Sack(sack))
    }

    /// A DATA chunk.
    pub fn data(&self, tsn: u32, stream: u16, ssn: u16, flags: DataFlags, bytes: &[u8]) -> Data {
        Data {
            tsn: Serial32(tsn),
            stream: StreamId(stream),
            ssn: Serial16(ssn),
            ppid: 0,
            flags,
            payload: Payload::from(Bytes::copy_from_slice(bytes)),
            message_high: 0,
            first_sent: Time::ZERO,
        }
    }

    /// Sends chunks in as few packets of at most `size` bytes as possible. Returns the bytes on the link.
    pub fn send_chunks(
        &mut self,
        chunks: impl Iterator<Item = Chunk>,
        size: u32,
        pace: Duration,
    ) -> Result<u64, Failure> {
        let (mut packet, mut sent) = (Packet::default(), 0);
        packet.begin(self.peer_tag);
        for chunk in chunks {
            if packet.wire_len() + chunk.wire_len() > size {
                sent += self.send(&packet)?;
                packet.begin(self.peer_tag);
                std::thread::sleep(pace);
            }
            packet.chunks.push(chunk);
        }
        Ok(sent + self.send(&packet)?)
    }
}

/// The Noise handshake, repeated until an answer arrives.
fn handshake(
    socket: &UdpSocket,
    server: SocketAddr,
    key: PublicKey,
    secret: &SecretKey,
    clock: &Clock,
) -> Result<Session, Failure> {
    let id = u32::from(socket.local_addr()?.port()) << 8 | 1;
    let begun = Initiator::new(secret, key, Timestamp::now(), id, &HELLO);
    let (mut initiator, mut first) = begun.map_err(|error| error.to_string())?;
    socket.set_read_timeout(Some(ANSWER))?;
    let mut answer = [0; 2048];
    for _ in 0..TRIES {
        socket.send_to(&first, server)?;
        while let Ok((size, _)) = socket.recv_from(&mut answer) {
            match initiator.finish(clock.now(), &answer[..size]) {
                Ok(Finish::Established(session)) => return Ok(*session),
                Ok(Finish::Again(datagram)) => {
                    socket.send_to(&datagram, server)?;
                }
                Err(_) => {}
            }
        }
        first = initiator.restart(Timestamp::now()).map_err(|error| error.to_string())?;
    }
    Err("the server does not answer the handshake".into())
}
