//! Over sealed associations between real sockets.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ropewalk_apps::mux::Limits;
use ropewalk_apps::proxy::client::ConnectTimeouts;
use ropewalk_apps::proxy::live::{self, Live};
use ropewalk_apps::whereabouts::{Finder, Whereabouts};
use ropewalk_runtime::endpoint::{Endpoint, Options};
use ropewalk_runtime::seal::{Allowed, SecretKey};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::testbed::{anywhere, echo_server, exit, near, notice_log, socks_connect};

fn loopback(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

/// An exit at these addresses, and how to reach it.
struct Pair {
    exit_key: SecretKey,
    near_key: SecretKey,
}

impl Pair {
    fn new() -> Self {
        let [exit_key, near_key] = [(); 2].map(|()| SecretKey::generate().expect("random numbers"));
        Self { exit_key, near_key }
    }

    fn exit(&self, at: &[SocketAddr]) -> (Vec<SocketAddr>, JoinHandle<()>) {
        let allowed = Allowed::Keys([self.near_key.public()].into());
        let mut options = Options::listening(at).sealed(self.exit_key.clone(), allowed);
        options.transport = live::transport();
        let endpoint = Endpoint::open(options).expect("free ports");
        let at = endpoint.locals().to_vec();
        let exit = exit(anywhere(), notice_log().0);
        let names: live::NameOf = Arc::new(|_| None);
        let task = tokio::spawn(async move {
            live::serve(&endpoint, &exit, Limits::default(), &names, &notice_log().0).await;
        });
        (at, task)
    }

    fn connector(&self, to: &[SocketAddr]) -> Live {
        self.connector_by(to, None)
    }

    fn connector_by(&self, to: &[SocketAddr], finder: Option<Finder>) -> Live {
        let allowed = Allowed::Keys([self.exit_key.public()].into());
        let locals = vec![loopback(0); to.len()];
        let mut options = Options::connecting(&locals).sealed(self.near_key.clone(), allowed);
        options.transport = live::transport();
        let place = Arc::new(Whereabouts::new(to.to_vec(), finder));
        Live { options, key: Some(self.exit_key.public()), place, limits: Limits::default() }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_connections_at_once_over_two_paths_and_none_is_stuck() {
    let server = echo_server().await;
    let pair = Pair::new();
    let (at, _exit) = pair.exit(&[loopback(0), loopback(0)]);
    let ports = near(pair.connector(&at), None, server, ConnectTimeouts::default()).await;
    let mut tasks = JoinSet::new();
    for i in 0..200usize {
        tasks.spawn(async move {
            let (mut socket, code) = socks_connect(ports.socks, server.port()).await;
            assert_eq!(code, 0, "connection {i}");
            let sent: Vec<u8> = (0..i * 500 + 1).map(|k| (k * 13 + i) as u8).collect();
            let (mut read, mut write) = socket.split();
            let writer = async {
                write.write_all(&sent).await.unwrap();
                write.shutdown().await.unwrap();
            };
            let mut back = Vec::new();
            let (_, done) = tokio::join!(writer, read.read_to_end(&mut back));
            done.unwrap();
            assert!(back == sent, "connection {i}: {} of {} bytes", back.len(), sent.len());
        });
    }
    let all = async { while tasks.join_next().await.map(Result::unwrap).is_some() {} };
    timeout(Duration::from_secs(90), all).await.expect("none is stuck");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exit_that_ends_in_order_is_noticed_at_once_and_found_again_when_it_is_back() {
    let server = echo_server().await;
    let pair = Pair::new();
    let (at, exit) = pair.exit(&[loopback(0)]);
    let ports = near(pair.connector(&at), None, server, ConnectTimeouts::default()).await;
    let (mut open, code) = socks_connect(ports.socks, server.port()).await;
    assert_eq!(code, 0);
    exit.abort();
    let end = timeout(Duration::from_secs(10), open.read(&mut [0; 9])).await.expect("noticed");
    assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    let (again, _exit) = loop {
        // The port is free when the endpoint's last association has ended.
        let Ok(socket) = std::net::UdpSocket::bind(at[0]) else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        drop(socket);
        break pair.exit(&at);
    };
    assert_eq!(again, at);
    let (mut socket, code) = socks_connect(ports.socks, server.port()).await;
    assert_eq!(code, 0);
    socket.write_all(b"back").await.unwrap();
    let mut back = [0; 4];
    socket.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"back");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exit_that_moves_is_found_by_its_name() {
    let server = echo_server().await;
    let pair = Pair::new();
    let (at, exit) = pair.exit(&[loopback(0)]);
    let named = Arc::new(Mutex::new(at.clone()));
    let name = named.clone();
    let finder = Finder(Arc::new(move || Some(name.lock().unwrap().clone())));
    let soon = ConnectTimeouts { attempt: Duration::from_secs(1), ..ConnectTimeouts::default() };
    let ports = near(pair.connector_by(&at, Some(finder)), None, server, soon).await;
    let (mut open, code) = socks_connect(ports.socks, server.port()).await;
    assert_eq!(code, 0);
    exit.abort();
    let end = timeout(Duration::from_secs(10), open.read(&mut [0; 9])).await.expect("noticed");
    assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    let (elsewhere, _exit) = pair.exit(&[([127, 0, 0, 2], 0).into()]);
    *named.lock().unwrap() = elsewhere;
    let (mut socket, code) = socks_connect(ports.socks, server.port()).await;
    assert_eq!(code, 0);
    socket.write_all(b"back").await.unwrap();
    let mut back = [0; 4];
    socket.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"back");
}
