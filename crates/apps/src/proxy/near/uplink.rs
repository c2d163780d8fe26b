//! The connection to the exit, which is re-established whenever it is lost.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::mux::{Connection, OpenError, Stream};
use crate::proxy::notice::{Notice, NoticeSink};
use crate::proxy::reason::{Kind, Reason};
use crate::proxy::target::Target;

/// An established connection to the exit.
#[derive(Debug)]
pub struct Reached {
    /// The connection.
    pub connection: Connection,
    /// Description of its paths.
    pub how: String,
    /// Whether the exit is silent: it has recently answered on no path.
    pub silent: watch::Receiver<bool>,
}

/// Opens connections to the exit.
pub trait Connector: Send + 'static {
    /// Opens a connection, or returns why that failed.
    fn connect(&mut self) -> impl Future<Output = Result<Reached, String>> + Send;
}

/// Time limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
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
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(15),
            attempt: Duration::from_secs(20),
            wait: Duration::from_secs(10),
            answer: Duration::from_secs(20),
            doubt: Duration::from_secs(1),
            grace: Duration::from_secs(3),
        }
    }
}

/// A handle of the connection to the exit.
#[derive(Clone, Debug)]
pub struct ExitConnection {
    current: watch::Receiver<Option<Arc<Connection>>>,
    patience: Patience,
}

impl ExitConnection {
    /// Maintains a connection to the exit in a task, as long as a handle exists.
    pub fn keep(connector: impl Connector, patience: Patience, tell: NoticeSink) -> Self {
        let (set, current) = watch::channel(None);
        tokio::spawn(keep(connector, patience, tell, set));
        Self { current, patience }
    }

    /// Opens a stream to the target without waiting for the answer: bytes may be written at once.
    ///
    /// # Errors
    /// `Kind::NoExit`, or `Kind::Busy` if there are too many connections.
    pub async fn open(&self, target: &Target) -> Result<Stream, Reason> {
        let until = Instant::now() + self.patience.wait;
        let mut current = self.current.clone();
        loop {
            let connection = {
                let there = timeout_at(until, current.wait_for(Option::is_some)).await;
                let none = |_| {
                    Reason::new(Kind::NoExit, "there is no connection to the exit at the moment")
                };
                there.map_err(none)?.map_err(|_| no_uplink())?.clone()
            };
            let Some(connection) = connection else { continue };
            match timeout_at(until, connection.open(target.encode())).await {
                Err(_) => return Err(Reason::new(Kind::Busy, "too many connections are open")),
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(OpenError::Refused(refusal))) => return Err(refusal.into()),
                // The connection was lost just now.
                Ok(Err(OpenError::Ended)) => {
                    let changed = timeout_at(until, current.changed()).await;
                    if !matches!(changed, Ok(Ok(()))) {
                        return Err(no_uplink());
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
    pub async fn reach(&self, target: &Target, first: &[u8]) -> Result<Stream, Reason> {
        let late = |_| Reason::new(Kind::TimedOut, "the exit does not answer");
        let attempts = async {
            loop {
                let reached = self.try_to_reach(target, first).await;
                // The connection was lost meanwhile. A new one may be tried, because no bytes were sent yet.
                let lost = matches!(&reached, Err(reason) if reason.kind == Kind::NoExit);
                if !lost || !first.is_empty() || self.current.borrow().is_none() {
                    return reached;
                }
            }
        };
        timeout(self.patience.answer, attempts).await.map_err(late)?
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

fn no_uplink() -> Reason {
    Reason::new(Kind::NoExit, "the connection to the exit was lost")
}

async fn keep(connector: impl Connector, patience: Patience, tell: NoticeSink, set: Setter) {
    let mut keeper = Keeper { connector, patience, tell, pause: patience.first_pause };
    let mut next = None;
    loop {
        let reached = match next.take() {
            Some(reached) => reached,
            None => tokio::select! {
                reached = keeper.reach() => reached,
                () = set.closed() => return,
            },
        };
        (keeper.tell)(Notice::Connected(reached.how));
        let since = Instant::now();
        let connection = Arc::new(reached.connection);
        set.send_replace(Some(connection.clone()));
        let fate = tokio::select! {
            fate = keeper.hold(&connection, reached.silent) => fate,
            () = set.closed() => return,
        };
        match fate {
            Fate::Ended(why) => {
                set.send_replace(None);
                (keeper.tell)(Notice::Lost(why.into()));
                // An exit that accepts and closes connections at once must not be contacted too often.
                if since.elapsed() > patience.longest_pause {
                    keeper.pause = patience.first_pause;
                } else {
                    keeper.rest().await;
                }
            }
            Fate::Forgotten(fresh) => {
                (keeper.tell)(Notice::Lost("the exit was restarted".into()));
                next = Some(fresh);
            }
        }
    }
}

type Setter = watch::Sender<Option<Arc<Connection>>>;

/// What happened to a connection.
enum Fate {
    /// It has ended, for this reason.
    Ended(String),
    /// The exit has lost its state, but has accepted this new connection.
    Forgotten(Reached),
}

struct Keeper<C> {
    connector: C,
    patience: Patience,
    tell: NoticeSink,
    pause: Duration,
}

impl<C: Connector> Keeper<C> {
    /// Tries until a connection to the exit is established.
    async fn reach(&mut self) -> Reached {
        loop {
            match self.attempt().await {
                Ok(reached) => return reached,
                Err(why) => (self.tell)(Notice::NotConnected(why.into(), self.pause)),
            }
            self.rest().await;
        }
    }

    async fn attempt(&mut self) -> Result<Reached, String> {
        let most = self.patience.attempt;
        let late = |_| format!("no answer within {} s", most.as_secs());
        timeout(most, self.connector.connect()).await.map_err(late)?
    }

    /// Pauses, longer each time.
    async fn rest(&mut self) {
        let pause = self.pause;
        self.pause = (pause * 2).min(self.patience.longest_pause);
        sleep(pause).await;
    }

    /// Waits until the connection has ended, or the exit has lost its state.
    async fn hold(&mut self, connection: &Connection, silent: watch::Receiver<bool>) -> Fate {
        tokio::select! {
            why = connection.ended() => Fate::Ended(why.to_string()),
            fresh = self.forgotten(silent) => Fate::Forgotten(fresh),
        }
    }

    /// Waits until a silent exit accepts a second connection while the first one stays silent. An association
    /// survives long outages of all its paths, and so do the connections in it. But an exit that was killed and
    /// restarted does not know the association and never answers on it.
    async fn forgotten(&mut self, mut silent: watch::Receiver<bool>) -> Reached {
        loop {
            if silent.wait_for(|silent| *silent).await.is_err() {
                return std::future::pending().await;
            }
            let speaks = |wait: Duration, mut silent: watch::Receiver<bool>| async move {
                matches!(timeout(wait, silent.wait_for(|silent| !silent)).await, Ok(Ok(_)))
            };
            if speaks(self.patience.doubt, silent.clone()).await {
                continue;
            }
            if let Ok(fresh) = self.attempt().await
                && !speaks(self.patience.grace, silent.clone()).await
            {
                return fresh;
            }
        }
    }
}
