//! Bytes both ways between a TCP connection and a stream, until both directions have ended.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;

/// Bytes that are copied at a time, each way. A connection costs twice that.
const PIECE: usize = 16 << 10;

/// How long a TCP connection may be silent before the system asks whether the other end lives: a
/// program that vanished without a word shall not hold its stream for ever.
const SILENCE: std::time::Duration = std::time::Duration::from_secs(120);

/// Something around a TCP connection.
pub trait Socket: AsyncRead + AsyncWrite + Unpin {
    /// The connection.
    fn tcp(&self) -> &TcpStream;
}

impl Socket for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

/// As interactive traffic wants it.
pub fn tune(socket: &TcpStream) {
    // Neither is worth failing for.
    let _ = socket.set_nodelay(true);
    let keepalive = socket2::TcpKeepalive::new().with_time(SILENCE).with_interval(SILENCE / 8);
    let _ = socket2::SockRef::from(socket).set_tcp_keepalive(&keepalive);
}

/// Copies both ways. An end is passed on as an end, and a break as a break: what was cut must not
/// look complete to whoever reads until the end.
///
/// # Errors
/// What broke it.
pub async fn relay(
    mut socket: impl Socket,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
) -> io::Result<(u64, u64)> {
    let result = copy_bidirectional_with_sizes(&mut socket, &mut stream, PIECE, PIECE).await;
    if result.is_err() {
        let _ = socket2::SockRef::from(socket.tcp()).set_linger(Some(std::time::Duration::ZERO));
    }
    result
}
