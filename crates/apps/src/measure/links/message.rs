//! Messages between the two ends of a measurement of links. All numbers are big-endian.
//!
//! ```text
//! client                                            server
//!   Open: most bytes that the server may send ------>
//!   <--------  Open: most bytes that it will send
//!   Train: send these probes  ---------------------->
//!   <========  probes
//!   <--------  Sent: number of probes sent
//!   ========>  probes
//!   Sent: number of probes sent  ------------------->
//!   <--------  Log: arrivals of this train
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Version of the messages; the first byte of [`Message::Open`]. Plans of throughput measurements begin with another
/// number, so that one server serves both.
pub const VERSION: u8 = 0x41;
/// Maximum number of probes of a train.
pub const TRAIN_LIMIT: u32 = 1 << 15;
/// Maximum number of arrivals in one message of a log.
pub const LOG_PART: usize = 4000;

/// A train of probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Train {
    /// Its number, unique in the association.
    pub id: u32,
    /// The path that carries it.
    pub path: u8,
    /// Size of each IP packet, bytes.
    pub bytes: u16,
    /// Number of probes.
    pub count: u32,
    /// Probes that are sent together.
    pub group: u16,
    /// Time between two groups, nanoseconds.
    pub interval_ns: u64,
}

/// The arrival of a probe of a train.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The probe's number.
    pub number: u32,
    /// When it arrived, nanoseconds of the receiver's clock.
    pub at_ns: u64,
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Opens the measurement: maximum number of bytes that the server sends.
    Open {
        /// Bytes of IP packets.
        bytes: u64,
    },
    /// Asks the server to send a train.
    Train(Train),
    /// Ends a train, with the number of probes sent.
    Sent {
        /// The train.
        id: u32,
        /// Probes that were sent, from the first one on.
        count: u32,
    },
    /// The arrivals of a train, in several parts.
    Log {
        /// The train.
        id: u32,
        /// Whether this is the last part.
        last: bool,
        /// In the order of arrival.
        arrivals: Vec<Arrival>,
    },
}

const TRAIN: u8 = 1;
const SENT: u8 = 2;
const LOG: u8 = 3;

impl Train {
    /// Bytes of all its IP packets.
    pub fn total_bytes(&self) -> u64 {
        u64::from(self.count) * u64::from(self.bytes)
    }

    /// How long it takes to send, seconds.
    pub fn seconds(&self) -> f64 {
        let groups = self.count.div_ceil(u32::from(self.group).max(1));
        f64::from(groups) * self.interval_ns as f64 * 1e-9
    }
}

impl Message {
    /// Encodes the message.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self {
            Self::Open { bytes } => {
                out.put_u8(VERSION);
                out.put_u64(*bytes);
            }
            Self::Train(train) => {
                out.put_u8(TRAIN);
                out.put_u32(train.id);
                out.put_u8(train.path);
                out.put_u16(train.bytes);
                out.put_u32(train.count);
                out.put_u16(train.group);
                out.put_u64(train.interval_ns);
            }
            Self::Sent { id, count } => {
                out.put_u8(SENT);
                out.put_u32(*id);
                out.put_u32(*count);
            }
            Self::Log { id, last, arrivals } => {
                out.put_u8(LOG);
                out.put_u32(*id);
                out.put_u8(u8::from(*last));
                let mut before = Arrival { number: 0, at_ns: 0 };
                for arrival in arrivals {
                    put(&mut out, difference(arrival.number.into(), before.number.into()));
                    put(&mut out, difference(arrival.at_ns, before.at_ns));
                    before = *arrival;
                }
            }
        }
        out.freeze()
    }

    /// Decodes a message. `None` if it is invalid.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let message = match bytes.try_get_u8().ok()? {
            VERSION => Self::Open { bytes: bytes.try_get_u64().ok()? },
            TRAIN => Self::Train(Train {
                id: bytes.try_get_u32().ok()?,
                path: bytes.try_get_u8().ok()?,
                bytes: bytes.try_get_u16().ok()?,
                count: bytes.try_get_u32().ok()?,
                group: bytes.try_get_u16().ok()?,
                interval_ns: bytes.try_get_u64().ok()?,
            }),
            SENT => Self::Sent { id: bytes.try_get_u32().ok()?, count: bytes.try_get_u32().ok()? },
            LOG => return log(bytes),
            _ => return None,
        };
        bytes.is_empty().then_some(message)
    }
}

fn log(mut bytes: &[u8]) -> Option<Message> {
    let id = bytes.try_get_u32().ok()?;
    let last = match bytes.try_get_u8().ok()? {
        last @ 0..=1 => last == 1,
        _ => return None,
    };
    let (mut arrivals, mut before) = (Vec::new(), Arrival { number: 0, at_ns: 0 });
    while !bytes.is_empty() {
        if arrivals.len() == LOG_PART {
            return None;
        }
        let number = u64::from(before.number).wrapping_add(take(&mut bytes)? as u64);
        let at_ns = before.at_ns.wrapping_add(take(&mut bytes)? as u64);
        before = Arrival { number: u32::try_from(number).ok()?, at_ns };
        arrivals.push(before);
    }
    Some(Message::Log { id, last, arrivals })
}

fn difference(now: u64, before: u64) -> i64 {
    now.wrapping_sub(before) as i64
}

/// Appends a signed number: the sign in the lowest bit, seven bits per byte, lowest first.
fn put(out: &mut BytesMut, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
}

fn take(bytes: &mut &[u8]) -> Option<i64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = bytes.try_get_u8().ok()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn messages_come_back(
            id: u32, path: u8, bytes: u16, count: u32, group: u16, interval_ns: u64, last: bool,
            arrivals in prop::collection::vec((any::<u32>(), any::<u64>()), 0..50),
        ) {
            let arrivals = arrivals.into_iter().map(|(number, at_ns)| Arrival { number, at_ns });
            for message in [
                Message::Open { bytes: interval_ns },
                Message::Train(Train { id, path, bytes, count, group, interval_ns }),
                Message::Sent { id, count },
                Message::Log { id, last, arrivals: arrivals.collect() },
            ] {
                prop_assert_eq!(Message::decode(&message.encode()), Some(message));
            }
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Message::decode(&bytes);
        }
    }

    #[test]
    fn a_log_has_a_largest_part_and_every_other_message_one_length() {
        let mut long = BytesMut::from(&[LOG, 0, 0, 0, 1, 1][..]);
        long.resize(6 + 2 * LOG_PART, 0);
        assert!(Message::decode(&long).is_some());
        long.resize(6 + 2 * LOG_PART + 2, 0);
        assert_eq!(Message::decode(&long), None);
        for invalid in [&[][..], &[9], &[SENT, 0, 0, 0, 1], &[LOG, 0, 0, 0, 1, 2]] {
            assert_eq!(Message::decode(invalid), None, "{invalid:?}");
        }
        let longer = [&Message::Sent { id: 1, count: 2 }.encode()[..], &[0]].concat();
        assert_eq!(Message::decode(&longer), None);
    }
}
