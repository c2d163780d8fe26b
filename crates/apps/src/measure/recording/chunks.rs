//! The chunks of an SCTP packet that a measurement needs (RFC 9260, 3.3). A packet may be truncated.

/// The common header: ports, verification tag, checksum.
const HEADER: usize = 12;
const DATA: u8 = 0;
const INIT: u8 = 1;
const INIT_ACK: u8 = 2;
const SACK: u8 = 3;
/// A SACK of this project, which counts its blocks in one byte.
const REQUESTED_SACK: u8 = 0xb5;
const COOKIE_ECHO: u8 = 10;
/// RFC 8260, 2.1.
const I_DATA: u8 = 64;

/// A chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    Data {
        tsn: u32,
    },
    /// The cumulative TSN and the ranges of received TSNs beyond it, both ends included.
    Sack {
        cumulative: u32,
        received: Vec<(u32, u32)>,
    },
    Init,
    InitAck,
    CookieEcho,
}

/// The verification tag, which identifies the receiving end of an association.
pub(super) fn tag(packet: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(packet.get(4..8)?.try_into().ok()?))
}

/// The chunks of a packet, up to its end or to the first chunk that is truncated before its fields.
pub(super) fn chunks(packet: &[u8]) -> Vec<Chunk> {
    let mut found = Vec::new();
    let mut rest = packet.get(HEADER..).unwrap_or_default();
    while let Some((head, _)) = rest.split_first_chunk::<4>() {
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        if length < head.len() {
            break;
        }
        let body = rest.get(4..length.min(rest.len())).unwrap_or_default();
        match chunk(head[0], body) {
            Known::Chunk(chunk) => found.push(chunk),
            Known::Other => {}
            Known::CutOff => break,
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

enum Known {
    Chunk(Chunk),
    Other,
    CutOff,
}

fn chunk(kind: u8, body: &[u8]) -> Known {
    let found = match kind {
        DATA | I_DATA => number(body, 0).map(|tsn| Chunk::Data { tsn }),
        SACK => sack(body, short(body, 8).map(usize::from)),
        REQUESTED_SACK => sack(body, body.get(8).copied().map(usize::from)),
        INIT => Some(Chunk::Init),
        INIT_ACK => Some(Chunk::InitAck),
        COOKIE_ECHO => Some(Chunk::CookieEcho),
        _ => return Known::Other,
    };
    found.map_or(Known::CutOff, Known::Chunk)
}

fn sack(body: &[u8], blocks: Option<usize>) -> Option<Chunk> {
    let (cumulative, blocks) = (number(body, 0)?, blocks?);
    let block = |i: usize| {
        let (first, last) = (short(body, 12 + 4 * i)?, short(body, 14 + 4 * i)?);
        let sane = first > 0 && last >= first;
        sane.then(|| (cumulative.wrapping_add(first.into()), cumulative.wrapping_add(last.into())))
    };
    Some(Chunk::Sack { cumulative, received: (0..blocks).map_while(block).collect() })
}

fn number(body: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(body.get(at..at + 4)?.try_into().ok()?))
}

fn short(body: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(body.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn chunks_are_found_behind_others_and_in_a_packet_that_is_cut_off() {
        let mut packet = vec![0; 12];
        packet[4..8].copy_from_slice(&7u32.to_be_bytes());
        // HEARTBEAT of five bytes with its padding, SACK with one block, DATA that is cut off after its TSN.
        packet.extend([4, 0, 0, 5, 1, 0, 0, 0]);
        packet.extend([3, 0, 0, 20, 0, 0, 0, 9, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3]);
        packet.extend([0, 3, 5, 0, 0, 0, 0, 10]);
        assert_eq!(tag(&packet), Some(7));
        let sack = Chunk::Sack { cumulative: 9, received: vec![(11, 12)] };
        assert_eq!(chunks(&packet), [sack.clone(), Chunk::Data { tsn: 10 }]);
        assert_eq!(chunks(&packet[..packet.len() - 1]), [sack]);
        assert_eq!(chunks(&packet[..12]), []);
    }

    proptest! {
        #[test]
        fn no_bytes_stop_the_search(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let found = chunks(&bytes);
            prop_assert!(found.len() <= bytes.len() / 4);
        }
    }
}
