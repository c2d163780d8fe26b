//! Compact form of packets ([`PacketForm::Compact`](crate::sctp::PacketForm)).
//!
//! ```text
//! form: 1  echo  chunks  datagram  immediate         5 bits, carried by the layer below
//!
//! path (1)  TSN (4)  microseconds (6)                if `echo`: the DelayEcho
//! length (2)                                         if `chunks` and `datagram`: of the chunks
//! chunks                                             if `chunks`: as in RFC 9260, padded
//! TSN mod 2^24 (3)  user data                        if `datagram`: up to the end of the packet
//! ```
//!
//! `immediate` is the I bit of the datagram. The layer below authenticates packets and assigns them to an association,
//! so that ports, checksum and verification tag are not needed. Form 0 is a packet in the standard form.

use bytes::Bytes;
use ropewalk_base::{Serial16, Serial32, StreamId, Time};

use super::{DecodeError, put_all, read_chunks};
use crate::payload::Payload;
use crate::sctp::chunk::{Chunk, Data, DataFlags, DelayEcho, Echoed};
use crate::sctp::packet::Packet;

/// The form of packets that are not compact.
pub const STANDARD: u8 = 0;

const COMPACT: u8 = 1;
const ECHO: u8 = 2;
const CHUNKS: u8 = 4;
const DATAGRAM: u8 = 8;
const IMMEDIATE: u8 = 16;

/// Bits of the TSN that are sent.
const TSN_BITS: u32 = 24;
const ECHO_LEN: usize = DelayEcho::COMPACT_LEN as usize;
const CHUNKS_LENGTH: usize = Data::CHUNKS_LENGTH as usize;
const DATAGRAM_HEADER: usize = Data::COMPACT_HEADER as usize;

/// Context for decoding a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// Verification tag of the association's received packets.
    pub tag: u32,
    /// A TSN near those of received data, such as the cumulative TSN.
    pub near: Serial32,
}

/// The form in which `packet` is encoded, [`STANDARD`] if it has no compact form.
#[inline]
pub fn form_of(packet: &Packet) -> u8 {
    if !packet.has_compact_form() {
        return STANDARD;
    }
    let (chunks, datagram) = packet.split_datagram();
    let immediate = datagram.is_some_and(|data| data.flags.has(DataFlags::IMMEDIATE));
    let bits = [
        (packet.echo.is_some(), ECHO),
        (!chunks.is_empty(), CHUNKS),
        (datagram.is_some(), DATAGRAM),
        (immediate, IMMEDIATE),
    ];
    bits.into_iter().filter(|(set, _)| *set).fold(COMPACT, |form, (_, bit)| form | bit)
}

/// Appends `packet`, for which [`form_of`] is not [`STANDARD`], to `out`.
///
/// # Panics
/// If a chunk is longer than 65,535 bytes. Chunks cut to a path MTU never are.
#[inline]
pub fn encode(packet: &Packet, out: &mut Vec<u8>) {
    if let Some(DelayEcho { path, of: Echoed::Tsn(tsn), received }) = packet.echo {
        out.push(path);
        out.extend_from_slice(&tsn.0.to_be_bytes());
        out.extend_from_slice(&(received / 1000).to_be_bytes()[2..]);
    }
    let (chunks, datagram) = packet.split_datagram();
    let at = out.len();
    if datagram.is_some() && !chunks.is_empty() {
        out.extend_from_slice(&[0; CHUNKS_LENGTH]);
        put_all(chunks, out);
        let length = u16::try_from(out.len() - at - CHUNKS_LENGTH);
        let length = length.expect("a packet is cut to the path's MTU");
        out[at..at + CHUNKS_LENGTH].copy_from_slice(&length.to_be_bytes());
    } else {
        put_all(chunks, out);
    }
    if let Some(data) = datagram {
        out.extend_from_slice(&data.tsn.0.to_be_bytes()[1..]);
        match &data.payload {
            Payload::Bytes(bytes) => out.extend_from_slice(bytes),
            Payload::Length(length) => out.resize(out.len() + *length as usize, 0),
        }
    }
}

/// Decodes a packet of this form, which is not [`STANDARD`], into `packet`, whose content is replaced. User data
/// is copied. After an error, the content of `packet` is unspecified.
///
/// # Errors
/// [`DecodeError`]; the packet must not be answered.
pub fn decode(
    form: u8,
    bytes: &[u8],
    context: Context,
    packet: &mut Packet,
) -> Result<(), DecodeError> {
    let short = DecodeError::Short { bytes: bytes.len() };
    let has = |bit| form & bit != 0;
    packet.begin(context.tag);
    let mut at = 0;
    if has(ECHO) {
        let echo = bytes.first_chunk::<ECHO_LEN>().ok_or(short)?;
        packet.echo = Some(read_echo(echo));
        at = ECHO_LEN;
    }
    if has(CHUNKS) && has(DATAGRAM) {
        let (_, rest) = bytes.split_at(at);
        let length = rest.first_chunk::<CHUNKS_LENGTH>().ok_or(short)?;
        let end = at + CHUNKS_LENGTH + usize::from(u16::from_be_bytes(*length));
        if end > bytes.len() {
            return Err(short);
        }
        read_chunks(bytes, at + CHUNKS_LENGTH..end, packet)?;
        at = end;
    } else if has(CHUNKS) {
        read_chunks(bytes, at..bytes.len(), packet)?;
    }
    if has(DATAGRAM) {
        let flags = if has(IMMEDIATE) { DataFlags::IMMEDIATE } else { DataFlags::default() };
        let data = read_datagram(bytes, at, context.near).ok_or(short)?;
        packet.chunks.push(Chunk::Data(Data { flags: data.flags.and(flags), ..data }));
    }
    Ok(())
}

