//! Sends packets in batches with a given TOS byte or traffic class: SCTP packets over IP, and datagrams with a DSCP.
//! There is no segmentation offload, but one call takes several packets (`sendmmsg`).

#[cfg(target_os = "linux")]
pub use self::linux::send;

/// Whether this system supports it.
pub const AVAILABLE: bool = cfg!(target_os = "linux");

/// Maximum number of packets per call.
pub const PACKETS: usize = 32;

/// Unsupported on this system.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn send<S>(_: &S, _: &super::batch::Batch, _: &[u8]) -> std::io::Result<usize> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, IoSlice};
    use std::net::IpAddr;
    use std::os::fd::{AsFd, AsRawFd as _};

    use nix::cmsg_space;
    use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
    use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg};

    use crate::endpoint::batch::Batch;

    /// Sends `packets`, all or the last packets of a batch. Returns how many bytes the system has accepted: at least
    /// one packet.
    ///
    /// # Errors
    /// The error of the system for the first packet.
    pub fn send(socket: &impl AsFd, batch: &Batch, packets: &[u8]) -> io::Result<usize> {
        let slices: Vec<[IoSlice<'_>; 1]> =
            packets.chunks(batch.segment()).map(|one| [IoSlice::new(one)]).collect();
        let to = vec![Some(SockaddrStorage::from(batch.destination())); slices.len()];
        let (v4, v6) = source(batch.source());
        let tos = batch.dscp().field() | batch.ecn() as u8;
        let class = i32::from(tos);
        // The kernel reads the entire buffer, so it has exactly the size of the control messages.
        let (controls, space) = match (batch.destination().is_ipv4(), &v4, &v6) {
            (true, Some(from), _) => (
                vec![ControlMessage::Ipv4Tos(&tos), ControlMessage::Ipv4PacketInfo(from)],
                cmsg_space!(u8, in_pktinfo),
            ),
            (true, None, _) => (vec![ControlMessage::Ipv4Tos(&tos)], cmsg_space!(u8)),
            (false, _, Some(from)) => (
                vec![ControlMessage::Ipv6TClass(&class), ControlMessage::Ipv6PacketInfo(from)],
                cmsg_space!(i32, in6_pktinfo),
            ),
            (false, _, None) => (vec![ControlMessage::Ipv6TClass(&class)], cmsg_space!(i32)),
        };
        let mut headers = MultiHeaders::preallocate(slices.len(), Some(space));
        let fd = socket.as_fd().as_raw_fd();
        let sent = sendmmsg(fd, &mut headers, slices.iter(), to, controls, MsgFlags::MSG_DONTWAIT)?;
        Ok((sent.count() * batch.segment()).min(packets.len()))
    }

    /// The local address to send from, in the kernel's representation.
    fn source(ip: Option<IpAddr>) -> (Option<in_pktinfo>, Option<in6_pktinfo>) {
        match ip {
            None => (None, None),
            Some(IpAddr::V4(ip)) => {
                let ipi_spec_dst = in_addr { s_addr: u32::from_ne_bytes(ip.octets()) };
                (
                    Some(in_pktinfo {
                        ipi_ifindex: 0,
                        ipi_spec_dst,
                        ipi_addr: in_addr { s_addr: 0 },
                    }),
                    None,
                )
            }
            Some(IpAddr::V6(ip)) => {
                let ipi6_addr = in6_addr { s6_addr: ip.octets() };
                (None, Some(in6_pktinfo { ipi6_addr, ipi6_ifindex: 0 }))
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{IpAddr, SocketAddr, UdpSocket};
    use std::time::Duration;

    use ropewalk_base::Ecn;

    use super::*;
    use crate::endpoint::batch::Batch;

    /// A UDP socket accepts the same call, and needs no privilege.
    #[test]
    fn every_packet_of_a_batch_arrives_with_its_bytes_and_from_the_named_address() {
        for (near, far, source) in [
            ("127.0.0.1:0", "127.0.0.1:0", None),
            ("0.0.0.0:0", "127.0.0.1:0", Some("127.0.0.7")),
            ("[::1]:0", "[::1]:0", Some("::1")),
            ("[::]:0", "[::1]:0", None),
        ] {
            let bind = |address: &str| UdpSocket::bind(address).expect("a free port");
            let (near, far) = (bind(near), bind(far));
            far.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
            let to = far.local_addr().expect("bound");
            let mut batch = Batch::new(to);
            batch.set_source(source.map(|ip| ip.parse().expect("an address")));
            batch.set_ecn(Ecn::Ect0);
            for number in 0..PACKETS as u8 {
                let length = if usize::from(number) + 1 == PACKETS { 5 } else { 100 };
                let _ = batch.push(|out| out.extend(vec![number; length]));
            }
            let taken = send(&near, &batch, batch.bytes()).expect("room");
            assert_eq!(taken, batch.bytes().len());
            let mut bytes = [0; 200];
            for number in 0..PACKETS as u8 {
                let (length, from) = far.recv_from(&mut bytes).expect("a packet");
                let expected = if usize::from(number) + 1 == PACKETS { 5 } else { 100 };
                assert_eq!((length, bytes[0]), (expected, number));
                let named: Option<IpAddr> = source.map(|ip| ip.parse().expect("an address"));
                let local = near.local_addr().expect("bound").ip();
                let usual = if local.is_unspecified() { to.ip() } else { local };
                assert_eq!(from.ip(), named.unwrap_or(usual));
            }
        }
    }

    #[test]
    fn a_packet_that_the_system_refuses_is_an_error() {
        let near = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let to: SocketAddr = "127.0.0.1:9".parse().expect("an address");
        let mut batch = Batch::new(to);
        batch.set_source(Some("192.0.2.77".parse().expect("an address")));
        let _ = batch.push(|out| out.extend([1; 9]));
        assert!(send(&near, &batch, batch.bytes()).is_err(), "the address is not ours");
    }
}
