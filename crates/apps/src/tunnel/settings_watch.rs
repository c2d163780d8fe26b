//! Notices that settings of the machine may have to be set again, because other programs change them: a DHCP client writes its
//! name servers, and interfaces appear.

use std::io;
use std::path::Path;
use std::time::Duration;

use ropewalk_runtime::system::{Changes, FileMonitor, NetworkMonitor};
use tokio::time::Instant;

/// How long the settings are left alone without a notification. Some changes have none, such as those of a file that is
/// mounted from another machine.
const SAFETY_INTERVAL: Duration = Duration::from_secs(30);
/// The same on a system that refuses notifications. Also the shortest time from change to change: another program may write
/// its own settings whenever it notices those of the tunnel.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Delay after a change. Changes come in groups, and a program may be about to write the file that it has just created.
const DELAY: Duration = Duration::from_millis(100);

/// Waits for changes.
#[derive(Debug)]
pub struct SettingsWatch {
    file: Source<FileMonitor>,
    forwarding: Source<NetworkMonitor>,
    filter: Source<NetworkMonitor>,
    /// When the next change is told at the earliest.
    not_before: Instant,
}

/// Notifications of one kind.
#[derive(Debug)]
enum Source<M> {
    /// Changes of this kind do not matter.
    Unneeded,
    /// The system refuses notifications.
    Refused,
    /// The system notifies.
    Open(M),
}

impl<M> Source<M> {
    fn open(opened: Option<io::Result<M>>) -> Self {
        match opened {
            None => Self::Unneeded,
            Some(Err(_)) => Self::Refused,
            Some(Ok(monitor)) => Self::Open(monitor),
        }
    }

    /// Waits for a notification.
    async fn notified(&mut self, changed: impl AsyncFn(&M) -> io::Result<()>) {
        match self {
            Self::Open(monitor) => {
                if changed(monitor).await.is_err() {
                    *self = Self::Refused;
                }
            }
            Self::Unneeded | Self::Refused => std::future::pending().await,
        }
    }
}

impl SettingsWatch {
    /// Watches a file, and with `forwarding` whether the interfaces forward and the packet filter, from now on.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open(file: Option<&Path>, forwarding: bool) -> Self {
        let open = |changes| Source::open(forwarding.then(|| NetworkMonitor::open(changes)));
        Self {
            file: Source::open(file.map(FileMonitor::open)),
            forwarding: open(Changes::Forwarding),
            filter: open(Changes::Filter),
            not_before: Instant::now(),
        }
    }

    /// Waits until something may have changed since the last call; for ever if nothing matters.
    pub async fn changed(&mut self) {
        let Self { file, forwarding, filter, not_before } = self;
        let interval = match (&file, &forwarding) {
            (Source::Unneeded, Source::Unneeded) => return std::future::pending().await,
            (Source::Refused, _) | (_, Source::Refused) => POLL_INTERVAL,
            _ => SAFETY_INTERVAL,
        };
        tokio::select! {
            () = file.notified(FileMonitor::changed) => {}
            () = forwarding.notified(NetworkMonitor::changed) => {}
            // Until the rules are there again, more may be forwarded than should be.
            () = filter.notified(NetworkMonitor::changed) => return,
            () = tokio::time::sleep(interval) => return,
        }
        tokio::time::sleep_until((*not_before).max(Instant::now() + DELAY)).await;
        *not_before = Instant::now() + POLL_INTERVAL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_that_writes_again_and_again_is_answered_twice_a_second_at_most() {
        let directory = std::env::temp_dir().join(format!("ropewalk-watch-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let file = directory.join("resolv.conf");
        let mut watch = SettingsWatch::open(Some(&file), false);
        let begin = Instant::now();
        for number in 0..3 {
            std::fs::write(&file, format!("{number}")).expect("written");
            watch.changed().await;
        }
        let (lasted, least) = (begin.elapsed(), DELAY + 2 * POLL_INTERVAL);
        assert!((least..SAFETY_INTERVAL).contains(&lasted), "{lasted:?}");
        std::fs::remove_dir_all(directory).expect("an own directory");
    }
}
