//! Relays bytes between a TCP connection and a stream, until both directions have ended.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;

/// Bytes that are copied at a time in each direction. A connection needs two such buffers.
const BUFFER_SIZE: usize = 16 << 10;

/// Idle time of a TCP connection before keepalive probes start. A program that vanished must not occupy its stream
/// forever.
const IDLE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(120);

/// Unsent bytes in the kernel's send buffer before this end waits. Without it, the buffer grows to several megabytes
/// on a fast connection, and stays full if the reader then stops. Bytes in flight do not count, so the rate is not
/// limited.
#[cfg(target_os = "linux")]
const UNSENT_LIMIT: u32 = 64 << 10;

/// A wrapper of a TCP connection.
pub trait Socket: AsyncRead + AsyncWrite + Unpin {
    /// The TCP connection.
    fn tcp(&self) -> &TcpStream;
}

impl Socket for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

/// Sets the socket options for interactive traffic and for little memory in the kernel.
pub fn tune(socket: &TcpStream) {
    // All are optional, so errors are ignored.
    let _ = socket.set_nodelay(true);
    // With the Nagle algorithm, it would delay segments of 64 KiB, as on loopback.
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(socket).set_tcp_notsent_lowat(UNSENT_LIMIT);
    let keepalive =
        socket2::TcpKeepalive::new().with_time(IDLE_TIMEOUT).with_interval(IDLE_TIMEOUT / 8);
    let _ = socket2::SockRef::from(socket).set_tcp_keepalive(&keepalive);
}

/// Copies in both directions. An orderly end is forwarded as such, and a reset as a reset: truncated data must not
/// look complete to its reader.
///
/// # Errors
/// The error that ended the connection.
pub async fn relay(
    mut socket: impl Socket,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
) -> io::Result<(u64, u64)> {
    let result =
        copy_bidirectional_with_sizes(&mut socket, &mut stream, BUFFER_SIZE, BUFFER_SIZE).await;
    if result.is_err() {
        let _ = socket2::SockRef::from(socket.tcp()).set_linger(Some(std::time::Duration::ZERO));
    }
    result
}
