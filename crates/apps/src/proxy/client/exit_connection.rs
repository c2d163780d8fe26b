//! The connection to the exit, which is re-established whenever it is lost.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::mux::{Connection, OpenError, Stream};
use crate::proxy::notice::{Notice, NoticeSink};
use crate::proxy::reason::{Reason, ReasonKind};
use crate::proxy::target::Target;

/// An established connection to the exit.
pub struct EstablishedConnection {
    /// The connection.
    pub connection: Connection,
    /// Description of its paths.
    pub description: String,
    /// Whether the exit is silent: it has recently answered on no path.
    pub silent: watch::Receiver<bool>,
    /// Requests an answer of the exit on each path. Without an answer, the exit becomes silent.
    pub ask: Box<dyn Fn() + Send + Sync>,
    /// Waits until it is certain that a silent exit has stopped, and that the paths are not the cause.
    pub stopped: Stopped,
}

/// A wait for the end of an exit.
pub type Stopped = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// Opens connections to the exit.
pub trait Connector: Send + 'static {
    /// Opens a connection, or returns why that failed.
    fn connect(&mut self) -> impl Future<Output = Result<EstablishedConnection, String>> + Send;
}

/// Time limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectTimeouts {
    /// Pause before the second attempt to connect to the exit (0.5 s); it doubles with each attempt.
    pub first_pause: Duration,
    /// Longest pause between attempts (15 s).
    pub longest_pause: Duration,
    /// Time limit of an attempt (20 s).
    pub attempt: Duration,
    /// How long a program's connection waits for a connection to the exit (10 s).
    pub wait: Duration,
    /// How long it then waits for the exit's answer (20 s).
    pub answer: Duration,
    /// Silence of the exit after which a second connection tests whether the exit has lost its state (1 s).
    pub doubt: Duration,
    /// If the second connection succeeds, the time that the first one has to recover (3 s).
    pub grace: Duration,
    /// Interval at which the exit must answer a request while programs are connected (10 s).
    pub ask: Duration,
}

impl Default for ConnectTimeouts {
    fn default() -> Self {
        Self {
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(15),
            attempt: Duration::from_secs(20),
            wait: Duration::from_secs(10),
            answer: Duration::from_secs(20),
            doubt: Duration::from_secs(1),
            grace: Duration::from_secs(3),
            ask: Duration::from_secs(10),
        }
    }
}

/// A handle of the connection to the exit.
#[derive(Clone, Debug)]
pub struct ExitConnection {
    current: watch::Receiver<Option<Arc<Connection>>>,
    timeouts: ConnectTimeouts,
}

impl ExitConnection {
    /// Maintains a connection to the exit in a task, as long as a handle exists.
    pub fn maintain(
        connector: impl Connector,
        timeouts: ConnectTimeouts,
        notify: NoticeSink,
    ) -> Self {
        let (publish, current) = watch::channel(None);
        tokio::spawn(maintain(connector, timeouts, notify, publish));
        Self { current, timeouts }
    }

    /// Opens a stream to the target without waiting for the answer: bytes may be written immediately.
    ///
    /// # Errors
    /// `ReasonKind::NoExit`, or `ReasonKind::Busy` if there are too many connections.
    pub async fn open(&self, target: &Target) -> Result<Stream, Reason> {
        let until = Instant::now() + self.timeouts.wait;
        let mut current = self.current.clone();
        loop {
            let connection = {
                let there = timeout_at(until, current.wait_for(Option::is_some)).await;
                let none = |_| {
                    Reason::new(
                        ReasonKind::NoExit,
                        "there is no connection to the exit at the moment",
                    )
                };
                there.map_err(none)?.map_err(|_| connection_lost())?.clone()
            };
            let Some(connection) = connection else { continue };
            match timeout_at(until, connection.open(target.encode())).await {
                Err(_) => {
                    return Err(Reason::new(ReasonKind::Busy, "too many connections are open"));
                }
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(OpenError::Refused(refusal))) => return Err(refusal.into()),
                // The connection was lost just now.
                Ok(Err(OpenError::Ended)) => {
                    let changed = timeout_at(until, current.changed()).await;
                    if !matches!(changed, Ok(Ok(()))) {
                        return Err(connection_lost());
                    }
                }
            }
        }
    }

    /// Opens a stream to the target and waits until the exit has connected. The bytes `first` are sent together with
    /// the request.
    ///
    /// # Errors
    /// Why the connection failed.
    pub async fn connect_to(&self, target: &Target, first: &[u8]) -> Result<Stream, Reason> {
        let timed_out = |_| Reason::new(ReasonKind::TimedOut, "the exit does not answer");
        let attempts = async {
            loop {
                let established = self.try_to_reach(target, first).await;
                // The connection was lost meanwhile. A new one may be tried, because no bytes were sent yet.
                let lost = matches!(&established, Err(reason) if reason.kind == ReasonKind::NoExit);
                if !lost || !first.is_empty() || self.current.borrow().is_none() {
                    return established;
                }
            }
        };
        timeout(self.timeouts.answer, attempts).await.map_err(timed_out)?
    }

    async fn try_to_reach(&self, target: &Target, first: &[u8]) -> Result<Stream, Reason> {
        let mut stream = self.open(target).await?;
        // Writing fails only if the stream fails, and then the answer contains the reason.
        let written = stream.write_all(first).await;
        stream.opened().await?;
        written.map_err(|error| Reason::of_io(&error))?;
        Ok(stream)
    }
}

