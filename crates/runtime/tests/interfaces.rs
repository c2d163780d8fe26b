//! Interfaces and addresses that change while nothing is sent, in a network namespace of the test. Requires Linux and
//! permission to create a namespace; otherwise the test prints a message and passes.
#![cfg(target_os = "linux")]

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use ipnet::IpNet;
use nix::sched::{CloneFlags, unshare};
use ropewalk_runtime::endpoint::{
    Association, Endpoint, Observer, Options, PathCause, Target, TransportEvent, TransportEventKind,
};
use ropewalk_runtime::seal::{Allowed, SecretKey};
use ropewalk_runtime::system::routes::{add_address, remove_address, start_interface};
use ropewalk_runtime::system::{Changes, FileMonitor, NetworkMonitor};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep, timeout};

/// Timeout that no step should reach.
const PATIENCE: Duration = Duration::from_secs(60);

/// Index of the loopback interface.
const LOOPBACK: u32 = 1;
/// A third of the time after which an endpoint polls the interfaces without a notification.
const NOTICED: Duration = Duration::from_secs(10);
/// After this time an idle endpoint has finished its initial work.
const SETTLED: Duration = Duration::from_secs(2);

/// Runs a test in a new network namespace, in which only the loopback interface is up.
fn in_namespace(test: impl AsyncFnOnce() + Send + 'static) {
    let run = || {
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
            return eprintln!("skipped: no network namespace: {error}");
        }
        start_interface(LOOPBACK, 65_536).expect("the own namespace");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(test());
    };
    thread::spawn(run).join().expect("no panic");
}

fn address(last: u8) -> IpNet {
    format!("192.0.2.{last}/24").parse().expect("a network")
}

fn at(last: u8) -> SocketAddr {
    SocketAddr::new(address(last).addr(), 0)
}

async fn wait_for_changes(monitor: &NetworkMonitor) {
    timeout(PATIENCE, monitor.changed()).await.expect("in time").expect("it works");
}

/// An association from two addresses, and what its endpoint reports.
struct Pair {
    events: UnboundedReceiver<TransportEvent>,
    _endpoints: [Endpoint; 2],
    _associations: [Association; 2],
}

impl Pair {
    async fn open() -> Self {
        (1..=3).for_each(|last| add_address(LOOPBACK, address(last)).expect("a new address"));
        let [one, other] = [(); 2].map(|()| SecretKey::generate().expect("random numbers"));
        let key = Some(one.public());
        let server = Options::listening(&[at(1)]).sealed(one, Allowed::Anyone);
        let mut client = Options::connecting(&[at(2), at(3)]).sealed(other, Allowed::Anyone);
        let (sender, events) = unbounded_channel();
        let listener = move |event| drop(sender.send(event));
        client.observer = Some(Observer::new(ropewalk_base::Duration::from_millis(50), listener));
        let server = Endpoint::open(server).expect("a free port");
        let client = Endpoint::open(client).expect("free ports");
        let target = Target { addresses: server.locals().to_vec(), key };
        let near = client.connect(&target).await.expect("the server listens");
        let far = server.accept().await;
        let mut pair = Self { events, _endpoints: [server, client], _associations: [near, far] };
        let mut up = 0;
        while up < 2 {
            up +=
                usize::from(matches!(pair.next(PATIENCE).await, TransportEventKind::PathUp { .. }));
        }
        pair
    }

    /// The next event, which must arrive within `limit`.
    async fn next(&mut self, limit: Duration) -> TransportEventKind {
        timeout(limit, self.events.recv()).await.expect("in time").expect("an event").kind
    }
}

