//! Runs both ends of the proxy over real associations.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ropewalk_runtime::endpoint::{
    Association, Endpoint, LocalAddress, Options, PathStatus, Stats, Target, Transport,
};
use ropewalk_runtime::seal::PublicKey;
use socket2::{Domain, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::client::{Connector, EstablishedConnection, Stopped};
use super::exit::{Client, Exit, Limit};
use super::notice::{Notice, NoticeSink};
use crate::mux::{Connection, Limits, MessageTransport, Role, TransportEnded, TransportMessage};
use crate::whereabouts::Whereabouts;

/// Streams in each direction; the client end may open half of them.
const STREAMS: u16 = 4096;

/// Minimum limit of unsent data in an association, bytes. A new request waits behind this data, regardless of its
/// kind: 50 ms at 10 Mbit/s.
const UNSENT: u64 = 64 << 10;

/// How often a silent exit's port must refuse a datagram on all paths.
const REFUSALS: u32 = 3;
/// Time for a refusal to arrive, and pause before the next datagram. Machines limit such answers to one per second.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Transport options for a proxy: many streams, and no stream can occupy the send buffer.
pub fn transport() -> Transport {
    // The proxy itself keeps the data of each connection until its turn comes.
    let unsent_limit = Some(UNSENT);
    Transport { streams: STREAMS, unsent_limit, stream_reserve: 0, ..Transport::default() }
}

/// Connects to an exit, from new sockets each time. A restarted exit then sees a new peer, and not one that
/// refers to lost state.
#[derive(Clone, Debug)]
pub struct Live {
    /// Options of the local endpoint.
    pub options: Options,
    /// The key of the exit.
    pub key: Option<PublicKey>,
    /// Where the exit is.
    pub place: Arc<Whereabouts>,
    /// Memory limits of its streams.
    pub limits: Limits,
}

impl Connector for Live {
    async fn connect(&mut self) -> Result<EstablishedConnection, String> {
        let Self { options, key, place, limits } = self.clone();
        place.begin_attempt().await;
        let target = Target { addresses: place.addresses(), key };
        let endpoint = Endpoint::open(options).map_err(|error| error.to_string())?;
        let association = endpoint.connect(&target).await.map_err(|error| error.to_string())?;
        place.confirm();
        let description = reason_text(association.stats());
        let carrier = MonitoredTransport::new(association, Some(endpoint));
        let (silent, association) = (carrier.silent.clone(), carrier.association.clone());
        let stopped: Stopped = {
            let (association, silent) = (association.clone(), silent.clone());
            Box::new(move || Box::pin(wait_for_stop(association, silent)))
        };
        let ask = Box::new(move || {
            for path in 0..association.paths().len() {
                association.request_heartbeat(path);
            }
        });
        let connection = Connection::start(carrier, Role::Connector, limits);
        Ok(EstablishedConnection { connection, description, silent, ask, stopped })
    }
}

/// Waits until the exit's port has repeatedly refused datagrams on all paths while the exit was silent: the machine
/// is up, but the exit is not. A path that is down refuses nothing, so connections survive an outage.
async fn wait_for_stop(association: Arc<Association>, mut silent: watch::Receiver<bool>) {
    loop {
        if silent.wait_for(|silent| *silent).await.is_err() {
            return std::future::pending().await;
        }
        let refused = async {
            let mut refusals = 0;
            while refusals < REFUSALS {
                tokio::time::sleep(REFUSAL_TIMEOUT).await;
                refusals += u32::from(all_refuse(&association).await);
            }
        };
        let mut heard = silent.clone();
        tokio::select! {
            () = refused => return,
            _ = heard.wait_for(|silent| !silent) => {}
        }
    }
}

/// Whether the peer's machine refuses a datagram on each path of the association.
async fn all_refuse(association: &Association) -> bool {
    let paths = association.stats().map(|stats| stats.paths).unwrap_or_default();
    let mut refused = JoinSet::new();
    for path in paths {
        let (Some(local), Some(remote)) = (path.local, path.remote) else { return false };
        refused.spawn(async move { refuses(&local, remote).await.unwrap_or(false) });
    }
    !refused.is_empty() && refused.join_all().await.into_iter().all(|refused| refused)
}

/// Sends a datagram, which no exit understands, from another port. A closed port answers with an ICMP message, which
/// the system reports on a connected socket.
async fn refuses(local: &LocalAddress, remote: SocketAddr) -> io::Result<bool> {
    let socket = Socket::new(Domain::for_address(remote), Type::DGRAM, None)?;
    #[cfg(target_os = "linux")]
    if let Some(interface) = &local.interface {
        // Other routes may lead elsewhere. Without the privilege to choose, the system chooses.
        let _ = socket.bind_device(Some(interface.as_bytes()));
    }
    socket.bind(&SocketAddr::new(local.address.ip(), 0).into())?;
    socket.connect(&remote.into())?;
    socket.set_nonblocking(true)?;
    let socket = UdpSocket::from_std(socket.into())?;
    socket.send(&[0]).await?;
    let answer = tokio::time::timeout(REFUSAL_TIMEOUT, socket.recv(&mut [0])).await;
    Ok(matches!(answer, Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused))
}

/// Returns the operator's name of a key.
pub type NameOf = Arc<dyn Fn(&PublicKey) -> Option<String> + Send + Sync>;

/// Serves all clients that connect to the endpoint. Never returns.
pub async fn serve(
    endpoint: &Endpoint,
    exit: &Exit,
    limits: Limits,
    name: &NameOf,
    notify: &NoticeSink,
) {
    let mut tasks = JoinSet::new();
    loop {
        let association = endpoint.accept().await;
        while tasks.try_join_next().is_some() {}
        let client = client_of(&association, name);
        let Some((limits, buffers)) = exit.buffers(&client, limits) else {
            association.abort();
            notify(Notice::LimitReached(client, Limit::BufferedBytes));
            continue;
        };
        let exit = exit.clone();
        tasks.spawn(async move {
            let carrier = MonitoredTransport::new(association, None);
            let connection = Connection::start(carrier, Role::Acceptor, limits);
            exit.serve(client, connection).await;
            drop(buffers);
        });
    }
}

/// The client at the other end of an association.
fn client_of(association: &Association, name: &NameOf) -> Client {
    let key = association.peer_key();
    let paths = association.stats().map(|stats| stats.paths).unwrap_or_default();
    let address = paths.iter().find_map(|path| path.remote);
    Client { key, name: key.and_then(|key| name(&key)), address }
}

/// Describes the current paths.
fn reason_text(stats: Option<Stats>) -> String {
    let paths = stats.map(|stats| stats.paths).unwrap_or_default();
    let to: Vec<_> = paths.iter().filter_map(|path| path.remote).map(|a| a.to_string()).collect();
    let noun = if to.len() == 1 { "path" } else { "paths" };
    format!("{} {noun}, to {}", to.len(), to.join(" and "))
}

/// An association that knows whether any path is active, and is aborted when it is dropped.
struct MonitoredTransport {
    association: Arc<Association>,
    watcher: JoinHandle<()>,
    /// Whether no path is active.
    silent: watch::Receiver<bool>,
    /// The endpoint of its sockets, if they are its own.
    _endpoint: Option<Endpoint>,
}

impl MonitoredTransport {
    fn new(association: Association, endpoint: Option<Endpoint>) -> Self {
        let association = Arc::new(association);
        let transport = association.clone();
        let (set_silent, silent) = watch::channel(false);
        let watcher = tokio::spawn(async move {
            while transport.next_path_event().await.is_some() {
                let used = transport.paths().contains(&PathStatus::Active);
                set_silent.send_if_modified(|silent| std::mem::replace(silent, !used) == used);
            }
        });
        Self { association, watcher, silent, _endpoint: endpoint }
    }
}

impl MessageTransport for MonitoredTransport {
    async fn send(&self, stream: u16, ppid: u32, bytes: Bytes) -> Result<(), TransportEnded> {
        MessageTransport::send(&self.association, stream, ppid, bytes).await
    }

    async fn receive(&self, into: &mut Vec<TransportMessage>) -> Result<(), TransportEnded> {
        MessageTransport::receive(&self.association, into).await
    }

    fn streams(&self) -> u16 {
        MessageTransport::streams(&self.association)
    }

    fn message_size(&self) -> usize {
        MessageTransport::message_size(&self.association)
    }

    fn abort(&self) {
        self.association.abort();
    }
}

impl Drop for MonitoredTransport {
    fn drop(&mut self) {
        self.watcher.abort();
        // All streams have ended: notifies the peer immediately.
        self.association.abort();
    }
}
