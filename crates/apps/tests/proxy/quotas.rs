//! Several keys at one exit: no key can take resources that another one needs.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ropewalk_apps::mux::{Connection, Limits, OpenError, Role, Stream, pair};
use ropewalk_apps::proxy::exit::ExitPolicy;
use ropewalk_apps::proxy::exit::{Client, Exit, ExitLimits, PermissionsOf, Resolver};
use ropewalk_apps::proxy::{Notice, Target};
use ropewalk_runtime::seal::{PublicKey, SecretKey};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::testbed::{NoticeLog, anywhere, echo_server, notice_log};

/// An exit with small totals for two keys, and a name server that never answers.
struct SmallExit {
    exit: Exit,
    notices: NoticeLog,
    _name_server: UdpSocket,
}

const SMALL: ExitLimits =
    ExitLimits { connections: 40, dials: 8, lookups: 4, buffered_bytes: 1 << 20 };

impl SmallExit {
    async fn new() -> Self {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let at = server.local_addr().unwrap();
        let resolver = Resolver::with_name_servers(&[at]).unwrap();
        let (notify, notices) = notice_log();
        let exit = Exit::new(anywhere(), SMALL, resolver, notify);
        exit.expect_keys(2);
        Self { exit, notices, _name_server: server }
    }

    /// A near end with this key.
    fn connect(&self, key: PublicKey) -> Connection {
        let (near, far) = pair(256, 1300, 64);
        let far = Connection::start(far, Role::Acceptor, Limits::default());
        let (exit, client) = (self.exit.clone(), Client { key: Some(key), ..Client::default() });
        tokio::spawn(async move { exit.serve(client, far).await });
        Connection::start(near, Role::Connector, Limits::default())
    }
}

fn key() -> PublicKey {
    SecretKey::generate().expect("random numbers").public()
}

async fn open(connection: &Connection, target: &str) -> Stream {
    let target = Target::parse(target, None).unwrap();
    connection.open(target.encode()).await.unwrap()
}

/// Opens a stream, and has bytes echoed on it.
async fn echoes(connection: &Connection, target: &str) -> bool {
    let work = async {
        let stream = open(connection, target).await;
        stream.opened().await.ok()?;
        Some(echoes_on(stream).await)
    };
    timeout(Duration::from_secs(5), work).await.ok().flatten() == Some(true)
}

/// Has bytes echoed on an open stream.
async fn echoes_on(mut stream: Stream) -> bool {
    let work = async {
        stream.write_all(b"here").await.ok()?;
        let mut back = [0; 4];
        stream.read_exact(&mut back).await.ok()?;
        Some(back == *b"here")
    };
    timeout(Duration::from_secs(5), work).await.ok().flatten() == Some(true)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_holds_all_connections_it_can_get_leaves_others_theirs() {
    let server = echo_server().await.to_string();
    let exit = SmallExit::new().await;
    let (greedy, other) = (key(), key());
    // Several near ends with one key get no more than a single one.
    let near_ends: Vec<_> = (0..3).map(|_| exit.connect(greedy)).collect();
    let mut held = Vec::new();
    for near_end in &near_ends {
        for _ in 0..20 {
            let stream = open(near_end, &server).await;
            if stream.opened().await.is_ok() {
                held.push(stream);
            }
        }
    }
    assert_eq!(held.len(), 20 / 2 + 20 / 2, "its own part, and half of the shared rest");
    let other = exit.connect(other);
    for _ in 0..5 {
        assert!(echoes(&other, &server).await);
    }
    let notices = exit.notices.lock().unwrap();
    assert!(notices.iter().any(|notice| matches!(notice, Notice::LimitReached(client, _)
        if client.key == Some(greedy))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_asks_for_names_without_an_answer_delays_nobody_else() {
    let server = echo_server().await;
    let exit = SmallExit::new().await;
    let greedy = exit.connect(key());
    let mut waiting = Vec::new();
    for i in 0..60 {
        waiting.push(open(&greedy, &format!("name-{i}.invalid.example:80")).await);
    }
    // The stalled lookups are running before the other key connects.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let other = exit.connect(key());
    for _ in 0..5 {
        assert!(echoes(&other, &format!("localhost:{}", server.port())).await, "by name");
        assert!(echoes(&other, &server.to_string()).await, "by address");
    }
    // Abandoned streams end their lookups, and then the greedy key is served too.
    drop(waiting);
    let name = format!("localhost:{}", server.port());
    assert!(echoes_on(open_once_there_is_room(&greedy, &name).await).await);
}

/// An open stream. Earlier connections count until the exit has noticed their end.
async fn open_once_there_is_room(near_end: &Connection, target: &str) -> Stream {
    for _ in 0..100 {
        let stream = open(near_end, target).await;
        if stream.opened().await.is_ok() {
            return stream;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no room after five seconds");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_reaches_only_its_own_targets_and_only_as_long_as_it_is_listed() {
    let (one, two) = (echo_server().await, echo_server().await);
    let listed = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let permissions: PermissionsOf = {
        let listed = listed.clone();
        Arc::new(move |_| {
            let targets = vec![format!("localhost:{}", one.port()).parse().unwrap()];
            let listed = listed.load(std::sync::atomic::Ordering::SeqCst);
            listed.then_some(ExitPolicy { targets, max_connections: Some(2) })
        })
    };
    let mut exit = SmallExit::new().await;
    exit.exit = exit.exit.with_permissions(permissions);
    let near_end = exit.connect(key());
    let name = format!("localhost:{}", one.port());
    assert!(echoes(&near_end, &name).await);
    for elsewhere in [format!("localhost:{}", two.port()), one.to_string(), two.to_string()] {
        assert!(!echoes(&near_end, &elsewhere).await, "{elsewhere}");
    }
    let held = [
        open_once_there_is_room(&near_end, &name).await,
        open_once_there_is_room(&near_end, &name).await,
    ];
    assert!(!echoes(&near_end, &name).await, "two connections are all that this key may have");
    drop(held);
    listed.store(false, std::sync::atomic::Ordering::SeqCst);
    assert!(!echoes(&near_end, &name).await, "taken off the list");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_a_peer_reaches_a_terminal_unescaped() {
    let exit = SmallExit::new().await;
    let near_end = exit.connect(key());
    let texts = [b"\0\x50\x03\x1b]0;owned\x07.example".as_slice(), b"\x1b[2J", b"\0\x50\x03a\nb"];
    for text in texts {
        let stream = near_end.open(Bytes::copy_from_slice(text)).await.unwrap();
        let Err(OpenError::Refused(refusal)) = stream.opened().await.map_err(OpenError::Refused)
        else {
            panic!("{text:?} was taken")
        };
        let shown = ropewalk_apps::proxy::Reason::from(refusal).to_string();
        assert!(!shown.contains(char::is_control), "{shown:?}");
    }
    let notices = exit.notices.lock().unwrap();
    let shown: Vec<_> = notices.iter().map(ToString::to_string).collect();
    assert_eq!(shown.len(), texts.len(), "{shown:?}");
    assert!(!shown.iter().any(|text| text.contains(char::is_control)), "{shown:?}");
    assert!(shown[0].contains("owned"), "{shown:?}");
}
