//! Programs' connections, one task each.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::credentials::Credentials;
use super::http::{self, HttpError, Request, Way};
use super::inlet::{Inlet, Unclear};
use super::uplink::Uplink;
use super::{Speaks, socks5};
use crate::mux::Stream;
use crate::proxy::notice::{Notice, Tell};
use crate::proxy::reason::Reason;
use crate::proxy::relay::{relay, tune};
use crate::proxy::target::Target;

/// After the system had no connection for us (mostly: too many open files).
const RECOVERY: Duration = Duration::from_millis(100);

/// A port that is listened to.
#[derive(Debug)]
pub struct Service {
    /// Where.
    pub listener: TcpListener,
    /// What is spoken there.
    pub speaks: Speaks,
}

/// What all connections of a near end share.
#[derive(Clone)]
pub struct Near {
    uplink: Uplink,
    credentials: Option<Arc<Credentials>>,
    places: Arc<Semaphore>,
    tell: Tell,
}

impl Near {
    /// A near end that takes at most so many connections at a time; the others wait in the system's
    /// queue.
    pub fn new(uplink: Uplink, credentials: Option<Credentials>, most: usize, tell: Tell) -> Self {
        let places = Arc::new(Semaphore::new(most));
        Self { uplink, credentials: credentials.map(Arc::new), places, tell }
    }

    /// Serves these ports for ever.
    pub async fn serve(&self, services: Vec<Service>) {
        let mut tasks = JoinSet::new();
        for service in services {
            tasks.spawn(self.clone().listen(service));
        }
        while tasks.join_next().await.is_some() {}
    }

    async fn listen(self, Service { listener, speaks }: Service) {
        let speaks = Arc::new(speaks);
        let mut tasks = JoinSet::new();
        loop {
            while tasks.try_join_next().is_some() {}
            let Ok(place) = self.places.clone().acquire_owned().await else { return };
            let Ok((socket, who)) = listener.accept().await else {
                tokio::time::sleep(RECOVERY).await;
                continue;
            };
            tune(&socket);
            let (near, speaks) = (self.clone(), speaks.clone());
            tasks.spawn(async move {
                // Whoever broke it knows.
                let _ = near.one(socket, who, &speaks).await;
                drop(place);
            });
        }
    }

    async fn one(&self, socket: TcpStream, who: SocketAddr, speaks: &Speaks) -> io::Result<()> {
        let mut inlet = Inlet::new(socket);
        match speaks {
            Speaks::Socks => {
                let heard = socks5::hear(&mut inlet, self.credentials.as_deref()).await;
                let target = match heard {
                    Ok(target) => target,
                    Err(unclear) => return self.nonsense(who, &unclear),
                };
                match self.open(who, &target, &[]).await {
                    Ok(stream) => {
                        socks5::succeed(&mut inlet).await?;
                        relay(inlet, stream).await?;
                    }
                    Err(reason) => socks5::fail(&mut inlet, reason.kind.socks()).await,
                }
            }
            Speaks::Http => self.http(inlet, who).await?,
            // A program that hears nothing else hears a reset when it leads nowhere.
            Speaks::Forward(target) => match self.uplink.open(target).await {
                Ok(stream) => self.forward(inlet, stream, who, target).await?,
                Err(reason) => self.failed(who, target, &reason),
            },
        }
        Ok(())
    }

    async fn http(&self, mut inlet: Inlet, who: SocketAddr) -> io::Result<()> {
        let parse = |bytes: &[u8]| http::parse(bytes, self.credentials.as_deref());
        let Request { target, way } = match inlet.understand(http::MOST, parse).await {
            Ok(request) => request,
            Err(unclear) => {
                if let Some(status) = status_of(&unclear) {
                    inlet.say_and_close(&http::refusal(status, &unclear.to_string())).await;
                }
                return self.nonsense(who, &unclear);
            }
        };
        let first = match &way {
            Way::Tunnel => &[][..],
            Way::Plain { head, .. } => head,
        };
        let stream = match self.open(who, &target, first).await {
            Ok(stream) => stream,
            Err(reason) => {
                let answer = http::refusal(reason.kind.http(), &reason.detail);
                inlet.say_and_close(&answer).await;
                return Ok(());
            }
        };
        match way {
            Way::Tunnel => inlet.say(http::CONNECTED).await?,
            Way::Plain { body: Some(length), .. } => inlet.limit(length),
            Way::Plain { body: None, .. } => {}
        }
        relay(inlet, stream).await?;
        Ok(())
    }

    async fn open(&self, who: SocketAddr, target: &Target, first: &[u8]) -> Result<Stream, Reason> {
        let opened = self.uplink.reach(target, first).await;
        match &opened {
            Ok(_) => (self.tell)(Notice::Opened(who, target.clone())),
            Err(reason) => self.failed(who, target, reason),
        }
        opened
    }

    /// Bytes go at once; the exit's answer comes meanwhile.
    async fn forward(
        &self,
        inlet: Inlet,
        stream: Stream,
        who: SocketAddr,
        target: &Target,
    ) -> io::Result<()> {
        (self.tell)(Notice::Opened(who, target.clone()));
        let result = relay(inlet, stream).await;
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

    fn nonsense(&self, who: SocketAddr, what: &dyn std::fmt::Display) -> io::Result<()> {
        (self.tell)(Notice::Nonsense(who, what.to_string()));
        Ok(())
    }
}

/// The status for a request that was not understood; none: nobody listens.
fn status_of(unclear: &Unclear<HttpError>) -> Option<u16> {
    match unclear {
        Unclear::Wrong(error) => Some(error.status()),
        Unclear::TooLong => Some(431),
        Unclear::TooSlow => Some(408),
        Unclear::Gone => None,
    }
}
