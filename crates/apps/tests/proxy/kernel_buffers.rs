//! Memory in the kernel for the exit's connections to destinations.

use std::fs;
use std::time::Duration;

use ropewalk_apps::mux::{Connection, Limits, Role, Stream, pair};
use ropewalk_apps::proxy::Target;
use ropewalk_apps::proxy::exit::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::testbed::{anywhere, exit, notice_log};

/// Bytes that are transferred before the reader stops. By default, the kernel's buffers grow meanwhile.
const CARRIED: usize = 64 << 20;

/// Bytes in the kernel's send queue of the exit's connection to this port.
fn queued(port: u16) -> u64 {
    let table = fs::read_to_string("/proc/net/tcp").expect("the connections");
    let remote = format!(":{port:04X}");
    let lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut queues = lines.filter(|fields| fields[2].ends_with(&remote)).map(|fields| {
        let (sent, _received) = fields[4].split_once(':').expect("two queues");
        u64::from_str_radix(sent, 16).expect("a number")
    });
    queues.next().expect("a connection")
}

/// The bytes in this queue, once they have not changed for half a second.
async fn full_queue(port: u16) -> u64 {
    let (mut bytes, mut unchanged) = (queued(port), 0);
    while unchanged < 10 {
        sleep(Duration::from_millis(50)).await;
        let before = std::mem::replace(&mut bytes, queued(port));
        unchanged = if bytes == before { unchanged + 1 } else { 0 };
    }
    bytes
}

/// A stream of a near end, the other end of the connection that the exit has opened for it, and its port.
async fn connect() -> (Connection, Stream, TcpStream, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let exit = exit(anywhere(), notice_log().0);
    let (near, far) = pair(256, 1300, 64);
    let far = Connection::start(far, Role::Acceptor, Limits::default());
    tokio::spawn(async move { exit.serve(Client::default(), far).await });
    let near = Connection::start(near, Role::Connector, Limits::default());
    let target = Target::parse(&address.to_string(), None).expect("a target");
    let stream = near.open(target.encode()).await.expect("a stream");
    let (socket, _) = listener.accept().await.expect("a connection");
    (near, stream, socket, address.port())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_that_stops_reading_takes_little_memory_of_the_kernel() {
    let (_near, mut stream, mut socket, port) = connect().await;
    let writing =
        tokio::spawn(async move { while stream.write_all(&[0; 1 << 14]).await.is_ok() {} });
    let stopped = async {
        let mut carried = vec![0; CARRIED];
        socket.read_exact(&mut carried).await.expect("data");
        full_queue(port).await
    };
    let unsent = timeout(Duration::from_secs(60), stopped).await.expect("it stops");
    assert!((1..=112 << 10).contains(&unsent), "{unsent} B");
    writing.abort();
}
