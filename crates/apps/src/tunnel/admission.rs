//! Checks and modifications of each inner packet at both ends of a tunnel: its size, and the MSS of TCP.

use std::net::IpAddr;

use bytes::{Bytes, BytesMut};

use super::counters::{Counters, Refusal};
use super::packet::{Headers, Transport};
use super::path_mtu::{clamp_mss, too_big};

/// Decision about a packet of the device.
pub(super) enum Admission {
    /// The packet is carried.
    Taken((Headers, Bytes)),
    /// The packet is too big; the answer to its source.
    Answered(Vec<u8>),
    /// The packet is refused and counted.
    Refused,
}

/// Decides whether a packet is carried.
pub(super) fn admit(
    mut packet: Bytes,
    headers: Headers,
    mtu: u32,
    own: &[IpAddr],
    counters: &Counters,
) -> Admission {
    if packet.len() > mtu as usize && !headers.may_fragment {
        counters.on_refused(Refusal::TooBig);
        let from = own.iter().find(|own| own.is_ipv4() == headers.source.is_ipv4());
        let answer = from.and_then(|from| too_big(&packet, mtu, *from));
        return answer.map_or(Admission::Refused, Admission::Answered);
    }
    clamp(&mut packet, &headers, mtu);
    Admission::Taken((headers, packet))
}

/// Clamps the MSS of a packet that opens a TCP connection. Other packets are not modified, because modifying a packet
/// that shares its memory with others copies it.
pub(super) fn clamp(packet: &mut Bytes, headers: &Headers, mtu: u32) {
    if !matches!(headers.transport, Transport::Tcp { is_control: true, .. }) {
        return;
    }
    let mut changed = BytesMut::from(std::mem::take(packet));
    clamp_mss(&mut changed, mtu);
    *packet = changed.freeze();
}
