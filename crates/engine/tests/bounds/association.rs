//! An end of an association, and a peer that may send any input.

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, Seed, Serial16, Serial32, StreamId, Time};
use ropewalk_engine::path::PathConfig;
use ropewalk_engine::scheduler::{Scheduler, SchedulerOptions};
use ropewalk_engine::sctp::association::State;
use ropewalk_engine::sctp::wire::{Checksum, Ports, decode, encode};
use ropewalk_engine::sctp::{
    AcceptedRequests, Association, Chunk, Config, Data, DataFlags, DataFragment, ExtensionChunk,
    Packet, Preset,
};
use ropewalk_engine::{Payload, meter};

use crate::{Bound, Broken, allocated};

/// Chunk types on the wire.
pub const DATA: u8 = 0;
pub const SACK: u8 = 3;
pub const HEARTBEAT: u8 = 4;
pub const ERROR: u8 = 9;
pub const ECNE: u8 = 12;
pub const CWR: u8 = 13;
const NR_SACK: u8 = 0x10;
const FORWARD_TSN: u8 = 0xc0;
const I_DATA: u8 = 0x40;
const I_FORWARD_TSN: u8 = 0xc2;
const RE_CONFIG: u8 = 0x82;

/// Flags of DATA.
pub const UNORDERED: u8 = 4;
pub const BEGIN: u8 = 2;
pub const END: u8 = 1;
pub const WHOLE: u8 = 3;

/// Maximum length of the chunks of one datagram, bytes.
const DATAGRAM: usize = 60_000;

/// An action of the peer or of the user.
#[derive(Clone, Debug)]
pub enum Op {
    /// DATA chunks whose numbers increase by fixed steps.
    Data(Burst),
    /// The next DATA chunks in sequence, each a complete message that is next on its stream.
    InSequence { count: u16, stream: u16, size: u16 },
    /// DATA FRAGMENTs of one chunk.
    PartialChunks { ahead: u32, total: u16, offset: u16, step: u16, size: u16, count: u16 },
    /// A SACK with this number of blocks.
    Sack { ahead: u32, first: u16, step: u16, blocks: u16 },
    /// An NR-SACK with this number of renegable blocks, and the same number of non-renegable ones.
    NrSack { ahead: u32, first: u16, step: u16, blocks: u16 },
    /// FORWARD-TSNs, each with a list of this many streams.
    Forward {
        ahead: u32,
        step: u32,
        stream_step: u16,
        ssn: u16,
        ssn_step: u16,
        listed: u16,
        count: u16,
    },
    /// RE-CONFIG chunks with one request of a type each. `repeat`: number of times that each number is
    /// used.
    ReConfig { kind: u8, ahead: u32, listed: u16, stream_step: u16, count: u16, repeat: u16 },
    /// `count` chunks of a type with a body of `size` bytes.
    Chunks { kind: u8, size: u16, count: u16 },
    /// The user reads this many messages.
    Read(u16),
    /// The user sends this many messages.
    Send { count: u16, size: u16 },
    /// Time passes, ms.
    Wait(u16),
}

/// DATA chunks.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    /// TSN of the first chunk, relative to the next in sequence, and of each further one, relative to the
    /// previous one.
    pub ahead: u32,
    pub step: u32,
    pub stream: u16,
    pub stream_step: u16,
    /// Number of the first chunk on its stream, relative to the next one, and of each further one,
    /// relative to the previous one.
    pub ssn: u16,
    pub ssn_step: u16,
    pub flags: u8,
    pub size: u16,
    pub count: u16,
}

