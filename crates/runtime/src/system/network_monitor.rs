//! Detects changes of the interfaces, addresses, routes, forwarding and packet filter of this machine, which the
//! kernel reports by netlink messages (rtnetlink(7)).

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::task::{Context, Poll, ready};

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Groups of messages (`rtnetlink.h`). Group n is bit n - 1 of the mask.
const LINK: u32 = 1 << 0;
const IPV4_ADDRESS: u32 = 1 << 4;
const IPV4_ROUTE: u32 = 1 << 6;
const IPV6_ADDRESS: u32 = 1 << 8;
const IPV6_ROUTE: u32 = 1 << 10;
/// Values below `/proc/sys/net/ipv4/conf` and `/proc/sys/net/ipv6/conf`, including forwarding.
const IPV4_VALUES: u32 = 1 << 23;
const IPV6_VALUES: u32 = 1 << 24;

/// Rules of policy routing.
const IPV4_RULE: u32 = 1 << 7;
const IPV6_RULE: u32 = 1 << 18;
/// Changes of nftables (`nfnetlink.h`).
const NFTABLES: u32 = 1 << 6;

/// Maximum number of messages read at a time.
const READS: usize = 1024;

/// The changes that a [`NetworkMonitor`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Interfaces and their addresses.
    Interfaces,
    /// Interfaces and their forwarding, addresses and routes. The kernel does not report IPv4 routes that end with
    /// their interface or address.
    Network,
    /// The rules of policy routing.
    Rules,
    /// Tables, chains and rules of nftables.
    Filter,
}

impl Changes {
    const fn groups(self) -> u32 {
        match self {
            Self::Interfaces => LINK | IPV4_ADDRESS | IPV6_ADDRESS,
            Self::Network => {
                Self::Interfaces.groups() | IPV4_ROUTE | IPV6_ROUTE | IPV4_VALUES | IPV6_VALUES
            }
            Self::Rules => IPV4_RULE | IPV6_RULE,
            Self::Filter => NFTABLES,
        }
    }

    const fn protocol(self) -> SockProtocol {
        match self {
            Self::Filter => SockProtocol::NetlinkNetFilter,
            _ => SockProtocol::NetlinkRoute,
        }
    }
}

/// Waits for changes in the network namespace of the thread that opened it. At most one task may wait.
#[derive(Debug)]
pub struct NetworkMonitor {
    socket: AsyncFd<OwnedFd>,
}

impl NetworkMonitor {
    /// Starts to report all changes.
    ///
    /// # Errors
    /// The error of the system, which may forbid such sockets.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open(changes: Changes) -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, changes.protocol())?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, changes.groups()))?;
        #[expect(deprecated, reason = "sound for `OwnedFd`, and what replaces it is unsafe")]
        let socket = AsyncFd::with_interest(socket, Interest::READABLE)?;
        Ok(Self { socket })
    }

    /// Waits until something may have changed since the last call.
    ///
    /// # Errors
    /// The socket is unusable.
    pub async fn changed(&self) -> io::Result<()> {
        poll_fn(|context| self.poll_changed(context)).await
    }

    /// Whether something may have changed since the last call. Registers the task to be woken by
    /// the next change.
    ///
    /// # Errors
    /// The socket is unusable.
    pub fn poll_changed(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.socket.poll_read_ready(context))?;
            let (mut count, mut is_empty) = (0, false);
            while count < READS && !is_empty {
                is_empty = !self.read()?;
                count += usize::from(!is_empty);
            }
            if is_empty {
                ready.clear_ready();
            }
            if count > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Reads one message. Returns whether there was one.
    fn read(&self) -> io::Result<bool> {
        // Only the presence of a message matters. The rest of a longer one is dropped.
        let mut buffer = [0; 16];
        match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(_) => Ok(true),
            // netlink(7): the kernel had to drop messages, so something has changed as well.
            Err(nix::Error::ENOBUFS | nix::Error::EINTR) => Ok(true),
            Err(nix::Error::EWOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
