//! Waits for changes to the machine, and determines what must be compared and when.

use std::future::pending;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ropewalk_runtime::system::{Changes, FileMonitor, NetworkMonitor};
use tokio::time::{Instant, sleep_until};

/// Interval of checks without a notification. Some changes cause none, such as those of a file that is mounted from
/// another machine.
const SAFETY_INTERVAL: Duration = Duration::from_secs(30);
/// The same on a system that refuses notifications, and after a failure. Also the minimum time between two checks of
/// the name servers: another program may write its own whenever it detects those of the tunnel.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Minimum time between two checks of the network. Changes come in groups: the first is checked immediately, and the
/// last when the group is over.
const NETWORK_PAUSE: Duration = Duration::from_millis(100);
/// Delay after a change of the name servers: a program may be about to write the file that it has just created.
const FILE_DELAY: Duration = Duration::from_millis(100);

/// The state that must be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// The packet filter and the rules of policy routing that close the machine.
    Filter,
    /// The same, and the device, routes and forwarding.
    Network,
    /// The file of the name servers.
    NameServers,
}

/// When one part of the machine is checked.
#[derive(Debug)]
struct Turn {
    /// The earliest time of a check after a change.
    not_before: Instant,
    due: Option<Instant>,
    /// Whether there was a change since the last check.
    is_changed: bool,
}

impl Turn {
    const fn new(now: Instant) -> Self {
        Self { not_before: now, due: None, is_changed: false }
    }

    /// Schedules a check at this time at the latest.
    fn look_at(&mut self, time: Instant) {
        self.due = Some(self.due.map_or(time, |due| due.min(time)));
    }

    /// Schedules a check after a change, at the earliest after `delay`.
    fn on_change(&mut self, now: Instant, delay: Duration) {
        self.is_changed = true;
        self.look_at(self.not_before.max(now + delay));
    }

    /// Takes the check if it is due. The check after the next change follows at the earliest after `pause`. Returns
    /// whether there was a change.
    fn take(&mut self, now: Instant, pause: Duration) -> Option<bool> {
        let is_changed = self.is_changed;
        let is_due = self.due.is_some_and(|due| due <= now);
        is_due.then(|| *self = Self { not_before: now + pause, due: None, is_changed: false });
        is_due.then_some(is_changed)
    }
}

/// The times of the next comparisons.
#[derive(Debug)]
struct Pace {
    network: Turn,
    name_servers: Turn,
}

impl Pace {
    const fn new(now: Instant) -> Self {
        Self { network: Turn::new(now), name_servers: Turn::new(now) }
    }

    fn on_network(&mut self, now: Instant) {
        self.network.on_change(now, Duration::ZERO);
    }

    fn on_file(&mut self, now: Instant) {
        self.name_servers.on_change(now, FILE_DELAY);
    }

    /// Schedules another check after a failure.
    fn retry(&mut self, now: Instant, look: Look) {
        let turn = match look {
            Look::NameServers => &mut self.name_servers,
            Look::Filter | Look::Network => &mut self.network,
        };
        turn.look_at(now + POLL_INTERVAL);
    }

    /// When [`Self::take`] returns the next check.
    fn next(&self) -> Option<Instant> {
        [self.network.due, self.name_servers.due].into_iter().flatten().min()
    }

    /// The check that is due.
    fn take(&mut self, now: Instant) -> Option<Look> {
        if let Some(is_changed) = self.network.take(now, NETWORK_PAUSE) {
            // The kernel does not report each route that ends, and the group of changes may not be over.
            if is_changed {
                self.network.look_at(now + NETWORK_PAUSE);
            }
            return Some(Look::Network);
        }
        self.name_servers.take(now, POLL_INTERVAL).map(|_| Look::NameServers)
    }
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
    fn open(opened: io::Result<M>) -> Self {
        opened.map_or(Self::Refused, Self::Open)
    }

    const fn is_refused(&self) -> bool {
        matches!(self, Self::Refused)
    }

    /// Waits for a notification.
    async fn changed(&mut self, changed: impl AsyncFn(&M) -> io::Result<()>) {
        match self {
            Self::Open(monitor) => {
                if changed(monitor).await.is_err() {
                    *self = Self::Refused;
                }
            }
            Self::Unneeded | Self::Refused => pending().await,
        }
    }
}

/// Waits for changes.
#[derive(Debug)]
pub(super) struct Watch {
    network: Source<NetworkMonitor>,
    rules: Source<NetworkMonitor>,
    filter: Source<NetworkMonitor>,
    file: Source<FileMonitor>,
    /// The file that is watched.
    path: Option<PathBuf>,
    pace: Pace,
    /// When everything is checked without a change.
    next_poll: Instant,
}

