//! Clients' connections, one task each.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::chunked::ChunkedBody;
use super::client_connection::{Body, ClientConnection, Framing, RequestError};
use super::credentials::Credentials;
use super::http::{self, HttpError, Length, Request, Way};
use super::pending::Pending;
use super::uplink::ExitConnection;
use super::{ListenProtocol, socks5};
use crate::mux::Stream;
use crate::proxy::notice::{Notice, NoticeSink};
use crate::proxy::quota::{FairQuota, Permit};
use crate::proxy::reason::{Kind, Reason};
use crate::proxy::relay::{relay, tune};
use crate::proxy::target::Target;

/// How long a connection waits for a free place.
const PLACE_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause after a failed accept, usually because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listening port.
#[derive(Debug)]
pub struct Service {
    /// The listening socket.
    pub listener: TcpListener,
    /// The protocol.
    pub speaks: ListenProtocol,
}

/// One source address may hold 8/9 of the places, because most near ends serve a single machine.
const SOURCE_WEIGHT: u64 = 8;

/// State that all connections of a near end share.
#[derive(Clone)]
pub struct Near {
    uplink: ExitConnection,
    credentials: Option<Arc<Credentials>>,
    pending: Pending,
    /// Places for connections, by source address.
    places: FairQuota<IpAddr>,
    tell: NoticeSink,
}

/// A client with a complete request and a place.
struct Admitted {
    request: Request,
    _place: Permit<IpAddr>,
}

impl Near {
    /// A near end with at most this number of open connections. Further ones wait for a while and are then refused.
    pub fn new(
        uplink: ExitConnection,
        credentials: Option<Credentials>,
        most: usize,
        tell: NoticeSink,
    ) -> Self {
        let places = FairQuota::new(most.max(1) as u64, SOURCE_WEIGHT);
        let credentials = credentials.map(Arc::new);
        Self { uplink, credentials, pending: Pending::default(), places, tell }
    }

