//! Waits for changes of interfaces, addresses and routes, even if the system does not report them.

use std::time::Duration;

use ropewalk_runtime::system::{Changes, NetworkMonitor};
use tokio::time::{sleep, timeout};

/// Notifications of the system, or a timer if the system refuses them.
#[derive(Debug)]
pub struct NetworkWatch {
    monitor: Option<NetworkMonitor>,
    poll_interval: Duration,
}

impl NetworkWatch {
    /// Starts to report all changes; without notifications, whenever `poll_interval` has passed.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open(changes: Changes, poll_interval: Duration) -> Self {
        Self { monitor: NetworkMonitor::open(changes).ok(), poll_interval }
    }

    /// Waits until something may have changed since the last call, at most for `limit`.
    pub async fn changed(&mut self, limit: Option<Duration>) {
        let Some(monitor) = &self.monitor else {
            return sleep(limit.unwrap_or(self.poll_interval)).await;
        };
        let result = match limit {
            None => monitor.changed().await,
            Some(limit) => timeout(limit, monitor.changed()).await.unwrap_or(Ok(())),
        };
        if result.is_err() {
            self.monitor = None;
        }
    }
}
