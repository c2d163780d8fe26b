//! Notices changes of the routes, addresses and interfaces of this machine.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Groups of notifications (rtnetlink(7)): links, addresses and routes of IPv4, addresses and routes of IPv6. The system
/// does not tell of IPv4 routes that end with their interface or address.
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;
/// Most notifications that are read at once.
const READS: usize = 1024;

/// Waits for changes of routes, addresses and interfaces.
#[derive(Debug)]
pub struct RouteMonitor {
    socket: AsyncFd<OwnedFd>,
}

impl RouteMonitor {
    /// Tells of all changes from now on.
    ///
    /// # Errors
    /// As the system says.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let protocol = SockProtocol::NetlinkRoute;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUPS))?;
        #[expect(deprecated, reason = "sound for `OwnedFd`, and what replaces it is unsafe")]
        let socket = AsyncFd::with_interest(socket, Interest::READABLE)?;
        Ok(Self { socket })
    }

    /// Waits until something may have changed since the last call.
    ///
    /// # Errors
    /// As the system says.
    pub async fn changed(&self) -> io::Result<()> {
        loop {
            let mut ready = self.socket.readable().await?;
            // The rest of a longer datagram is dropped. If the system had to drop datagrams (ENOBUFS), something has
            // changed as well.
            let mut buffer = [0; 16];
            let read = || recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty());
            let blocked = |result: &nix::Result<usize>| *result == Err(nix::Error::EWOULDBLOCK);
            let read =
                std::iter::repeat_with(read).take(READS).take_while(|it| !blocked(it)).count();
            if read < READS {
                ready.clear_ready();
            }
            if read > 0 {
                return Ok(());
            }
        }
    }
}
