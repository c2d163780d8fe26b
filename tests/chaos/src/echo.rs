//! Both ends on real sockets.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use ropewalk_runtime::endpoint::{Association, Endpoint, Target};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::Failure;
use crate::ledger::Ledger;
use crate::words::Words;

/// Messages on their way at most.
const OUTSTANDING: usize = 300;
/// Between one message and the next.
const PAUSE: Duration = Duration::from_millis(8);
/// An association whose peer has been killed is silent for good, and only a user can know that it has waited enough.
const SILENCE: Duration = Duration::from_secs(20);
const AGAIN: Duration = Duration::from_millis(500);
const SECOND: Duration = Duration::from_secs(1);

/// With `--defect`, one message in so many is changed: the check is to find it.
const DEFECT_EVERY: u64 = 50;

/// The same with one bit changed.
fn changed(bytes: &Bytes) -> Bytes {
    let mut bytes = bytes.to_vec();
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
    bytes.into()
}

fn wall_clock() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

pub async fn serve(words: &Words) -> Result<(), Failure> {
    let endpoint = Endpoint::open(words.listening()?)?;
    let defective = words.has("--defect");
    loop {
        let association = endpoint.accept().await;
        tokio::spawn(async move {
            let mut count = 0_u64;
            while let Some(message) = association.receive().await {
                count += 1;
                let unordered = message.ppid == 1;
                let (stream, ppid, mut bytes) = (message.stream, message.ppid, message.bytes);
                if defective && count.is_multiple_of(DEFECT_EVERY) {
                    bytes = changed(&bytes);
                }
                let sent = match unordered {
                    true => association.send_unordered(stream, ppid, bytes).await,
                    false => association.send(stream, ppid, bytes).await,
                };
                if sent.is_err() {
                    return;
                }
            }
        });
    }
}

pub async fn run(words: &Words) -> Result<(), Failure> {
    let target = Target { addresses: words.addresses("--to")?, key: Some(words.peer()?) };
    let (ended, ending) = watch::channel(false);
    tokio::spawn(async move {
        let mut rest = Vec::new();
        let _ = tokio::io::stdin().read_to_end(&mut rest).await;
        ended.send_replace(true);
    });
    // Of this process and no other, so that an echo cannot be taken for one of an earlier process.
    let mut connection = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
    loop {
        connection += 1;
        // Fresh sockets, as a program has that was started again.
        let endpoint = Endpoint::open(words.connecting()?)?;
        let Ok(association) = endpoint.connect(&target).await else {
            if *ending.borrow() {
                return Err("no association at the end".into());
            }
            sleep(AGAIN).await;
            continue;
        };
        let client = Client {
            association: Arc::new(association),
            ledger: Arc::new(Mutex::new(Ledger::new(connection))),
            began: wall_clock(),
        };
        if client.exchange(ending.clone()).await {
            return Ok(());
        }
    }
}

/// One association and what it owes us.
#[derive(Clone)]
struct Client {
    association: Arc<Association>,
    ledger: Arc<Mutex<Ledger>>,
    began: f64,
}

impl Client {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, event: &str, why: String) {
        let (began, ended) = (self.began, wall_clock());
        let outstanding = self.ledger().outstanding();
        let line = json!({"event": event, "why": why, "began": began, "ended": ended, "outstanding": outstanding});
        println!("{line}");
    }

    /// Until all is over, or the association is. Whether all is over.
    async fn exchange(&self, ending: watch::Receiver<bool>) -> bool {
        let sender = self.clone();
        let sending = tokio::spawn(async move { sender.send(ending).await });
        let finished = self.receive(&sending).await;
        sending.abort();
        if finished {
            let _ = timeout(SILENCE, self.association.shutdown()).await;
        } else {
            self.association.abort();
        }
        finished
    }

    async fn send(&self, mut ending: watch::Receiver<bool>) {
        while !*ending.borrow() {
            let full = self.ledger().outstanding() >= OUTSTANDING;
            if !full {
                let label = self.ledger().send();
                let (stream, unordered) = label.stream();
                let (ppid, bytes) = (u32::from(unordered), label.message());
                let sent = match unordered {
                    true => self.association.send_unordered(stream, ppid, bytes).await,
                    false => self.association.send(stream, ppid, bytes).await,
                };
                if sent.is_err() {
                    return std::future::pending().await;
                }
            }
            let _ = timeout(PAUSE, ending.changed()).await;
        }
    }

    /// Takes echoes. Whether all have come and no more are to be asked for.
    async fn receive(&self, sending: &tokio::task::JoinHandle<()>) -> bool {
        let (mut heard, mut told, mut counted) = (Instant::now(), Instant::now(), 0);
        loop {
            if told.elapsed() >= SECOND {
                counted = self.count(counted);
                told = Instant::now();
            }
            if sending.is_finished() && self.ledger().outstanding() == 0 {
                self.count(counted);
                return true;
            }
            match timeout(Duration::from_millis(100), self.association.receive()).await {
                Err(_) if heard.elapsed() < SILENCE => {}
                Err(_) if self.ledger().outstanding() == 0 => heard = Instant::now(),
                Err(_) => {
                    self.tell("silent", format!("no echo for {SILENCE:?}"));
                    return false;
                }
                Ok(None) => {
                    let why = self.association.ended().await;
                    self.tell("lost", format!("{why:?}"));
                    return false;
                }
                Ok(Some(message)) => {
                    heard = Instant::now();
                    let taken = self.ledger().take(message.stream, &message.bytes);
                    if let Err(why) = taken {
                        self.tell("wrong", why);
                    }
                }
            }
        }
    }

    /// Says how many echoes have come since the last time.
    fn count(&self, before: u64) -> u64 {
        let now = self.ledger().echoed;
        println!("{}", json!({"event": "count", "echoed": now - before}));
        now
    }
}
