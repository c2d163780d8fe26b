//! Signals: Ctrl-C, and SIGTERM from a service manager, end a command. SIGHUP lets it read its files again.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ropewalk_runtime::moderation::Moderation;

use crate::failure::Failure;

/// Time for the packet that tells the peer about the end.
const FAREWELL: Duration = Duration::from_millis(50);

/// The threads of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// One. For one association: its tasks pass on each packet, and handing packets from thread to thread costs more than a
    /// second core is worth.
    One,
    /// One per core. For many associations.
    PerCore,
}

/// Runs one end of associations until it is interrupted or fails. With `moderation`, its threads are woken less often.
///
/// # Errors
/// [`Failure`] of the end, or if there are no threads.
pub fn run_until_interrupted(
    threads: Threads,
    moderation: Option<Arc<Moderation>>,
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
        // Installed before the end reports that it is ready: a signal may follow immediately.
        let mut interrupt = Interrupt::install();
        let result = tokio::select! {
            result = end => result,
            () = interrupt.wait() => Ok(()),
        };
        tokio::time::sleep(FAREWELL).await;
        result
    })
}

/// Handlers of these signals. From [`Interrupt::install`] on, a signal does not end the process by itself.
pub struct Interrupt {
    #[cfg(unix)]
    signals: [Option<tokio::signal::unix::Signal>; 2],
}

#[cfg(unix)]
impl Interrupt {
    /// Installs the handlers. Must be called before the command reports that it is ready: a signal may follow
    /// immediately.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn install() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
        Self { signals: kinds.map(|kind| signal(kind).ok()) }
    }

    /// Waits for the next signal.
    pub async fn wait(&mut self) {
        let [interrupt, terminate] = &mut self.signals;
        let next = async |signal: &mut Option<tokio::signal::unix::Signal>| match signal {
            Some(signal) => {
                signal.recv().await;
            }
            None => std::future::pending().await,
        };
        tokio::select! {
            () = next(interrupt) => {}
            () = next(terminate) => {}
        }
    }
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

/// Receives SIGHUPs if they are needed. Without a handler, SIGHUP ends the process, which is expected when a
/// terminal closes.
pub struct Hangups {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Hangups {
    /// Installs the handler if it is wanted.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(wanted: bool) -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let signal = wanted.then(|| signal(SignalKind::hangup()).ok()).flatten();
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
