//! Both ends over real associations.

use std::sync::Arc;

use bytes::Bytes;
use ropewalk_runtime::endpoint::{
    Association, Endpoint, Options, PathNews, PathStatus, Stats, Target, Transport,
};
use ropewalk_runtime::seal::PublicKey;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use ropewalk_base::PeerText;

use super::exit::{Client, Exit, Limit};
use super::near::{Connector, Reached};
use super::notice::{Notice, NoticeSink};
use crate::mux::{Arrived, CarrierEnded, Connection, Limits, MessageTransport, Role};

/// Streams each way; half of them are the near end's to open.
const STREAMS: u16 = 4096;

/// Least that may wait unsent in an association, bytes. All of it goes before a fresh request, whatever
/// that is: at 10 Mbit/s, 50 ms.
const UNSENT: u64 = 64 << 10;

/// A transport as a proxy wants it: many streams, of which none takes the send buffer for itself.
pub fn transport() -> Transport {
    Transport { streams: STREAMS, unsent_limit: Some(UNSENT), ..Transport::default() }
}

/// Connects to an exit, each time from fresh sockets: an exit that was started anew then meets a
/// stranger, not an old friend who talks of things that it has forgotten.
#[derive(Clone, Debug)]
pub struct Live {
    /// From where.
    pub options: Options,
    /// To whom.
    pub target: Target,
    /// How much memory its streams may use.
    pub limits: Limits,
}

/// A [`Live`] connector, and whom it tells of its paths.
#[derive(Clone)]
pub struct LiveConnector {
    /// How to connect.
    pub live: Live,
    /// Whom to tell.
    pub tell: NoticeSink,
}

impl Connector for LiveConnector {
    async fn connect(&mut self) -> Result<Reached, String> {
        let Live { options, target, limits } = self.live.clone();
        let endpoint = Endpoint::open(options).map_err(|error| error.to_string())?;
        let association = endpoint.connect(&target).await.map_err(|error| error.to_string())?;
        let how = words(association.stats());
        let carrier = Watched::new(association, Some(endpoint), None, self.tell.clone());
        let silent = carrier.silent.clone();
        Ok(Reached { connection: Connection::start(carrier, Role::Connector, limits), how, silent })
    }
}

/// What the operator calls a key.
pub type NameOf = Arc<dyn Fn(&PublicKey) -> Option<String> + Send + Sync>;

/// Serves all near ends that connect to the endpoint, for ever.
pub async fn serve(
    endpoint: &Endpoint,
    exit: &Exit,
    limits: Limits,
    name: &NameOf,
    tell: &NoticeSink,
) {
    let mut tasks = JoinSet::new();
    loop {
        let association = endpoint.accept().await;
        while tasks.try_join_next().is_some() {}
        let client = client_of(&association, name);
        let Some((limits, buffers)) = exit.buffers(&client, limits) else {
            association.abort();
            tell(Notice::LimitReached(client, Limit::BufferedBytes));
            continue;
        };
        tell(Notice::Joined(client.clone()));
        let (exit, tell) = (exit.clone(), tell.clone());
        tasks.spawn(async move {
            let carrier = Watched::new(association, None, Some(client.clone()), tell.clone());
            let connection = Connection::start(carrier, Role::Acceptor, limits);
            let why = exit.serve(client.clone(), connection).await;
            drop(buffers);
            tell(Notice::Left(client, PeerText::from(why.to_string())));
        });
    }
}

/// Who is at the other end of an association.
fn client_of(association: &Association, name: &NameOf) -> Client {
    let key = association.peer_key();
    let paths = association.stats().map(|stats| stats.paths).unwrap_or_default();
    let address = paths.iter().find_map(|path| path.remote);
    Client { key, name: key.and_then(|key| name(&key)), address }
}

/// The paths that there are.
fn words(stats: Option<Stats>) -> String {
    let paths = stats.map(|stats| stats.paths).unwrap_or_default();
    let to: Vec<_> = paths.iter().filter_map(|path| path.remote).map(|a| a.to_string()).collect();
    let noun = if to.len() == 1 { "path" } else { "paths" };
    format!("{} {noun}, to {}", to.len(), to.join(" and "))
}

/// An association that tells of its paths, and is gone at once when nobody holds it.
struct Watched {
    association: Arc<Association>,
    watcher: JoinHandle<()>,
    /// Whether no path is in use.
    silent: watch::Receiver<bool>,
    /// Its sockets, where they are its own.
    _endpoint: Option<Endpoint>,
}

impl Watched {
    fn new(
        association: Association,
        endpoint: Option<Endpoint>,
        client: Option<Client>,
        tell: NoticeSink,
    ) -> Self {
        let association = Arc::new(association);
        let watched = association.clone();
        let (set_silent, silent) = watch::channel(false);
        let watcher = tokio::spawn(async move {
            while let Some(news) = watched.path_news().await {
                let text = match news {
                    PathNews::Restarted => "the peer has restarted".to_owned(),
                    PathNews::Changed(path, status) => {
                        format!("path {} is {}", path.index() + 1, status_words(status))
                    }
                };
                tell(Notice::Path(client.clone(), text));
                let used = watched.paths().contains(&PathStatus::Active);
                set_silent.send_if_modified(|silent| std::mem::replace(silent, !used) == used);
            }
        });
        Self { association, watcher, silent, _endpoint: endpoint }
    }
}

const fn status_words(status: PathStatus) -> &'static str {
    match status {
        PathStatus::Unconfirmed => "being tried",
        PathStatus::Active => "in use",
        PathStatus::PotentiallyFailed => "silent: not used unless there is no other",
        PathStatus::Inactive => "gone; it is asked now and then whether it is back",
    }
}

impl MessageTransport for Watched {
    async fn send(&self, stream: u16, ppid: u32, bytes: Bytes) -> Result<(), CarrierEnded> {
        MessageTransport::send(&self.association, stream, ppid, bytes).await
    }

    async fn receive(&self, into: &mut Vec<Arrived>) -> Result<(), CarrierEnded> {
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

impl Drop for Watched {
    fn drop(&mut self) {
        self.watcher.abort();
        // All streams have ended: the peer need not find out by itself.
        self.association.abort();
    }
}
