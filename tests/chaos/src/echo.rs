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
use crate::echo_tracker::EchoTracker;
use crate::options::CommandOptions;

/// Maximum number of messages without an echo.
const OUTSTANDING: usize = 300;
/// Pause between messages.
const SEND_PAUSE: Duration = Duration::from_millis(8);
/// An association whose peer was killed stays silent. Only the user of the association can decide how long to wait.
const SILENCE_LIMIT: Duration = Duration::from_secs(20);
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// With `--defect`, one of this many messages is changed. The check must find it.
const DEFECT_EVERY: u64 = 50;

/// The same bytes with one bit changed.
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

pub async fn serve(options: &CommandOptions) -> Result<(), Failure> {
    let endpoint = Endpoint::open(options.listening()?)?;
    let defective = options.has("--defect");
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

pub async fn run(options: &CommandOptions) -> Result<(), Failure> {
    let target = Target { addresses: options.addresses("--to")?, key: Some(options.peer()?) };
    let (ended, ending) = watch::channel(false);
    tokio::spawn(async move {
        let mut rest = Vec::new();
        let _ = tokio::io::stdin().read_to_end(&mut rest).await;
        ended.send_replace(true);
    });
    // Unique to this process, so that an echo for an earlier process is recognised.
    let mut connection = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
    loop {
        connection += 1;
        // New sockets, as after a restart of the program.
        let endpoint = Endpoint::open(options.connecting()?)?;
        let Ok(association) = endpoint.connect(&target).await else {
            if *ending.borrow() {
                return Err("no association at the end".into());
            }
            sleep(RECONNECT_PAUSE).await;
            continue;
        };
        let client = Client {
            association: Arc::new(association),
            echo_tracker: Arc::new(Mutex::new(EchoTracker::new(connection))),
            began: wall_clock(),
        };
        if client.exchange(ending.clone()).await {
            return Ok(());
        }
    }
}

/// One association and its missing echoes.
#[derive(Clone)]
struct Client {
    association: Arc<Association>,
    echo_tracker: Arc<Mutex<EchoTracker>>,
    began: f64,
}

impl Client {
    fn echo_tracker(&self) -> MutexGuard<'_, EchoTracker> {
        self.echo_tracker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, event: &str, why: String) {
        let (began, ended) = (self.began, wall_clock());
        let outstanding = self.echo_tracker().outstanding();
        let line = json!({"event": event, "why": why, "began": began, "ended": ended, "outstanding": outstanding});
        println!("{line}");
    }

    /// Sends and receives until the test or the association ends. Returns true if the test has
    /// ended.
    async fn exchange(&self, ending: watch::Receiver<bool>) -> bool {
        let sender = self.clone();
        let sending = tokio::spawn(async move { sender.send(ending).await });
        let finished = self.receive(&sending).await;
        sending.abort();
        if finished {
            let _ = timeout(SILENCE_LIMIT, self.association.shutdown()).await;
        } else {
            self.association.abort();
        }
        finished
    }

    async fn send(&self, mut ending: watch::Receiver<bool>) {
        while !*ending.borrow() {
            let full = self.echo_tracker().outstanding() >= OUTSTANDING;
            if !full {
                let label = self.echo_tracker().send();
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
            let _ = timeout(SEND_PAUSE, ending.changed()).await;
        }
    }

    /// Receives echoes. Returns true if all have arrived and sending has ended.
    async fn receive(&self, sending: &tokio::task::JoinHandle<()>) -> bool {
        let (mut last_echo, mut last_report, mut counted) = (Instant::now(), Instant::now(), 0);
        loop {
            if last_report.elapsed() >= REPORT_INTERVAL {
                counted = self.count(counted);
                last_report = Instant::now();
            }
            if sending.is_finished() && self.echo_tracker().outstanding() == 0 {
                self.count(counted);
                return true;
            }
            match timeout(Duration::from_millis(100), self.association.receive()).await {
                Err(_) if last_echo.elapsed() < SILENCE_LIMIT => {}
                Err(_) if self.echo_tracker().outstanding() == 0 => last_echo = Instant::now(),
                Err(_) => {
                    self.report("silent", format!("no echo for {SILENCE_LIMIT:?}"));
                    return false;
                }
                Ok(None) => {
                    let why = self.association.ended().await;
                    self.report("lost", format!("{why:?}"));
                    return false;
                }
                Ok(Some(message)) => {
                    last_echo = Instant::now();
                    let taken = self.echo_tracker().take(message.stream, &message.bytes);
                    if let Err(why) = taken {
                        self.report("wrong", why);
                    }
                }
            }
        }
    }

    /// Prints the number of echoes since the last report.
    fn count(&self, before: u64) -> u64 {
        let now = self.echo_tracker().echoed;
        println!("{}", json!({"event": "count", "echoed": now - before}));
        now
    }
}
