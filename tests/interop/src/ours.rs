//! Ropewalk's end of a test: sends and receives messages, and compares each byte.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::Duration;

use bytes::BytesMut;
use ropewalk_runtime::endpoint::{
    AddressChange, Association, Endpoint, OpenError, Options, PORT, Part, PathEvent, PathStatus,
    Received, SctpPorts, Target, Transport,
};

use crate::hosts::{Hosts, Side};
use crate::pattern::{self, Checker};

/// Payload protocol identifier of the tests' messages.
pub const PPID: u32 = 1000;

/// Maximum duration of a test.
const PATIENCE: Duration = Duration::from_secs(60);

impl Hosts {
    /// Runs `what` on our host, in a runtime in which it may open sockets and wait.
    ///
    /// # Panics
    /// If it takes longer than a minute, or panics.
    pub fn live<T: Send>(&self, what: impl AsyncFnOnce() -> T + Send) -> T {
        self.live_on(Side::Ours, what)
    }

    /// As [`Hosts::live`], on either host.
    ///
    /// # Panics
    /// If it takes longer than a minute, or panics.
    pub fn live_on<T: Send>(&self, side: Side, what: impl AsyncFnOnce() -> T + Send) -> T {
        self.inside(side, || run(what))
    }

    /// Options of an endpoint on the first `links` links.
    pub fn options(&self, links: usize) -> Options {
        Options::connecting(&self.sockets(Side::Ours, PORT)[..links])
    }

    /// The other end, on the first `links` links.
    pub fn target(&self, links: usize) -> Target {
        Target { addresses: self.sockets(Side::Theirs, PORT)[..links].to_vec(), key: None }
    }
}

/// Opens an endpoint. While another test starts a process, that process has copies of all our sockets, including
/// closed ones, until its program begins. If an address is in use, this function therefore tries again for a while.
///
/// # Panics
/// If it cannot be opened.
pub async fn open(options: Options) -> Endpoint {
    for _ in 0..500 {
        match Endpoint::open(options.clone()) {
            Err(OpenError::Bind(_, error)) if error.kind() == ErrorKind::AddrInUse => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            opened => return opened.expect("an endpoint"),
        }
    }
    panic!("an address is in use for five seconds: {options:?}");
}

/// Runs `what` in a new runtime.
pub(crate) fn run<T>(what: impl AsyncFnOnce() -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let patient = async { tokio::time::timeout(PATIENCE, what()).await };
    runtime.expect("a runtime").block_on(patient).expect("done within a minute")
}

/// Opens an association over the first `links` links.
///
/// # Panics
/// If it is not established.
pub async fn connect(hosts: &Hosts, links: usize) -> (Endpoint, Association) {
    let endpoint = open(hosts.options(links)).await;
    let association = endpoint.connect(&hosts.target(links)).await.expect("an association");
    (endpoint, association)
}

/// Waits until all paths are confirmed. On a busy machine, a short transfer may end earlier.
///
/// # Panics
/// If they are not confirmed within ten seconds.
pub async fn all_paths(association: &Association) {
    for _ in 0..1000 {
        if association.paths().iter().all(|status| *status == PathStatus::Active) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", association.paths());
}

/// As [`connect`], with these rules.
///
/// # Panics
/// If it is not established.
pub async fn connect_as(
    hosts: &Hosts,
    links: usize,
    transport: Transport,
) -> (Endpoint, Association) {
    let options = Options { transport, ..hosts.options(links) };
    let endpoint = open(options).await;
    let association = endpoint.connect(&hosts.target(links)).await.expect("an association");
    (endpoint, association)
}

/// As [`connect`], between these SCTP ports.
///
/// # Panics
/// If it is not established.
pub async fn connect_with_ports(
    hosts: &Hosts,
    links: usize,
    ports: SctpPorts,
) -> (Endpoint, Association) {
    let endpoint = open(hosts.options(links)).await;
    let target = hosts.target(links);
    let association = endpoint.connect_with_ports(&target, ports).await;
    (endpoint, association.expect("an association"))
}

/// pion's SCTP port, which it uses at both ends.
const PION: u16 = 5000;

/// Listens on the first `links` links, on our own SCTP port and on pion's.
///
/// # Panics
/// If the port is in use.
pub async fn listen(hosts: &Hosts, links: usize) -> Endpoint {
    let options = Options { listen: true, ..hosts.options(links) }.on_sctp_ports(&[PORT, PION]);
    open(options).await
}

/// Changes of own and peer addresses that an association reports until it ends.
pub async fn address_changes(association: &Association) -> Vec<AddressChange> {
    let mut changes = Vec::new();
    while let Some(event) = association.next_path_event().await {
        if let PathEvent::Address(change) = event {
            changes.push(change);
        }
    }
    changes
}

/// Returns each message on the stream on which it arrived, until the association ends. Returns the
/// number of bytes.
///
/// # Panics
/// If the association does not accept a message.
pub async fn echo(association: &Association) -> usize {
    let mut came = 0;
    while let Some(Received { stream, ppid, bytes, .. }) = association.receive().await {
        came += bytes.len();
        association.send(stream, ppid, bytes).await.expect("taken");
    }
    came
}

/// Sends `total` bytes as messages of `length` over the streams in turn.
///
/// # Panics
/// If the association does not accept a message.
pub async fn send(association: &Association, total: usize, length: usize, streams: u16) {
    for (stream, bytes) in pattern::messages(total, length, streams) {
        association.send(stream, PPID, bytes).await.expect("taken");
    }
}

/// Receives until `total` bytes have arrived, or the association has ended.
///
/// # Panics
/// If a message is not as expected.
pub async fn receive(association: &Association, total: usize) -> Checker {
    let mut checker = Checker::default();
    receive_into(association, &mut checker, total).await;
    checker
}

/// As [`receive`], but continues with an existing checker.
///
/// # Panics
/// If a message is not as expected.
pub async fn receive_into(association: &Association, checker: &mut Checker, total: usize) {
    // With interleaving, parts of messages of several streams may arrive alternately.
    let mut long = BTreeMap::<u16, BytesMut>::new();
    while checker.bytes < total {
        let Some(Received { stream, ppid, bytes, part, .. }) = association.receive().await else {
            return;
        };
        assert_eq!(ppid, PPID);
        match part {
            Part::Whole => checker.take(stream, &bytes),
            Part::First | Part::Middle => long.entry(stream).or_default().extend_from_slice(&bytes),
            Part::Last => {
                let mut whole = long.remove(&stream).unwrap_or_default();
                whole.extend_from_slice(&bytes);
                checker.take(stream, &whole);
            }
        }
    }
}
