//! Classification of send errors.

use std::io;

use super::batch::Batch;

/// Repeats a call that failed. While ICMP messages are watched, the system reports each of them once, as an error of
/// the next call on the socket, regardless of its destination. The repeated call returns its own error.
pub fn despite_queued_errors(mut call: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    const ATTEMPTS: usize = 4;
    let mut result = call();
    for _ in 1..ATTEMPTS {
        match &result {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => result = call(),
            _ => break,
        }
    }
    result
}

/// Linux reports a missing source address as an invalid argument.
pub fn without_source(error: io::Error, batch: &Batch) -> io::Error {
    let gone = batch.source().is_some() && error.kind() == io::ErrorKind::InvalidInput;
    if gone { io::ErrorKind::AddrNotAvailable.into() } else { error }
}

/// Linux's error number of "no such device": the interface of a socket has been removed.
const NO_DEVICE: i32 = 19;

/// Whether a send error means that the interface cannot carry datagrams of that length (EMSGSIZE).
pub fn is_too_long(error: &io::Error) -> bool {
    const TOO_LONG: i32 = if cfg!(windows) {
        10_040
    } else if cfg!(any(target_os = "linux", target_os = "android")) {
        90
    } else {
        40
    };
    error.raw_os_error() == Some(TOO_LONG)
}

/// Whether a send error means that no datagram can be sent to that destination for now.
pub fn is_unreachable(error: &io::Error) -> bool {
    let no_device = cfg!(any(target_os = "linux", target_os = "android"))
        && error.raw_os_error() == Some(NO_DEVICE);
    let gone = matches!(
        error.kind(),
        io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::AddrNotAvailable
    );
    gone || no_device
}
