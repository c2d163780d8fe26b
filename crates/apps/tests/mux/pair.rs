//! Two machines, and the messages in transit between them: in order on each stream, in any order
//! between streams, as an association delivers them.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use ropewalk_apps::mux::{
    Event, Limits, Message, Mux, Read, Refusal, Role, StreamError, StreamKey,
};

/// Number of streams in each direction: few, so that numbers are reused often.
pub const STREAMS: u16 = 6;
/// Data per message.
const MOST: usize = 700;

/// Small windows, so that credit runs out.
pub const LIMITS: Limits = Limits {
    first_window: 20 << 10,
    largest_window: 80 << 10,
    shared: 256 << 10,
    peer_streams: 2 * STREAMS as usize,
    send_queue: 9000,
};

/// A stream as one of its users sees it.
#[derive(Debug)]
pub struct User {
    pub key: StreamKey,
    /// Number of the stream in the test, known to both users.
    pub number: usize,
    pub finished: bool,
    pub answered: bool,
}

/// State of one direction of one stream.
#[derive(Debug, Default)]
pub struct Track {
    pub written: u64,
    pub read: u64,
    /// The writer finished the stream, and kept its handle until everything was sent.
    pub finished: bool,
    pub ended: bool,
}

/// One end.
pub struct End {
    pub mux: Mux,
    pub users: Vec<User>,
    /// Messages to this end, by stream.
    pub in_transit: BTreeMap<u16, VecDeque<(u32, Bytes)>>,
}

/// Both ends. A stream has two tracks: 0 from the opener, 1 to it.
pub struct MuxPair {
    pub ends: [End; 2],
    pub tracks: Vec<[Track; 2]>,
    /// Which end opened it.
    pub openers: Vec<usize>,
    /// Streams that one user has aborted.
    pub broken: Vec<bool>,
}

/// Byte at a position of a track, which identifies stream, direction and position.
fn byte(number: usize, way: usize, position: u64) -> u8 {
    (number as u64 * 31 + way as u64 * 101 + position * 7 + position / 251) as u8
}

impl MuxPair {
    pub fn new() -> Self {
        let end = |role| End {
            mux: Mux::new(role, LIMITS, STREAMS),
            users: Vec::new(),
            in_transit: BTreeMap::new(),
        };
        Self {
            ends: [end(Role::Connector), end(Role::Acceptor)],
            tracks: Vec::new(),
            openers: Vec::new(),
            broken: Vec::new(),
        }
    }

    pub fn open(&mut self, at: usize) -> bool {
        let number = self.tracks.len();
        let target = Bytes::copy_from_slice(&(number as u64).to_be_bytes());
        let Ok(key) = self.ends[at].mux.open(target) else { return false };
        self.ends[at].users.push(User { key, number, finished: false, answered: true });
        self.tracks.push(Default::default());
        self.openers.push(at);
        self.broken.push(false);
        true
    }

    /// The track that the user at this end writes.
    fn way(&self, at: usize, number: usize) -> usize {
        usize::from(self.openers[number] != at)
    }

    /// Sends one message from this end.
    pub fn transmit(&mut self, at: usize) -> bool {
        let Some((id, message)) = self.ends[at].mux.poll_transmit(MOST) else { return false };
        if let Message::Data(data) | Message::Last(data) = &message {
            assert!(data.len() <= MOST);
        }
        self.ends[1 - at].in_transit.entry(id).or_default().push_back(message.encode());
        true
    }

    /// Delivers one message to this end, on one of the streams that have any.
    pub fn deliver(&mut self, at: usize, choice: usize) -> bool {
        let end = &mut self.ends[at];
        let waiting: Vec<u16> = end
            .in_transit
            .iter()
            .filter(|(_, queue)| !queue.is_empty())
            .map(|(id, _)| *id)
            .collect();
        if waiting.is_empty() {
            return false;
        }
        let id = waiting[choice % waiting.len()];
        let (ppid, bytes) = end.in_transit.get_mut(&id).unwrap().pop_front().unwrap();
        end.mux.handle(id, ppid, bytes).expect("both ends keep to the rules");
        while let Some(event) = end.mux.poll_event() {
            if let Event::Offered(key) = event {
                let target = end.mux.target(key).expect("it is offered now");
                let number = u64::from_be_bytes(target[..].try_into().unwrap()) as usize;
                end.users.push(User { key, number, finished: false, answered: false });
            }
        }
        self.check_memory(at);
        true
    }