#[test]
fn an_idle_endpoint_notices_at_once_that_an_address_disappears_and_returns() {
    in_namespace(async || {
        let mut pair = Pair::open().await;
        for _ in 0..2 {
            sleep(SETTLED).await;
            remove_address(LOOPBACK, address(3)).expect("it is there");
            let event = pair.next(NOTICED).await;
            let is_down = matches!(
                event,
                TransportEventKind::PathDown { cause: PathCause::InterfaceDown, .. }
            );
            assert!(is_down, "{event:?}");
            sleep(SETTLED).await;
            add_address(LOOPBACK, address(3)).expect("it is gone");
            let event = pair.next(NOTICED).await;
            assert!(matches!(event, TransportEventKind::PathUp { .. }), "{event:?}");
        }
    });
}

#[test]
fn changes_that_overflow_the_buffer_of_notifications_are_noticed_as_one() {
    in_namespace(async || {
        let monitor = NetworkMonitor::open(Changes::Interfaces).expect("it is permitted");
        // Each of these takes some hundred bytes of a buffer of at most a few hundred kilobytes.
        for _ in 0..2000 {
            add_address(LOOPBACK, address(9)).expect("a new address");
            remove_address(LOOPBACK, address(9)).expect("it is there");
        }
        wait_for_changes(&monitor).await;
        while timeout(Duration::ZERO, monitor.changed()).await.is_ok() {}
        let quiet = timeout(Duration::from_millis(300), monitor.changed()).await;
        assert!(quiet.is_err(), "nothing has changed since");
        add_address(LOOPBACK, address(9)).expect("a new address");
        wait_for_changes(&monitor).await;
    });
}

#[test]
fn a_monitor_of_the_network_tells_when_another_program_switches_forwarding() {
    in_namespace(async || {
        let monitor = NetworkMonitor::open(Changes::Network).expect("it is permitted");
        for value in ["1", "0"] {
            fs::write("/proc/sys/net/ipv4/conf/lo/forwarding", value).expect("the own namespace");
            wait_for_changes(&monitor).await;
            while timeout(Duration::ZERO, monitor.changed()).await.is_ok() {}
        }
    });
}

/// Waits until the monitor reports a change, and skips further events of the same change.
async fn wait_for_file(monitor: &FileMonitor) {
    timeout(PATIENCE, monitor.changed()).await.expect("in time").expect("it works");
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(100) {
        let _ = timeout(Duration::from_millis(20), monitor.changed()).await;
    }
}

#[tokio::test]
async fn every_way_to_change_a_file_is_noticed_and_other_files_do_not_matter() {
    let dir = std::env::temp_dir().join(format!("ropewalk-monitor-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(dir.join("elsewhere")).expect("a directory");
    let (file, target) = (dir.join("resolv.conf"), dir.join("elsewhere/stub.conf"));
    let monitor = FileMonitor::open(&file).expect("inotify");
    let write = |path: &PathBuf, text| fs::write(path, text).expect("written");
    type Change<'a> = (&'a str, &'a dyn Fn());
    let changes: [Change<'_>; 7] = [
        ("created", &|| write(&file, "a")),
        ("written", &|| write(&file, "b")),
        ("replaced", &|| {
            write(&dir.join("new"), "c");
            fs::rename(dir.join("new"), &file).expect("renamed");
        }),
        ("written after that", &|| write(&file, "d")),
        ("replaced by a link", &|| {
            write(&target, "e");
            std::os::unix::fs::symlink("elsewhere/stub.conf", dir.join("link")).expect("a link");
            fs::rename(dir.join("link"), &file).expect("renamed");
        }),
        ("its target replaced", &|| {
            write(&dir.join("elsewhere/new"), "f");
            fs::rename(dir.join("elsewhere/new"), &target).expect("renamed");
        }),
        ("removed", &|| fs::remove_file(&file).expect("it is there")),
    ];
    for (what, change) in changes {
        let _ = timeout(Duration::ZERO, monitor.changed()).await;
        write(&dir.join("other"), what);
        let quiet = timeout(Duration::from_millis(100), monitor.changed()).await;
        assert!(quiet.is_err(), "before it was {what}");
        change();
        wait_for_file(&monitor).await;
    }
    fs::remove_dir_all(dir).expect("an own directory");
}