/// A chunk with its padding.
fn chunk(out: &mut Vec<u8>, kind: u8, flags: u8, body: &[u8]) {
    let length = u16::try_from(4 + body.len()).expect("16 bits of length");
    out.extend([kind, flags]);
    out.extend(length.to_be_bytes());
    out.extend(body);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// An end under attack.
pub struct Victim {
    // Boxed, so that its own size is also allocated.
    end: Option<Box<Association>>,
    config: Config,
    bound: Bound,
    tag: u32,
    now: Time,
    /// The next TSN in sequence.
    next: Serial32,
    /// The first TSN of the victim.
    own: Serial32,
    /// Number of the next request, and of the victim's first one.
    request: Serial32,
    /// Maximum memory allocated since the last check.
    most: usize,
    /// Maximum amount that the user had sent and the peer had not acknowledged, bytes.
    sends: usize,
    /// Memory allocated before the association was created.
    before: usize,
    came: u64,
    steps: u64,
}

pub fn scheduler() -> Scheduler {
    Scheduler::from_name("lay", &SchedulerOptions::default()).expect("a built-in scheduler")
}

/// The runtime's configuration, on two paths.
pub fn live(receive_buffer: u64) -> Config {
    let paths = vec![PathConfig::default(); 2];
    Config { streams: 1024, ..Config::preset(Preset::Live, paths, receive_buffer) }
}

/// Two ends with the same configuration that are up.
pub fn pair(config: &Config) -> (Association, Association, Time) {
    let mut now = Time::from_millis(1);
    let mut left = Association::connect(config.clone(), scheduler(), Seed::root(3), now);
    let mut right = Association::listen(config.clone(), scheduler(), Seed::root(4));
    for _ in 0..20 {
        for _ in 0..2 {
            while let Some(sent) = left.poll_transmit(now) {
                right.handle_datagram(now, sent.path, sent.packet);
            }
            while let Some(sent) = right.poll_transmit(now) {
                left.handle_datagram(now, sent.path, sent.packet);
            }
        }
        now += Duration::from_millis(100);
        for end in [&mut left, &mut right] {
            end.handle_timeout(now);
            while end.poll_event().is_some() {}
        }
    }
    assert_eq!((left.state(), right.state()), (&State::Established, &State::Established));
    (left, right, now)
}

impl Victim {
    /// `interleaving`: the peer sends I-DATA and I-FORWARD-TSN. `nr_sack`: both ends report non-renegable
    /// data.
    pub fn new(bound: Bound, interleaving: bool, nr_sack: bool) -> Self {
        let config = Config {
            interleaving,
            reconfiguration: true,
            nr_sack,
            accepted_requests: AcceptedRequests::ALL,
            stream_limit: 4096,
            ..live(bound.receive_buffer)
        };
        let mut victim = Self {
            end: None,
            config,
            bound,
            tag: 0,
            now: Time::ZERO,
            next: Serial32(0),
            own: Serial32(0),
            request: Serial32(0),
            most: 0,
            sends: 0,
            before: 0,
            came: 0,
            steps: 0,
        };
        victim.start();
        victim
    }

    /// A fresh end, up and idle.
    fn start(&mut self) {
        self.end = None;
        self.before = allocated();
        let (peer, end, now) = pair(&self.config);
        self.own = peer.peer_initial_tsn().expect("it is up");
        drop(peer);
        self.tag = end.tags().0;
        self.next = end.peer_initial_tsn().expect("it is up");
        self.request = self.next;
        (self.now, self.sends, self.most) = (now, 0, 0);
        self.end = Some(Box::new(end));
        meter::take();
    }

    fn end(&mut self) -> &mut Association {
        self.end.as_mut().expect("there always is one")
    }

    /// Performs these actions, and checks the bounds after each step.
    pub fn play(&mut self, ops: &[Op]) -> Result<(), Broken> {
        for op in ops {
            self.act(op);
            self.check()?;
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), Broken> {
        // Sent data counts separately, with its records.
        let sends = self.config.send_buffer.saturating_sub(self.end().send_room()) as usize;
        self.sends = self.sends.max(sends);
        let memory = self.most.max(allocated()).saturating_sub(self.before + 3 * self.sends);
        self.most = 0;
        self.steps += meter::take();
        self.bound.check(memory, self.came, self.steps)
    }

    fn act(&mut self, op: &Op) {
        match op {
            Op::Data(burst) => self.data(burst),
            Op::InSequence { count, stream, size } => self.in_sequence(*count, *stream, *size),
            Op::PartialChunks { ahead, total, offset, step, size, count } => {
                let mut out = Vec::new();
                for i in 0..*count {
                    let at = offset.wrapping_add(i.wrapping_mul(*step));
                    let mut body = self.header(*ahead, 0, 0);
                    body.extend([at.to_be_bytes(), total.to_be_bytes()].concat());
                    body.resize(body.len() + usize::from(*size), 7);
                    // The codec's own number of DATA FRAGMENT, which is defined by this project and not
                    // by an RFC.
                    chunk(&mut out, piece_kind(), WHOLE, &body);
                    self.flush(&mut out, DATAGRAM);
                }
                self.flush(&mut out, 0);
            }
            Op::Forward { .. } => self.forward(op),
            Op::ReConfig { .. } => self.re_config(op),
            Op::Sack { ahead, first, step, blocks } => {
                self.sack(SACK, *ahead, *first, *step, *blocks);
            }
            Op::NrSack { ahead, first, step, blocks } => {
                self.sack(NR_SACK, *ahead, *first, *step, *blocks);
            }
            Op::Chunks { kind, size, count } => {
                let mut out = Vec::new();
                for i in 0..*count {
                    let mut body = vec![0; usize::from(*size)];
                    // As a parameter or a cause, and different each time.
                    body.iter_mut().zip([0, 1]).for_each(|(to, from)| *to = from);
                    let length = size.to_be_bytes();
                    body.iter_mut().skip(2).zip(length).for_each(|(to, from)| *to = from);
                    body.iter_mut().skip(4).zip(i.to_be_bytes()).for_each(|(to, from)| *to = from);
                    chunk(&mut out, *kind, 0, &body);
                    self.flush(&mut out, DATAGRAM);
                }
                self.flush(&mut out, 0);
            }
            Op::Read(count) => {
                let now = self.now;
                (0..*count).for_each(|_| drop(self.end().read(now)));
                while self.end().poll_reconfiguration().is_some() {}
                self.drain();
            }
            Op::Send { count, size } => {
                for _ in 0..*count {
                    let payload = Bytes::from(vec![7; usize::from(*size).max(1)]).into();
                    self.end().send(StreamId(0), payload, false).unwrap_or(());
                }
                self.drain();
            }
            Op::Wait(millis) => {
                self.now += Duration::from_millis(u64::from(*millis));
                let now = self.now;
                self.end().handle_timeout(now);
                self.drain();
            }
        }
        if matches!(self.end().state(), State::Ended(_)) {
            self.start();
        }
    }

    /// The header of a DATA chunk.
    fn header(&mut self, ahead: u32, stream: u16, ssn: u16) -> Vec<u8> {
        let ssn = ssn.wrapping_add(self.end().expected(StreamId(stream)).1.0);
        let mut body = self.next.plus(ahead).0.to_be_bytes().to_vec();
        body.extend(stream.to_be_bytes());
        body.extend(ssn.to_be_bytes());
        body.extend([0; 4]);
        body
    }

    fn data(&mut self, burst: &Burst) {
        let mut out = Vec::new();
        for i in 0..u32::from(burst.count) {
            let stream = burst.stream.wrapping_add(burst.stream_step.wrapping_mul(i as u16));
            let ssn = burst.ssn.wrapping_add(burst.ssn_step.wrapping_mul(i as u16));
            let ahead = burst.ahead.wrapping_add(burst.step.wrapping_mul(i));
            let begins = burst.flags & BEGIN != 0;
            let mut body = match self.config.interleaving {
                true => self.i_header(ahead, stream, ssn.into(), if begins { 0 } else { i + 1 }),
                false => self.header(ahead, stream, ssn),
            };
            body.resize(body.len() + usize::from(burst.size).max(1), 7);
            let kind = self.data_kind();
            chunk(&mut out, kind, burst.flags & 15, &body);
            self.flush(&mut out, DATAGRAM);
        }
        self.flush(&mut out, 0);
    }

    const fn data_kind(&self) -> u8 {
        if self.config.interleaving { I_DATA } else { DATA }
    }

    /// The header of an I-DATA chunk.
    fn i_header(&mut self, ahead: u32, stream: u16, message: u32, fragment: u32) -> Vec<u8> {
        let next = self.end().expected_message(StreamId(stream)).expect("interleaved");
        let mut body = self.next.plus(ahead).0.to_be_bytes().to_vec();
        body.extend(stream.to_be_bytes());
        body.extend([0; 2]);
        body.extend(next.plus(message).0.to_be_bytes());
        body.extend(fragment.to_be_bytes());
        body
    }

    fn in_sequence(&mut self, count: u16, stream: u16, size: u16) {
        let stream = stream % self.config.streams;
        for _ in 0..count {
            let mut out = Vec::new();
            let mut body = match self.config.interleaving {
                true => self.i_header(0, stream, 0, 0),
                false => self.header(0, stream, 0),
            };
            body.resize(body.len() + usize::from(size).max(1), 7);
            let kind = self.data_kind();
            chunk(&mut out, kind, WHOLE, &body);
            self.flush(&mut out, 0);
        }
    }

    fn forward(&mut self, op: &Op) {
        let Op::Forward { ahead, step, stream_step, ssn, ssn_step, listed, count } = op else {
            return;
        };
        let begin = self.next;
        for i in 0..u32::from(*count) {
            let mut body =
                begin.plus(ahead.wrapping_add(step.wrapping_mul(i))).0.to_be_bytes().to_vec();
            for at in 0..*listed {
                let stream = stream_step.wrapping_mul(at) % self.config.streams;
                let next = self.end().expected(StreamId(stream)).1.0;
                let steps = ssn.wrapping_add(ssn_step.wrapping_mul(at));
                if let Some(next) = self.end().expected_message(StreamId(stream)) {
                    body.extend([stream.to_be_bytes(), [0, at as u8 & 1]].concat());
                    body.extend(next.plus(steps.into()).0.to_be_bytes());
                } else {
                    let ssn = next.wrapping_add(steps);
                    body.extend([stream.to_be_bytes(), ssn.to_be_bytes()].concat());
                }
            }
            let kind = if self.config.interleaving { I_FORWARD_TSN } else { FORWARD_TSN };
            let mut out = Vec::new();
            chunk(&mut out, kind, 0, &body[..body.len().min(60_004)]);
            // It does not belong to the victim.
            drop(body);
            self.flush(&mut out, 0);
        }
    }

    fn re_config(&mut self, op: &Op) {
        let Op::ReConfig { kind, ahead, listed, stream_step, count, repeat } = op else { return };
        for i in 0..u32::from(*count) {
            let last = self.next.plus(u32::MAX).plus(*ahead);
            let numbers = match kind {
                13 => vec![self.request.0, self.own.plus(i).0, last.0],
                16 => vec![self.own.plus(i).0, *ahead % 8, self.next.0, self.own.0],
                17 | 18 => vec![self.request.0, u32::from(*listed) << 16],
                _ => vec![self.request.0],
            };
            let lists = matches!(kind, 13 | 14);
            let streams = (0..*listed).filter(|_| lists).map(|at| at.wrapping_mul(*stream_step));
            let words = numbers.iter().flat_map(|word| word.to_be_bytes());
            let value: Vec<u8> = words.chain(streams.flat_map(u16::to_be_bytes)).collect();
            let mut parameter = vec![0, *kind];
            parameter.extend((4 + value.len() as u16).to_be_bytes());
            parameter.extend(value);
            for _ in 0..*repeat {
                let mut out = Vec::new();
                chunk(&mut out, RE_CONFIG, 0, &parameter);
                self.flush(&mut out, 0);
            }
            self.request = self.request.plus(1);
        }
    }

    fn sack(&mut self, kind: u8, ahead: u32, first: u16, step: u16, blocks: u16) {
        let cumulative = self.own.plus(ahead).0;
        let mut body = cumulative.to_be_bytes().to_vec();
        body.extend([0, 1, 0, 0]);
        let lists: &[u16] = if kind == NR_SACK { &[0, 1] } else { &[0] };
        lists.iter().for_each(|_| body.extend(blocks.to_be_bytes()));
        body.extend([0; 4][..2 * lists.len()].iter());
        for list in lists {
            for i in 0..blocks {
                let at = first.wrapping_add(i.wrapping_mul(step)).wrapping_add(*list);
                body.extend([at.to_be_bytes(), at.to_be_bytes()].concat());
            }
        }
        let mut out = Vec::new();
        chunk(&mut out, kind, 0, &body);
        self.flush(&mut out, 0);
    }

    /// Sends the chunks if they are longer than `most` bytes.
    fn flush(&mut self, out: &mut Vec<u8>, most: usize) {
        if out.len() <= most {
            return;
        }
        let mut bytes = vec![0x13, 0x89, 0x26, 0xab];
        bytes.extend(self.tag.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(std::mem::take(out));
        self.came += bytes.len() as u64;
        let mut packet = Packet::default();
        if decode(&bytes, Checksum::None, &mut packet).is_ok() {
            let now = self.now;
            self.end().handle_in_place(now, PathId(0), &mut packet);
        }
        drop(packet);
        // Measured before draining: a driver may have to wait for its socket.
        self.most = self.most.max(allocated());
        self.drain();
    }

    /// Takes the packets that it sends; readable messages stay.
    fn drain(&mut self) {
        let now = self.now;
        while self.end().poll_transmit(now).is_some() {}
        while self.end().poll_event().is_some() {}
        self.follow();
    }

    /// The peer continues at the cumulative TSN.
    fn follow(&mut self) {
        self.next = Serial32::wrap(self.end().expected(StreamId(0)).0);
    }
}

/// The type of DATA FRAGMENT chunks.
fn piece_kind() -> u8 {
    let data = Data {
        tsn: Serial32(0),
        stream: StreamId(0),
        ssn: Serial16(0),
        ppid: 0,
        flags: DataFlags::WHOLE,
        payload: Payload::Length(4),
        message_high: 0,
        first_sent: Time::ZERO,
    };
    let packet = Packet::of(
        1,
        Chunk::Extension(Box::new(ExtensionChunk::DataFragment(DataFragment::of(&data, 0, 4)))),
    );
    let mut out = Vec::new();
    encode(&packet, Ports { source: 1, destination: 1 }, Checksum::None, &mut out);
    out[12]
}