    pub fn check_memory(&self, at: usize) {
        assert!(self.ends[at].mux.reserved() <= LIMITS.shared);
        assert!(self.ends[at].mux.len() <= 2 * usize::from(STREAMS) + usize::from(STREAMS));
    }

    pub fn answer(&mut self, at: usize, user: usize, yes: bool) {
        let User { key, number, answered, .. } = self.ends[at].users[user];
        if answered {
            return;
        }
        if yes {
            self.ends[at].users[user].answered = true;
            if !self.ends[at].mux.accept(key) {
                self.broken[number] = true;
            }
        } else {
            self.ends[at].mux.refuse(key, Refusal::new(9, "no"));
            self.ends[at].users.swap_remove(user);
            self.broken[number] = true;
        }
    }

    pub fn write(&mut self, at: usize, user: usize, bytes: usize) {
        let User { key, number, finished, answered } = self.ends[at].users[user];
        if finished || !answered {
            return;
        }
        let way = self.way(at, number);
        let from = self.tracks[number][way].written;
        let data: Vec<u8> = (from..from + bytes as u64).map(|p| byte(number, way, p)).collect();
        match self.ends[at].mux.write(key, &data) {
            Ok(n) => self.tracks[number][way].written += n as u64,
            Err(StreamError::Finished) => panic!("it was not finished"),
            Err(error) => self.check_reason(number, &error),
        }
    }

    pub fn finish(&mut self, at: usize, user: usize) {
        let User { key, number, answered, .. } = self.ends[at].users[user];
        if !answered {
            return;
        }
        let way = self.way(at, number);
        match self.ends[at].mux.finish(key) {
            Ok(()) => self.tracks[number][way].finished = true,
            Err(error) => self.check_reason(number, &error),
        }
        self.ends[at].users[user].finished = true;
    }

    /// Reads, and compares with the written bytes. Returns the number of bytes.
    pub fn read(&mut self, at: usize, user: usize, most: usize) -> usize {
        let User { key, number, answered, .. } = self.ends[at].users[user];
        if !answered {
            return 0;
        }
        let way = 1 - self.way(at, number);
        let track = &mut self.tracks[number][way];
        let mut out = vec![0; most];
        match self.ends[at].mux.read(key, &mut out) {
            Ok(Read::Bytes(n)) => {
                assert!(!track.ended, "bytes after the end");
                for (i, got) in out[..n].iter().enumerate() {
                    assert_eq!(*got, byte(number, way, track.read + i as u64), "stream {number}");
                }
                track.read += n as u64;
                assert!(track.read <= track.written, "more was read than written");
                n
            }
            Ok(Read::Nothing) => 0,
            Ok(Read::End) => {
                assert!(track.finished, "an end that nobody told");
                assert_eq!(track.read, track.written, "stream {number} is cut");
                track.ended = true;
                0
            }
            Err(error) => {
                self.check_reason(number, &error);
                0
            }
        }
    }

    /// A stream fails because one user has released it, or because there are too many.
    fn check_reason(&mut self, number: usize, error: &StreamError) {
        let busy = matches!(error, StreamError::Refused(why) if why.code == Refusal::BUSY);
        self.broken[number] |= busy;
        assert!(self.broken[number], "stream {number} failed without a reason: {error:?}");
    }

    /// The user releases the stream.
    pub fn release(&mut self, at: usize, user: usize) {
        let User { key, number, finished, .. } = self.ends[at].users.swap_remove(user);
        let way = self.way(at, number);
        let both = finished && self.tracks[number][1 - way].ended;
        if !both {
            self.broken[number] = true;
        }
        self.ends[at].mux.release(key);
    }
}
