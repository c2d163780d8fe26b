//! A near end, an exit, and servers behind it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ropewalk_apps::mux::{Connection, Limits, Role, pair};
use ropewalk_apps::proxy::client::{
    ConnectTimeouts, Connector, Credentials, EstablishedConnection, ExitConnection, ListenProtocol,
    ProxyClient, Service,
};
use ropewalk_apps::proxy::exit::{Client, Exit, ExitLimits, Policy, Resolver};
use ropewalk_apps::proxy::{Notice, NoticeSink, Target};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// The notices, in order.
pub type NoticeLog = Arc<Mutex<Vec<Notice>>>;

pub fn notice_log() -> (NoticeSink, NoticeLog) {
    let notices = NoticeLog::default();
    let all = notices.clone();
    (Arc::new(move |notice| all.lock().unwrap().push(notice)), notices)
}

/// Serves near ends over pairs of queues; `up` is whether it can be reached.
#[derive(Clone)]
pub struct MemoryConnector {
    pub exit: Exit,
    pub up: Arc<Mutex<bool>>,
    /// The exit's side of the newest connection.
    pub serving: Arc<Mutex<Option<JoinHandle<()>>>>,
    pub silent: watch::Receiver<bool>,
    set_silent: Arc<watch::Sender<bool>>,
    /// Number of requests for an answer from the exit.
    pub asked: Arc<AtomicU32>,
    /// Signals that the exit has stopped.
    pub stopped: Arc<Notify>,
}

impl MemoryConnector {
    /// Makes the paths silent, or usable again.
    pub fn set_silent(&self, silent: bool) {
        self.set_silent.send_replace(silent);
    }

    /// Kills the exit.
    pub fn kill(&self) {
        if let Some(task) = self.serving.lock().unwrap().take() {
            task.abort();
        }
    }
}

impl Connector for MemoryConnector {
    async fn connect(&mut self) -> Result<EstablishedConnection, String> {
        if !*self.up.lock().unwrap() {
            return Err("it is down".into());
        }
        let (near, far) = pair(64, 1300, 16);
        let far = Connection::start(far, Role::Acceptor, Limits::default());
        let exit = self.exit.clone();
        let task = tokio::spawn(async move {
            exit.serve(Client::default(), far).await;
        });
        *self.serving.lock().unwrap() = Some(task);
        let connection = Connection::start(near, Role::Connector, Limits::default());
        let (asked, stopped) = (self.asked.clone(), self.stopped.clone());
        Ok(EstablishedConnection {
            connection,
            description: "1 path".into(),
            silent: self.silent.clone(),
            ask: Box::new(move || _ = asked.fetch_add(1, Ordering::Relaxed)),
            stopped: Box::new(move || Box::pin(async move { stopped.notified().await })),
        })
    }
}

/// Ports of a near end.
pub struct Ports {
    pub socks: SocketAddr,
    pub http: SocketAddr,
    pub forward: SocketAddr,
    pub notices: NoticeLog,
}

/// A near end that reaches its exit by this connector; its forwarded port leads to `target`.
pub async fn near(
    connector: impl Connector,
    credentials: Option<&str>,
    target: SocketAddr,
    timeouts: ConnectTimeouts,
) -> Ports {
    let (notify, notices) = notice_log();
    let mut services = Vec::new();
    let mut ports = Vec::new();
    let target = Target::parse(&target.to_string(), None).unwrap();
    for protocol in [ListenProtocol::Socks, ListenProtocol::Http, ListenProtocol::Forward(target)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        ports.push(listener.local_addr().unwrap());
        services.push(Service { listener, protocol });
    }
    let credentials = credentials.map(|text| Credentials::parse(text).unwrap());
    let exit_connection = ExitConnection::maintain(connector, timeouts, notify.clone());
    let client = ProxyClient::new(exit_connection, credentials, 500, notify);
    tokio::spawn(async move { client.serve(services).await });
    Ports { socks: ports[0], http: ports[1], forward: ports[2], notices }
}

/// Timeouts that are short enough for a test.
pub fn short_timeouts() -> ConnectTimeouts {
    ConnectTimeouts {
        first_pause: Duration::from_millis(50),
        longest_pause: Duration::from_millis(400),
        wait: Duration::from_millis(1500),
        doubt: Duration::from_millis(100),
        grace: Duration::from_millis(300),
        ask: Duration::from_millis(50),
        ..ConnectTimeouts::default()
    }
}

/// An exit with the resolver of this machine.
pub fn exit(policy: Policy, notify: NoticeSink) -> Exit {
    let (resolver, _) = Resolver::system().unwrap();
    Exit::new(policy, ExitLimits { connections: 1000, ..ExitLimits::default() }, resolver, notify)
}

/// An exit to this machine, over queues.
pub fn in_memory(policy: Policy) -> MemoryConnector {
    let exit = exit(policy, notice_log().0);
    let (set_silent, silent) = watch::channel(false);
    let (up, set_silent) = (Arc::new(Mutex::new(true)), Arc::new(set_silent));
    MemoryConnector {
        exit,
        up,
        serving: Arc::default(),
        silent,
        set_silent,
        asked: Arc::default(),
        stopped: Arc::default(),
    }
}

pub fn anywhere() -> Policy {
    Policy { allow_private: true, ..Policy::default() }
}

/// A server that echoes everything, then ends.
pub async fn echo_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = socket.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
            });
        }
    });
    address
}

/// A port where nothing listens.
pub async fn closed_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// Requests a connection by SOCKS 5, with the name `localhost`. Returns the reply's code.
pub async fn socks_connect(proxy: SocketAddr, port: u16) -> (TcpStream, u8) {
    let mut socket = TcpStream::connect(proxy).await.unwrap();
    socket.write_all(b"\x05\x01\x00").await.unwrap();
    let mut method = [0; 2];
    socket.read_exact(&mut method).await.unwrap();
    assert_eq!(method, [5, 0]);
    let mut request = b"\x05\x01\x00\x03\x09localhost".to_vec();
    request.extend(port.to_be_bytes());
    socket.write_all(&request).await.unwrap();
    let mut reply = [0; 10];
    socket.read_exact(&mut reply).await.unwrap();
    (socket, reply[1])
}

/// Sends this, and reads until the end.
pub async fn say(to: SocketAddr, text: &str) -> String {
    let mut socket = TcpStream::connect(to).await.unwrap();
    socket.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}
