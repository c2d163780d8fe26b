//! The way to the exit: one connection, made anew whenever it is lost.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::mux::{Connection, OpenError, Stream};
use crate::proxy::notice::{Notice, Tell};
use crate::proxy::reason::{Kind, Reason};
use crate::proxy::target::Target;

/// Makes connections to the exit.
pub trait Connector: Send + 'static {
    /// One more, with words that say how; or why there is none.
    fn connect(&mut self) -> impl Future<Output = Result<(Connection, String), String>> + Send;
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Before the second attempt to reach the exit (0.5 s); it doubles with each.
    pub first_pause: Duration,
    /// At most (15 s).
    pub longest_pause: Duration,
    /// An attempt that has not succeeded by then is given up (20 s).
    pub attempt: Duration,
    /// A program's connection waits so long for a way to the exit (10 s).
    pub wait: Duration,
    /// And so long for the exit's answer (20 s).
    pub answer: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(15),
            attempt: Duration::from_secs(20),
            wait: Duration::from_secs(10),
            answer: Duration::from_secs(20),
        }
    }
}

/// The way to the exit, as those see it who need it.
#[derive(Clone, Debug)]
pub struct Uplink {
    current: watch::Receiver<Option<Arc<Connection>>>,
    patience: Patience,
}

impl Uplink {
    /// Keeps a connection to the exit in a task, as long as somebody holds the uplink.
    pub fn keep(connector: impl Connector, patience: Patience, tell: Tell) -> Self {
        let (set, current) = watch::channel(None);
        tokio::spawn(keep(connector, patience, tell, set));
        Self { current, patience }
    }

    /// A stream to the target, not yet answered: bytes may be written to it at once.
    ///
    /// # Errors
    /// [`Kind::NoExit`], or [`Kind::Busy`] if there are too many connections.
    pub async fn open(&self, target: &Target) -> Result<Stream, Reason> {
        let until = Instant::now() + self.patience.wait;
        let mut current = self.current.clone();
        loop {
            let connection = {
                let there = timeout_at(until, current.wait_for(Option::is_some)).await;
                let none =
                    |_| Reason::new(Kind::NoExit, "there is no way to the exit at the moment");
                there.map_err(none)?.map_err(|_| no_uplink())?.clone()
            };
            let Some(connection) = connection else { continue };
            match timeout_at(until, connection.open(target.encode())).await {
                Err(_) => return Err(Reason::new(Kind::Busy, "too many connections are open")),
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(OpenError::Refused(refusal))) => return Err(refusal.into()),
                // Lost just now.
                Ok(Err(OpenError::Ended)) => {
                    let changed = timeout_at(until, current.changed()).await;
                    if !matches!(changed, Ok(Ok(()))) {
                        return Err(no_uplink());
                    }
                }
            }
        }
    }

    /// A stream to the target that the exit has opened; with its first bytes, which travel with the
    /// wish.
    ///
    /// # Errors
    /// Why it leads nowhere.
    pub async fn reach(&self, target: &Target, first: &[u8]) -> Result<Stream, Reason> {
        let mut stream = self.open(target).await?;
        let answer = async {
            // It fails only if the stream does, and then the answer tells why.
            let written = stream.write_all(first).await;
            stream.opened().await?;
            written.map_err(|error| Reason::of_io(&error))
        };
        let late = |_| Reason::new(Kind::TimedOut, "the exit does not answer");
        timeout(self.patience.answer, answer).await.map_err(late)??;
        Ok(stream)
    }
}

fn no_uplink() -> Reason {
    Reason::new(Kind::NoExit, "the way to the exit was lost")
}

async fn keep(
    mut connector: impl Connector,
    patience: Patience,
    tell: Tell,
    set: watch::Sender<Option<Arc<Connection>>>,
) {
    let mut pause = patience.first_pause;
    while !set.is_closed() {
        let attempt = timeout(patience.attempt, connector.connect()).await;
        let late = || Err(format!("no answer within {} s", patience.attempt.as_secs()));
        match attempt.unwrap_or_else(|_| late()) {
            Ok((connection, how)) => {
                tell(Notice::Connected(how));
                let since = Instant::now();
                let connection = Arc::new(connection);
                set.send_replace(Some(connection.clone()));
                let why = tokio::select! {
                    why = connection.ended() => why,
                    () = set.closed() => return,
                };
                set.send_replace(None);
                tell(Notice::Lost(why.to_string()));
                // An exit that takes us and throws us out at once is not to be pestered.
                if since.elapsed() > patience.longest_pause {
                    pause = patience.first_pause;
                    continue;
                }
            }
            Err(why) => tell(Notice::NotConnected(why, pause)),
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = set.closed() => return,
        }
        pause = (pause * 2).min(patience.longest_pause);
    }
}
