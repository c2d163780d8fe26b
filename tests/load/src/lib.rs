//! Many tunnel clients of one running hub, in one process.
//!
//! ```text
//!   namespace of the clients                        namespace of the hub
//!   TCP connections -- TUN -- clients == veth == ropewalk tunnel serve -- TUN -- TCP servers
//! ```
//!
//! Each client has its own key, endpoint and association, and the same lane as `ropewalk tunnel up`. All clients
//! share one TUN device. Its packets are assigned to clients by their source address. The hub is the real command.
//! Idle clients carry nothing. Each busy client has one TCP connection of the kernel; uploads and downloads
//! alternate.

#![allow(clippy::disallowed_methods, reason = "a program on real sockets that waits and measures")]

mod clients;
mod hub;
mod places;
mod report;
mod traffic;

use std::path::Path;
use std::time::{Duration, Instant};

pub use self::clients::{Client, Fleet};
pub use self::hub::{Hub, HubOptions};
pub use self::places::{HUB_ADDRESS, Places, SERVER_ADDRESS, source};
pub use self::report::{Group, Report};

/// Why a run failed.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Maximum time until the hub notices that all clients have left.
const LEAVE: Duration = Duration::from_secs(60);

/// Parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Number of clients.
    pub clients: usize,
    /// How many of them are busy after the idle phase.
    pub busy: usize,
    /// Length of the idle phase in which the hub's CPU time is measured.
    pub idle: Duration,
    /// Warm-up of the busy clients, which is not measured.
    pub warmup: Duration,
    /// Length of the measurement.
    pub measured: Duration,
}

/// Runs the load against a hub of this `ropewalk`.
///
/// # Errors
/// No root, no namespaces, or the hub does not serve.
pub fn run(binary: &Path, load: Load) -> Result<Report, Failure> {
    let places = Places::new()?;
    let options = HubOptions { clients: load.clients, ..HubOptions::default() };
    let hub = Hub::start(binary, &places, &options)?;
    let mut report = Report::new(load);
    let before = hub.memory()?;
    on_runtime(&places, async || {
        let started = Instant::now();
        let fleet = Fleet::connect(&hub, load.clients).await?;
        report.connect_s = started.elapsed().as_secs_f64();
        settle(&hub).await?;
        let cpu = hub.cpu()?;
        tokio::time::sleep(load.idle).await;
        report.on_idle(before, hub.memory()?, (hub.cpu()? - cpu).div_f64(load.idle.as_secs_f64()));
        if load.busy > 0 {
            traffic::measure(&places, &hub, &fleet, load, &mut report).await?;
            settle(&hub).await?;
            report.memory_after_bytes = hub.memory()?;
        }
        let (cpu, started) = (hub.cpu()?, Instant::now());
        drop(fleet);
        while hub.clients(binary)? > 0 {
            if started.elapsed() > LEAVE {
                return Err("the hub does not notice that its clients have left".into());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        report.leave_cpu_s = (hub.cpu()? - cpu).as_secs_f64();
        Ok(())
    })?;
    let hub = hub.restart(binary, &places, &options)?;
    on_runtime(&places, async || {
        let started = Instant::now();
        let _fleet = Fleet::connect(&hub, load.clients).await?;
        report.return_s = started.elapsed().as_secs_f64();
        Ok(())
    })?;
    report.said = hub.said();
    Ok(report)
}

/// Runs `what` with all threads in the namespace of the clients.
fn on_runtime<F: Future<Output = Result<(), Failure>>>(
    places: &Places,
    what: impl FnOnce() -> F + Send,
) -> Result<(), Failure> {
    places.at_clients(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(what())
    })
}

/// Waits until the hub has published the state of all clients, and its memory no longer grows, for at most ten
/// seconds.
async fn settle(hub: &Hub) -> Result<(), Failure> {
    let mut before = 0;
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = hub.memory()?;
        if now <= before {
            return Ok(());
        }
        before = now;
    }
    Ok(())
}