fn connection_lost() -> Reason {
    Reason::new(ReasonKind::NoExit, "the connection to the exit was lost")
}

async fn maintain(
    connector: impl Connector,
    timeouts: ConnectTimeouts,
    notify: NoticeSink,
    publish: Publisher,
) {
    let mut reconnector = Reconnector { connector, timeouts, notify, pause: timeouts.first_pause };
    let mut next = None;
    loop {
        let established = match next.take() {
            Some(established) => established,
            None => tokio::select! {
                established = reconnector.connect_to() => established,
                () = publish.closed() => return,
            },
        };
        let EstablishedConnection { connection, description, silent, ask, stopped } = established;
        (reconnector.notify)(Notice::Connected(description));
        let since = Instant::now();
        let connection = Arc::new(connection);
        publish.send_replace(Some(connection.clone()));
        let end = tokio::select! {
            end = reconnector.wait_for_end(&connection, silent.clone()) => end,
            () = stopped() => ConnectionEnd::Ended(STOPPED.to_owned()),
            never = ask_while_used(&connection, &silent, &ask, timeouts.ask) => match never {},
            () = publish.closed() => return,
        };
        match end {
            ConnectionEnd::Ended(why) => {
                publish.send_replace(None);
                (reconnector.notify)(Notice::Lost(why.into()));
                // An exit that accepts connections and closes them immediately must not be contacted too often.
                if since.elapsed() > timeouts.longest_pause {
                    reconnector.pause = timeouts.first_pause;
                } else {
                    reconnector.pause_before_retry().await;
                }
            }
            ConnectionEnd::StateLost(fresh) => {
                (reconnector.notify)(Notice::Lost("the exit was restarted".into()));
                next = Some(fresh);
            }
        }
    }
}

type Publisher = watch::Sender<Option<Arc<Connection>>>;

/// Why a connection has ended after its exit stopped.
const STOPPED: &str = "the exit was stopped: its port is closed";

/// Requests answers from a quiet exit while programs are connected. A program may wait for data of an exit that was
/// killed, without sending anything that must be acknowledged. Does not return.
async fn ask_while_used(
    connection: &Connection,
    silent: &watch::Receiver<bool>,
    ask: &(impl Fn() + Sync),
    interval: Duration,
) -> Infallible {
    loop {
        sleep(interval).await;
        // Requests to a silent exit count as errors of the association, which must survive an outage.
        if connection.streams() > 0 && !*silent.borrow() {
            ask();
        }
    }
}

/// How a connection ended.
enum ConnectionEnd {
    /// The connection has ended, for this reason.
    Ended(String),
    /// The exit has lost its state, but has accepted this new connection.
    StateLost(EstablishedConnection),
}

struct Reconnector<C> {
    connector: C,
    timeouts: ConnectTimeouts,
    notify: NoticeSink,
    pause: Duration,
}

impl<C: Connector> Reconnector<C> {
    /// Retries until a connection to the exit is established.
    async fn connect_to(&mut self) -> EstablishedConnection {
        loop {
            match self.attempt().await {
                Ok(established) => return established,
                Err(why) => (self.notify)(Notice::NotConnected(why.into(), self.pause)),
            }
            self.pause_before_retry().await;
        }
    }

    async fn attempt(&mut self) -> Result<EstablishedConnection, String> {
        let most = self.timeouts.attempt;
        let timed_out = |_| format!("no answer within {} s", most.as_secs());
        timeout(most, self.connector.connect()).await.map_err(timed_out)?
    }

    /// Pauses, longer each time.
    async fn pause_before_retry(&mut self) {
        let pause = self.pause;
        self.pause = (pause * 2).min(self.timeouts.longest_pause);
        sleep(pause).await;
    }

    /// Waits until the connection has ended, or the exit has lost its state.
    async fn wait_for_end(
        &mut self,
        connection: &Connection,
        silent: watch::Receiver<bool>,
    ) -> ConnectionEnd {
        tokio::select! {
            why = connection.ended() => ConnectionEnd::Ended(why.to_string()),
            fresh = self.wait_for_state_loss(silent) => ConnectionEnd::StateLost(fresh),
        }
    }

    /// Waits until a silent exit accepts a second connection while the first one stays silent. An association
    /// survives long outages of all its paths, and so do the connections in it. But an exit that was killed and
    /// restarted does not know the association and never answers on it.
    async fn wait_for_state_loss(
        &mut self,
        mut silent: watch::Receiver<bool>,
    ) -> EstablishedConnection {
        loop {
            if silent.wait_for(|silent| *silent).await.is_err() {
                return std::future::pending().await;
            }
            let answers_within = |wait: Duration, mut silent: watch::Receiver<bool>| async move {
                matches!(timeout(wait, silent.wait_for(|silent| !silent)).await, Ok(Ok(_)))
            };
            if answers_within(self.timeouts.doubt, silent.clone()).await {
                continue;
            }
            if let Ok(fresh) = self.attempt().await
                && !answers_within(self.timeouts.grace, silent.clone()).await
            {
                return fresh;
            }
        }
    }
}
