//! The error queue of a socket on Linux: ICMP messages with the packets that they quote (`IP_RECVERR`).

use std::fmt;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use nix::errno::Errno;
use nix::libc::{SO_EE_ORIGIN_ICMP, SO_EE_ORIGIN_ICMP6, sock_extended_err};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::raw::Carrier;
use super::refusals::{QuotedInit, Refusal};

/// Bytes of a quoted packet that are read. Its initiate tag ends at byte 20.
const QUOTED: usize = 64;

/// Maximum number of messages taken at a time. The rest wait for the next turn, within the receive buffer of the
/// socket.
const TAKEN_PER_TURN: usize = 16;

/// Types and codes of ICMP (RFC 792) and ICMPv6 (RFC 4443).
const UNREACHABLE: u8 = 3;
const PROTOCOL_UNREACHABLE: u8 = 2;
const PORT_UNREACHABLE: u8 = 3;
const UNREACHABLE_V6: u8 = 1;
const PORT_UNREACHABLE_V6: u8 = 4;
const PARAMETER_PROBLEM_V6: u8 = 4;
const UNRECOGNISED_NEXT_HEADER_V6: u8 = 1;

/// Waits until the queue has something.
type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The error queue of a socket.
pub struct ErrorQueue {
    /// A duplicate of the socket: the original is registered for data only.
    socket: Arc<UdpSocket>,
    wait: Wait,
    /// More messages are queued than one turn takes.
    has_more: bool,
    carrier: Carrier,
}

impl fmt::Debug for ErrorQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ErrorQueue")
    }
}

impl ErrorQueue {
    /// Enables the kernel's error queue of this socket.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open(socket: &UdpSocket, carrier: Carrier) -> io::Result<Self> {
        let duplicate = socket.as_fd().try_clone_to_owned()?;
        let duplicate = Arc::new(UdpSocket::from_std(duplicate.into())?);
        queue_errors(socket, true)?;
        Ok(Self { wait: wait(duplicate.clone()), socket: duplicate, has_more: false, carrier })
    }

    /// The descriptor of the duplicate.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Disables the kernel's error queue of this socket and discards queued errors.
    pub fn close(self, socket: &UdpSocket) {
        // If this fails, errors continue to interrupt calls, which are repeated.
        let _ = queue_errors(socket, false);
    }

    /// Takes messages from the queue, up to the limit of one turn. Pending if it is empty.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Vec<Refusal>> {
        loop {
            if !self.has_more {
                ready!(self.wait.as_mut().poll(context));
                self.wait = wait(self.socket.clone());
            }
            let refusals = self.take_some();
            if self.has_more || !refusals.is_empty() {
                return Poll::Ready(refusals);
            }
        }
    }

    fn take_some(&mut self) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        self.has_more = true;
        for _ in 0..TAKEN_PER_TURN {
            match self.take() {
                Ok(refusal) => refusals.extend(refusal),
                Err(Errno::EINTR) => {}
                // The queue is empty.
                Err(_) => {
                    self.has_more = false;
                    break;
                }
            }
        }
        refusals
    }

    /// Takes one message. `Ok(None)` if it is not the refusal of an INIT.
    fn take(&self) -> nix::Result<Option<Refusal>> {
        let (mut quoted, mut control) = ([0; QUOTED], [0; 512]);
        let (bytes, remote, error) = {
            let mut slices = [IoSliceMut::new(&mut quoted)];
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let fd = self.socket.as_raw_fd();
            let message = recvmsg::<SockaddrStorage>(fd, &mut slices, Some(&mut control), flags)?;
            let error = message.cmsgs().ok().and_then(|mut all| all.find_map(extended_error));
            (message.bytes, message.address, error)
        };
        let refused = error.is_some_and(|error| is_refusal(&error, self.carrier));
        let remote = remote.filter(|_| refused).and_then(address);
        let init = QuotedInit::read(quoted.get(..bytes).unwrap_or_default());
        Ok(remote.zip(init).map(|(remote, init)| Refusal { remote, init }))
    }
}

