//! File transfer over the associations of an endpoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use ropewalk_base::PeerText;
use ropewalk_runtime::endpoint::{
    Association, ConnectError, Endpoint, PathEvent, PathStats, PathStatus, Received, Target,
};
use ropewalk_runtime::seal::PublicKey;
use tokio::time::timeout;

use super::link::{AssociationEnded, Figures, Link, PathFigures};
use super::peer::Peer;
use super::receiver::Accept;
use super::reordering::{OutOfOrder, ReorderBuffer};
use super::sender::{Dial, DialError};
use crate::whereabouts::Whereabouts;

/// The stream that carries all messages, in both directions.
const STREAM: u16 = 0;
/// Payload protocol identifier of the first message, one that is not registered. Later messages increment it: it is
/// the sequence number of the unordered messages.
const PPID: u32 = 0x5257_4649;
/// Time to establish an association before a new attempt starts.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(4);

/// An association that carries files.
#[derive(Debug)]
pub struct FileLink {
    association: Association,
    /// The peer has restarted and lost the state of the transfer.
    restarted: AtomicBool,
    /// Payload protocol identifier of the next message.
    next: AtomicU32,
    reorder_buffer: Mutex<ReorderBuffer>,
}

impl FileLink {
    fn new(association: Association) -> Self {
        Self {
            association,
            restarted: AtomicBool::new(false),
            next: AtomicU32::new(PPID),
            reorder_buffer: Mutex::default(),
        }
    }

    /// Orders the received messages. Appends those that are in order to `into`.
    fn sort(&self, received: Vec<Received>, into: &mut Vec<Bytes>) -> Result<(), OutOfOrder> {
        let mut reorder_buffer = self.reorder_buffer.lock();
        received.into_iter().try_for_each(|message| {
            reorder_buffer.take(message.ppid.wrapping_sub(PPID), message.bytes, into)
        })
    }

    /// Waits until the peer restarts.
    async fn restarted(&self) {
        loop {
            match self.association.next_path_event().await {
                Some(PathEvent::Restarted) => return,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }
}

impl From<&PathStats> for PathFigures {
    fn from(path: &PathStats) -> Self {
        let local = path.local.as_ref();
        Self {
            link: local.map(ToString::to_string).unwrap_or_default(),
            local: local.map(|local| local.address.to_string()).unwrap_or_default(),
            remote: path.remote.map(|remote| remote.to_string()).unwrap_or_default(),
            state: match path.status {
                PathStatus::Unconfirmed => "unconfirmed",
                PathStatus::Active => "active",
                PathStatus::PotentiallyFailed => "doubtful",
                PathStatus::Inactive => "down",
            },
            delivered_bytes: path.counters.delivered_bytes,
            received_bytes: path.received_bytes,
            retransmits: path.counters.retransmitted,
            cwnd: path.cwnd_bytes,
            rtt_us: path.srtt_s.map(|seconds| (seconds * 1e6) as u64),
        }
    }
}

impl Figures for FileLink {
    fn paths(&self) -> Vec<PathFigures> {
        let stats = self.association.stats();
        stats.iter().flat_map(|stats| &stats.paths).map(PathFigures::from).collect()
    }

    fn abort(&self) {
        self.association.abort();
    }
}

impl Link for FileLink {
    async fn send_all(
        &self,
        messages: &mut (dyn Iterator<Item = Bytes> + Send),
    ) -> Result<(), AssociationEnded> {
        let mut numbered =
            messages.map(|message| (self.next.fetch_add(1, Ordering::Relaxed), message));
        let sent = self.association.send_all_unordered(STREAM, &mut numbered).await;
        sent.map_err(|error| AssociationEnded(error.to_string().into()))
    }

    async fn receive_all(&self, into: &mut Vec<Bytes>) {
        let before = into.len();
        while into.len() == before && !self.restarted.load(Ordering::Relaxed) {
            let mut received = Vec::new();
            tokio::select! {
                biased;
                () = self.restarted() => self.restarted.store(true, Ordering::Relaxed),
                () = self.association.receive_all(&mut received) => {
                    if received.is_empty() {
                        return;
                    }
                    if let Err(OutOfOrder) = self.sort(received, into) {
                        self.association.abort();
                        return;
                    }
                }
            }
        }
    }

    fn peer(&self) -> Peer {
        Peer::new(self.association.peer_key())
    }

    fn message_size(&self) -> usize {
        self.association.message_size()
    }

    async fn end_reason(&self) -> PeerText {
        if self.restarted.load(Ordering::Relaxed) {
            return "the peer has restarted".into();
        }
        match timeout(HANDSHAKE_TIMEOUT, self.association.ended()).await {
            Ok(Some(reason)) => reason.to_string().into(),
            _ => "the association has ended".into(),
        }
    }

    async fn finish(&self) {
        // The peer has read all unacknowledged data anyway, or will request it again.
        let _ = self.association.shutdown().await;
    }
}

/// Opens associations to one peer.
#[derive(Clone, Debug)]
pub struct FileConnector {
    /// The local endpoint.
    pub endpoint: Arc<Endpoint>,
    /// The key of the peer, if sealed.
    pub key: Option<PublicKey>,
    /// Where the peer is.
    pub place: Arc<Whereabouts>,
}

impl Dial for FileConnector {
    type Link = FileLink;

    async fn dial(&self) -> Result<FileLink, DialError> {
        self.place.begin_attempt().await;
        let target = Target { addresses: self.place.addresses(), key: self.key };
        match timeout(HANDSHAKE_TIMEOUT, self.endpoint.connect(&target)).await {
            Ok(Ok(association)) => {
                self.place.confirm();
                Ok(FileLink::new(association))
            }
            Ok(Err(error)) => {
                let why = error.to_string().into();
                Err(match error {
                    ConnectError::OldDate(_) => DialError::Clock(why),
                    ConnectError::Ended(_) | ConnectError::NoSession(_) => DialError::Passing(why),
                    _ => DialError::Lasting(why),
                })
            }
            Err(_) => Err(DialError::Passing("it does not answer".into())),
        }
    }
}

/// Accepts the associations that peers open.
#[derive(Clone, Debug)]
pub struct FileListener {
    /// The local endpoint.
    pub endpoint: Arc<Endpoint>,
}

impl Accept for FileListener {
    type Link = FileLink;

    async fn accept(&self) -> Option<FileLink> {
        Some(FileLink::new(self.endpoint.accept().await))
    }
}