fn read_echo(bytes: &[u8; ECHO_LEN]) -> DelayEcho {
    let [path, a, b, c, d, clock @ ..] = *bytes;
    let clock = clock.into_iter().fold(0, |clock, byte| clock << 8 | u64::from(byte));
    let of = Echoed::Tsn(Serial32(u32::from_be_bytes([a, b, c, d])));
    // 48 bits of microseconds are less than 2^58 ns.
    DelayEcho { path, of, received: clock * 1000 }
}

#[inline]
fn read_datagram(bytes: &[u8], at: usize, near: Serial32) -> Option<Data> {
    let (_, rest) = bytes.split_at(at);
    let ([a, b, c], data) = rest.split_first_chunk::<DATAGRAM_HEADER>()?;
    let low = u32::from_be_bytes([0, *a, *b, *c]);
    // The TSN with these last bits that is nearest to `near`.
    let shift = u32::BITS - TSN_BITS;
    let ahead = (low.wrapping_sub(near.0) << shift).cast_signed() >> shift;
    Some(Data {
        tsn: Serial32(near.0.wrapping_add_signed(ahead)),
        stream: StreamId(0),
        ssn: Serial16(0),
        ppid: 0,
        flags: DataFlags::WHOLE.and(DataFlags::UNORDERED),
        message_high: 0,
        payload: Payload::from(Bytes::copy_from_slice(data)),
        first_sent: Time::ZERO,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use smallvec::SmallVec;

    use super::*;
    use crate::sctp::PacketForm;
    use crate::sctp::chunk::Sack;
    use crate::sctp::gaps::GapList;

    const TAG: u32 = 77;

    fn chunk() -> impl Strategy<Value = Chunk> {
        let data = (any::<u32>(), 0_u16..2, 0_u32..2, 0_u8..16, 1_usize..1400);
        let data = data.prop_map(|(tsn, stream, ppid, flags, length)| {
            Chunk::Data(Data {
                tsn: Serial32(tsn),
                stream: StreamId(stream),
                ssn: Serial16(0),
                ppid,
                flags: DataFlags::from_bits(flags),
                message_high: 0,
                payload: Payload::from(Bytes::from(vec![7; length])),
                first_sent: Time::ZERO,
            })
        });
        let sack = any::<u32>().prop_map(|tsn| {
            let (gaps, duplicates) = (GapList::default(), Vec::new());
            let cumulative = Serial32(tsn);
            Chunk::Sack(Sack {
                cumulative,
                window: 9,
                gaps,
                duplicates,
                data_packets: 1,
                number: None,
            })
        });
        prop_oneof![3 => data, 1 => sack]
    }

    fn packet() -> impl Strategy<Value = Packet> {
        let echo = (any::<u8>(), any::<u32>(), 0_u64..1 << 48).prop_map(|(path, tsn, micros)| {
            DelayEcho { path, of: Echoed::Tsn(Serial32(tsn)), received: micros * 1000 }
        });
        let chunks = prop::collection::vec(chunk(), 1..4);
        (prop::option::of(echo), chunks).prop_map(|(echo, chunks)| Packet {
            tag: TAG,
            echo,
            chunks: SmallVec::from_vec(chunks),
            ..Packet::default()
        })
    }

    proptest! {
        #[test]
        fn a_packet_is_decoded_as_it_was_encoded_and_has_the_length_that_was_computed(
            packet in packet(),
            near in -(1_i32 << 23) + 1..1 << 23,
        ) {
            let form = form_of(&packet);
            let mut out = Vec::new();
            encode(&packet, &mut out);
            prop_assert_eq!(out.len(), packet.wire_len_in(PacketForm::Compact) as usize);
            prop_assert!(out.len() <= packet.wire_len() as usize - Packet::HEADER as usize);
            // Only the last datagram's TSN is shortened.
            let tsn = packet.split_datagram().1.map_or(Serial32(0), |data| data.tsn);
            let near = Serial32(tsn.0.wrapping_add_signed(near));
            let mut decoded = Packet::default();
            decode(form, &out, Context { tag: TAG, near }, &mut decoded).unwrap();
            prop_assert_eq!(decoded, packet);
        }

        #[test]
        fn any_bytes_of_any_form_are_decoded_or_refused(
            form in 1_u8..32,
            bytes in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let context = Context { tag: TAG, near: Serial32(5) };
            let mut packet = Packet::default();
            if decode(form, &bytes, context, &mut packet).is_ok() {
                prop_assert_eq!(packet.tag, TAG);
            }
        }
    }
}