    /// Serves these ports. Never returns.
    pub async fn serve(&self, services: Vec<Service>) {
        let mut tasks = JoinSet::new();
        for service in services {
            tasks.spawn(self.clone().listen(service));
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Accepts every connection at once: the table of pending clients limits their number.
    async fn listen(self, Service { listener, speaks }: Service) {
        let speaks = Arc::new(speaks);
        let mut tasks = JoinSet::new();
        loop {
            while tasks.try_join_next().is_some() {}
            let Ok((socket, who)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            tune(&socket);
            let pending = self.pending.enter(source(who.ip()));
            let (near, speaks) = (self.clone(), speaks.clone());
            tasks.spawn(async move {
                let mut client = ClientConnection::new(socket);
                let admitted = tokio::select! {
                    admitted = near.admit(&mut client, who, &speaks) => admitted,
                    () = pending.displaced() => {
                        near.bad_request(who, &RequestError::<HttpError>::Displaced)
                    }
                };
                drop(pending);
                if let Some(admitted) = admitted {
                    // The end that reset the connection knows the reason.
                    let _ = near.carry(client, who, &speaks, admitted).await;
                }
            });
        }
    }

    /// Reads the request of a client and waits for a place. None: the client was refused.
    async fn admit(
        &self,
        client: &mut ClientConnection,
        who: SocketAddr,
        speaks: &ListenProtocol,
    ) -> Option<Admitted> {
        let credentials = self.credentials.as_deref();
        let request = match speaks {
            ListenProtocol::Socks => match socks5::read_request(client, credentials).await {
                Ok(target) => Request { target, way: Way::Tunnel },
                Err(error) => return self.bad_request(who, &error),
            },
            ListenProtocol::Http => {
                let parse = |bytes: &[u8]| http::parse(bytes, credentials);
                let read = client.read_message(http::HEAD_LIMIT, Framing::BlankLine, parse);
                match read.await {
                    Ok(request) => request,
                    Err(error) => {
                        if let Some(status) = status_of(&error) {
                            let answer = http::refusal(status, &error.to_string());
                            client.send_and_close(&answer).await;
                        }
                        return self.bad_request(who, &error);
                    }
                }
            }
            ListenProtocol::Forward(target) => Request { target: target.clone(), way: Way::Tunnel },
        };
        match timeout(PLACE_TIMEOUT, self.places.one(&source(who.ip()))).await {
            Ok(place) => Some(Admitted { request, _place: place }),
            Err(_) => {
                let reason = Reason::new(Kind::Busy, "too many connections are open");
                self.failed(who, &request.target, &reason);
                refuse(client, speaks, &reason).await;
                None
            }
        }
    }

    /// Opens a stream to the target, and relays bytes until both directions have ended.
    async fn carry(
        &self,
        mut client: ClientConnection,
        who: SocketAddr,
        speaks: &ListenProtocol,
        Admitted { request: Request { target, way }, _place }: Admitted,
    ) -> io::Result<()> {
        if matches!(speaks, ListenProtocol::Forward(_)) {
            return match self.uplink.open(&target).await {
                Ok(stream) => self.forward(client, stream, who, &target).await,
                Err(reason) => {
                    self.failed(who, &target, &reason);
                    Ok(())
                }
            };
        }
        let first = match &way {
            Way::Tunnel => &[][..],
            Way::Plain { head, .. } => head,
        };
        let stream = match self.open(who, &target, first).await {
            Ok(stream) => stream,
            Err(reason) => {
                refuse(&mut client, speaks, &reason).await;
                return Ok(());
            }
        };
        match (speaks, way) {
            (ListenProtocol::Socks, _) => socks5::succeed(&mut client).await?,
            (_, Way::Tunnel) => client.send(http::CONNECTED).await?,
            (_, Way::Plain { body, .. }) => client.set_body(match body {
                Length::Bytes(bytes) => Body::Length(bytes),
                Length::Chunked => Body::Chunked(ChunkedBody::new()),
            }),
        }
        relay(client, stream).await.map(|_| ())
    }

    async fn open(&self, who: SocketAddr, target: &Target, first: &[u8]) -> Result<Stream, Reason> {
        let opened = self.uplink.reach(target, first).await;
        match &opened {
            Ok(_) => (self.tell)(Notice::Opened(who, target.clone())),
            Err(reason) => self.failed(who, target, reason),
        }
        opened
    }

    /// Relays bytes at once, while the exit's answer is still pending.
    async fn forward(
        &self,
        client: ClientConnection,
        stream: Stream,
        who: SocketAddr,
        target: &Target,
    ) -> io::Result<()> {
        (self.tell)(Notice::Opened(who, target.clone()));
        let result = relay(client, stream).await;
        if let Err(error) = &result
            && error.kind() == io::ErrorKind::ConnectionRefused
        {
            self.failed(who, target, &Reason::of_io(error));
        }
        result.map(|_| ())
    }

    fn failed(&self, who: SocketAddr, target: &Target, reason: &Reason) {
        (self.tell)(Notice::Failed(who, target.clone(), reason.clone()));
    }

    fn bad_request<T>(&self, who: SocketAddr, what: &dyn std::fmt::Display) -> Option<T> {
        (self.tell)(Notice::BadRequest(who, what.to_string().into()));
        None
    }
}

/// Sends a client the reason for a failure in its protocol. A client of a forwarded port only sees that its
/// connection closes.
async fn refuse(client: &mut ClientConnection, speaks: &ListenProtocol, reason: &Reason) {
    match speaks {
        ListenProtocol::Socks => socks5::fail(client, reason.kind.socks()).await,
        ListenProtocol::Http => {
            let answer = http::refusal(reason.kind.http(), &reason.to_string());
            client.send_and_close(&answer).await;
        }
        ListenProtocol::Forward(_) => {}
    }
}

/// The status for an invalid request. None: the client gets no answer.
fn status_of(error: &RequestError<HttpError>) -> Option<u16> {
    match error {
        RequestError::Malformed(error) => Some(error.status()),
        RequestError::TooLong => Some(431),
        RequestError::TimedOut => Some(408),
        RequestError::Closed | RequestError::Displaced => None,
    }
}

/// The source address as quotas count it: an IPv6 host has a whole /64 network.
fn source(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << 64)).into(),
        ip => ip,
    }
}
