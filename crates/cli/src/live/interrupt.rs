//! Signals. Ctrl-C, SIGTERM from a service manager, and other terminating signals end a command, which then undoes
//! its changes. On SIGHUP, a command reads its files again; if it has no such files, it ends.

use std::future::Future;
use std::sync::Arc;
#[cfg(unix)]
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(unix)]
use std::task::{Context, Poll};
use std::time::Duration;

use ropewalk_apps::tunnel::ThreadModeration;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Time for sending the packet that informs the peer of the end.
const FAREWELL: Duration = Duration::from_millis(50);

/// The threads of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// A single thread, for one association. Its tasks pass on each packet, and passing packets between threads
    /// costs more than a second core gains.
    One,
    /// One thread per core, for many associations.
    PerCore,
}

/// Runs one end of associations until it is interrupted or fails. With `moderation`, its threads are woken less often.
///
/// # Errors
/// [`Failure`] of the end, or if there are no threads.
pub fn run_until_interrupted(
    threads: Threads,
    moderation: Option<Arc<ThreadModeration>>,
    end: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let mut builder = match threads {
        Threads::One => tokio::runtime::Builder::new_current_thread(),
        Threads::PerCore => tokio::runtime::Builder::new_multi_thread(),
    };
    if let Some(moderation) = moderation {
        moderation.moderate(&mut builder);
    }
    let runtime = builder.enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::Run(format!("cannot start threads: {error}")))?;
    runtime.block_on(async {
        // Must be installed before the end reports that it is ready, because a signal may follow
        // immediately.
        let mut interrupt = Interrupt::install();
        let result = tokio::select! {
            result = end => result,
            () = interrupt.wait() => Ok(()),
        };
        tokio::time::sleep(FAREWELL).await;
        result
    })
}

/// Whether this command reads files again on SIGHUP instead of ending.
#[cfg(unix)]
static REREADS: AtomicBool = AtomicBool::new(false);

/// Handlers of the signals that end a command. After [`Interrupt::install`], a signal no longer ends the process
/// directly, so that the command can undo its changes.
pub struct Interrupt {
    #[cfg(unix)]
    signals: Vec<(SignalKind, Signal)>,
}

#[cfg(unix)]
impl Interrupt {
    /// Installs the handlers. Must be called before the command reports that it is ready: a signal may follow
    /// immediately.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn install() -> Self {
        let always = [SignalKind::interrupt(), SignalKind::terminate()];
        // `nohup` and shells that start a command in the background ignore these. They stay ignored.
        let unless_ignored = [
            SignalKind::hangup(),
            SignalKind::quit(),
            SignalKind::alarm(),
            SignalKind::user_defined1(),
            SignalKind::user_defined2(),
        ];
        let ignored = ignored_signals();
        let is_left = |kind: &SignalKind| ignored & (1 << (kind.as_raw_value() - 1)) == 0;
        let kinds = always.into_iter().chain(unless_ignored.into_iter().filter(is_left));
        let handled = kinds.filter_map(|kind| Some((kind, signal(kind).ok()?)));
        Self { signals: handled.collect() }
    }

    /// Waits for the next signal that ends the command.
    pub async fn wait(&mut self) {
        let next = |context: &mut Context<'_>| {
            for (kind, signal) in &mut self.signals {
                while signal.poll_recv(context).is_ready() {
                    if *kind != SignalKind::hangup() || !REREADS.load(Ordering::Relaxed) {
                        return Poll::Ready(());
                    }
                }
            }
            Poll::Pending
        };
        std::future::poll_fn(next).await;
    }
}

/// The signals that this process ignores, bit 0 for signal 1. On systems other than Linux, safe Rust cannot query
/// this: all signals count as ignored, and keep their initial disposition.
#[cfg(unix)]
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(u64::MAX)
}

#[cfg(not(unix))]
impl Interrupt {
    /// Nothing to install before the first wait.
    pub const fn install() -> Self {
        Self {}
    }

    /// Waits for Ctrl-C.
    pub async fn wait(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Receives SIGHUPs if they are needed. If not, SIGHUP ends the command, which is expected when a terminal closes.
pub struct Hangups {
    #[cfg(unix)]
    signal: Option<Signal>,
}

#[cfg(unix)]
impl Hangups {
    /// Installs the handler if it is wanted. From then on, a SIGHUP does not end the command.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(wanted: bool) -> Self {
        let signal = wanted.then(|| signal(SignalKind::hangup()).ok()).flatten();
        if signal.is_some() {
            REREADS.store(true, Ordering::Relaxed);
        }
        Self { signal }
    }

    /// Waits for the next SIGHUP.
    pub async fn next(&mut self) {
        match &mut self.signal {
            Some(signal) => {
                signal.recv().await;
            }
            None => std::future::pending().await,
        }
    }
}

#[cfg(not(unix))]
impl Hangups {
    /// Nothing to install.
    pub const fn new(_: bool) -> Self {
        Self {}
    }

    /// Waits for the next SIGHUP.
    pub async fn next(&mut self) {
        std::future::pending().await
    }
}