impl Watch {
    /// Starts to watch the network.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open() -> Self {
        let now = Instant::now();
        Self {
            network: Source::open(NetworkMonitor::open(Changes::Network)),
            rules: Source::Unneeded,
            filter: Source::Unneeded,
            file: Source::Unneeded,
            path: None,
            pace: Pace::new(now),
            next_poll: now,
        }
    }

    /// Starts to watch the packet filter and rules of a closed or forwarding machine, and this file.
    pub fn also(&mut self, filter: bool, file: Option<&Path>) {
        if filter && matches!(self.filter, Source::Unneeded) {
            self.filter = Source::open(NetworkMonitor::open(Changes::Filter));
            self.rules = Source::open(NetworkMonitor::open(Changes::Rules));
        }
        if self.path.as_deref() != file {
            self.path = file.map(Path::to_owned);
            self.file = file.map_or(Source::Unneeded, |file| Source::open(FileMonitor::open(file)));
            self.pace.on_file(Instant::now());
        }
    }

    /// Schedules another check soon after a failure.
    pub fn retry(&mut self, look: Look) {
        self.pace.retry(Instant::now(), look);
    }

    /// Waits until a comparison is due. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Look {
        loop {
            let now = Instant::now();
            if self.next_poll <= now {
                self.next_poll = now + self.poll_interval();
                self.pace.network.look_at(now);
                self.pace.name_servers.look_at(now);
            }
            if let Some(look) = self.pace.take(now) {
                return look;
            }
            let due = self.pace.next().map_or(self.next_poll, |due| due.min(self.next_poll));
            tokio::select! {
                // Until the rules are restored, more may leave or be forwarded than should be.
                () = self.filter.changed(NetworkMonitor::changed) => return Look::Filter,
                () = self.rules.changed(NetworkMonitor::changed) => return Look::Filter,
                () = self.network.changed(NetworkMonitor::changed) => {
                    self.pace.on_network(Instant::now());
                }
                () = self.file.changed(FileMonitor::changed) => self.pace.on_file(Instant::now()),
                () = sleep_until(due) => {}
            }
        }
    }

    const fn poll_interval(&self) -> Duration {
        let Self { network, rules, filter, file, .. } = self;
        let is_refused =
            network.is_refused() || rules.is_refused() || filter.is_refused() || file.is_refused();
        if is_refused { POLL_INTERVAL } else { SAFETY_INTERVAL }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STEP: Duration = Duration::from_millis(10);

    /// The checks that follow from changes at these times, each with its time.
    fn looks(changes: &[(u64, bool)]) -> Vec<(Duration, Look)> {
        let begin = Instant::now();
        let mut pace = Pace::new(begin);
        let mut found = Vec::new();
        let end = changes.iter().map(|(step, _)| step).max().map_or(0, |last| last + 100);
        for step in 0..=end {
            let time = STEP * step as u32;
            for (_, is_file) in changes.iter().filter(|(at, _)| *at == step) {
                if *is_file { pace.on_file(begin + time) } else { pace.on_network(begin + time) }
            }
            while let Some(look) = pace.take(begin + time) {
                found.push((time, look));
            }
        }
        found
    }

    proptest! {
        #[test]
        fn every_change_is_looked_at_and_no_program_is_answered_more_often_than_it_may_be(
            changes in proptest::collection::vec((0_u64..300, any::<bool>()), 1..40)
        ) {
            let found = looks(&changes);
            for (look, pause) in
                [(Look::Network, NETWORK_PAUSE), (Look::NameServers, POLL_INTERVAL)]
            {
                let times: Vec<_> =
                    found.iter().filter(|(_, one)| *one == look).map(|(time, _)| *time).collect();
                prop_assert!(times.windows(2).all(|two| two[1] - two[0] >= pause), "{times:?}");
                let is_file = look == Look::NameServers;
                for (step, _) in changes.iter().filter(|(_, file)| *file == is_file) {
                    let at = STEP * *step as u32;
                    let seen = times.iter().any(|time| (at..=at + FILE_DELAY + pause).contains(time));
                    prop_assert!(seen, "{look:?} of {at:?}: {times:?}");
                }
            }
        }
    }

    #[test]
    fn a_change_of_the_network_is_looked_at_immediately_and_when_its_group_is_over() {
        let expected = [(0, Look::Network), (100, Look::Network)];
        let expected = expected.map(|(ms, look)| (Duration::from_millis(ms), look));
        assert_eq!(looks(&[(0, false)]), expected);
    }

    #[tokio::test]
    async fn a_program_that_writes_again_and_again_is_answered_twice_a_second_at_most() {
        let directory = std::env::temp_dir().join(format!("ropewalk-watch-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let file = directory.join("resolv.conf");
        let mut watch = Watch::open();
        watch.also(false, Some(&file));
        let begin = Instant::now();
        for number in 0..3 {
            std::fs::write(&file, format!("{number}")).expect("written");
            while watch.next().await != Look::NameServers {}
        }
        let (lasted, least) = (begin.elapsed(), 2 * POLL_INTERVAL);
        assert!((least..SAFETY_INTERVAL).contains(&lasted), "{lasted:?}");
        std::fs::remove_dir_all(directory).expect("an own directory");
    }
}