fn wait(socket: Arc<UdpSocket>) -> Wait {
    Box::pin(async move {
        if socket.ready(Interest::ERROR).await.is_ok() {
            // The next wait lasts until something new is queued.
            let taken = || io::Result::<()>::Err(io::ErrorKind::WouldBlock.into());
            let _ = socket.try_io(Interest::ERROR, taken);
        }
    })
}

fn queue_errors(socket: &UdpSocket, on: bool) -> io::Result<()> {
    if socket.local_addr()?.is_ipv6() {
        setsockopt(socket, sockopt::Ipv6RecvErr, &on)?;
        // An IPv6 socket may also carry IPv4; an IPv6-only socket accepts the option as well.
        let _ = setsockopt(socket, sockopt::Ipv4RecvErr, &on);
        return Ok(());
    }
    Ok(setsockopt(socket, sockopt::Ipv4RecvErr, &on)?)
}

fn extended_error(message: ControlMessageOwned) -> Option<sock_extended_err> {
    match message {
        ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _) => {
            Some(error)
        }
        _ => None,
    }
}

/// Whether an error says that the destination does not receive such packets.
///
/// RFC 9260, 10 (ICMP3): over IP alone, an unreachable port is not a refusal, because SCTP sends an ABORT
/// instead.
const fn is_refusal(error: &sock_extended_err, carrier: Carrier) -> bool {
    let over_udp = matches!(carrier, Carrier::Udp);
    match (error.ee_origin, error.ee_type, error.ee_code) {
        (SO_EE_ORIGIN_ICMP, UNREACHABLE, PROTOCOL_UNREACHABLE)
        | (SO_EE_ORIGIN_ICMP6, PARAMETER_PROBLEM_V6, UNRECOGNISED_NEXT_HEADER_V6) => true,
        (SO_EE_ORIGIN_ICMP, UNREACHABLE, PORT_UNREACHABLE)
        | (SO_EE_ORIGIN_ICMP6, UNREACHABLE_V6, PORT_UNREACHABLE_V6) => over_udp,
        _ => false,
    }
}

fn address(storage: SockaddrStorage) -> Option<SocketAddr> {
    if let Some(four) = storage.as_sockaddr_in() {
        return Some(SocketAddr::V4((*four).into()));
    }
    storage.as_sockaddr_in6().map(|six| SocketAddr::V6((*six).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_about_a_missing_receiver_are_refusals() {
        let error = |ee_origin, ee_type, ee_code| sock_extended_err {
            ee_errno: 111,
            ee_origin,
            ee_type,
            ee_code,
            ee_pad: 0,
            ee_info: 0,
            ee_data: 0,
        };
        // Expected result over UDP, and over IP alone.
        for (origin, kind, code, expected) in [
            (SO_EE_ORIGIN_ICMP, 3, 3, [true, false]),
            (SO_EE_ORIGIN_ICMP, 3, 2, [true, true]),
            (SO_EE_ORIGIN_ICMP6, 1, 4, [true, false]),
            (SO_EE_ORIGIN_ICMP6, 4, 1, [true, true]),
            // No route, fragmentation needed, time exceeded, no route to host.
            (SO_EE_ORIGIN_ICMP, 3, 0, [false, false]),
            (SO_EE_ORIGIN_ICMP, 3, 1, [false, false]),
            (SO_EE_ORIGIN_ICMP, 3, 4, [false, false]),
            (SO_EE_ORIGIN_ICMP, 11, 0, [false, false]),
            (SO_EE_ORIGIN_ICMP6, 1, 3, [false, false]),
            (SO_EE_ORIGIN_ICMP6, 2, 0, [false, false]),
            // Of this machine.
            (nix::libc::SO_EE_ORIGIN_LOCAL, 3, 3, [false, false]),
        ] {
            let error = error(origin, kind, code);
            let found = [Carrier::Udp, Carrier::Ip].map(|carrier| is_refusal(&error, carrier));
            assert_eq!(found, expected, "{origin} {kind} {code}");
        }
    }
}
