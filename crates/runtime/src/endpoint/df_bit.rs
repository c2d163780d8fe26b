//! The "don't fragment" bit. It is set on all packets except those that exceed the path MTU and cannot be made
//! smaller (RFC 9260, 6.9).

use tokio::net::UdpSocket;

/// Allows the network to fragment packets until it is dropped. Works only over IPv4 on Linux: other systems keep the
/// bit or have none, and with IPv6 only the sending host may fragment, which does not know the required size.
pub struct FragmentationAllowed<'a> {
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nothing is done there"))]
    socket: &'a UdpSocket,
}

impl<'a> FragmentationAllowed<'a> {
    /// Allows fragmentation from now on.
    pub fn new(socket: &'a UdpSocket) -> Self {
        set(socket, true);
        Self { socket }
    }
}

impl Drop for FragmentationAllowed<'_> {
    fn drop(&mut self) {
        set(self.socket, false);
    }
}

#[cfg(target_os = "linux")]
fn set(socket: &UdpSocket, cut: bool) {
    use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};

    // As in quinn-udp: PROBE sets the bit and ignores ICMP, so that only the interface's MTU limits the size.
    let how = if cut { Ipv4PathMtuDiscovery::DONT } else { Ipv4PathMtuDiscovery::PROBE };
    // If the option cannot be set, the packet is lost, as it would be without this call.
    let _ = set_ip_mtu_discover(socket, how);
}

#[cfg(not(target_os = "linux"))]
const fn set(_: &UdpSocket, _: bool) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::net::sockopt::{Ipv4PathMtuDiscovery, ip_mtu_discover};

    use super::*;
    use crate::endpoint::socket::{BindAddress, Socket};

    #[tokio::test]
    async fn the_bit_is_set_but_while_something_has_to_be_cut() {
        let local = BindAddress::of(([127, 0, 0, 1], 0).into());
        let socket = Socket::bind(&local).expect("a socket");
        let io = socket.io().expect("open");
        let now = || ip_mtu_discover(io).expect("an option of every socket");
        assert_eq!(now(), Ipv4PathMtuDiscovery::PROBE);
        let fragmentation = FragmentationAllowed::new(io);
        assert_eq!(now(), Ipv4PathMtuDiscovery::DONT);
        drop(fragmentation);
        assert_eq!(now(), Ipv4PathMtuDiscovery::PROBE);
    }
}
