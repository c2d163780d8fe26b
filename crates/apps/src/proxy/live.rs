//! Runs both ends of the proxy over real associations.

use std::sync::Arc;

use bytes::Bytes;
use ropewalk_runtime::endpoint::{
    Association, Endpoint, Options, PathStatus, Stats, Target, Transport,
};
use ropewalk_runtime::seal::PublicKey;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::client::{Connector, EstablishedConnection};
use super::exit::{Client, Exit, Limit};
use super::notice::{Notice, NoticeSink};
use crate::mux::{Connection, Limits, MessageTransport, Role, TransportEnded, TransportMessage};

/// Streams in each direction; the client end may open half of them.
const STREAMS: u16 = 4096;

/// Minimum limit of unsent data in an association, bytes. A new request waits behind this data, whatever its kind: 50
/// ms at 10 Mbit/s.
const UNSENT: u64 = 64 << 10;

/// Transport options for a proxy: many streams, none of which can occupy the send buffer.
pub fn transport() -> Transport {
    // The proxy itself keeps the data of each connection until its turn comes.
    let unsent_limit = Some(UNSENT);
    Transport { streams: STREAMS, unsent_limit, stream_reserve: 0, ..Transport::default() }
}

/// Connects to an exit, from new sockets each time. To a restarted exit it then is a new peer, and not one that
/// refers to lost state.
#[derive(Clone, Debug)]
pub struct Live {
    /// Options of the local endpoint.
    pub options: Options,
    /// The exit.
    pub target: Target,
    /// Memory limits of its streams.
    pub limits: Limits,
}

impl Connector for Live {
    async fn connect(&mut self) -> Result<EstablishedConnection, String> {
        let Self { options, target, limits } = self.clone();
        let endpoint = Endpoint::open(options).map_err(|error| error.to_string())?;
        let association = endpoint.connect(&target).await.map_err(|error| error.to_string())?;
        let description = reason_text(association.stats());
        let carrier = MonitoredTransport::new(association, Some(endpoint));
        let silent = carrier.silent.clone();
        Ok(EstablishedConnection {
            connection: Connection::start(carrier, Role::Connector, limits),
            description,
            silent,
        })
    }
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
        // All streams have ended: tells the peer at once.
        self.association.abort();
    }
}
