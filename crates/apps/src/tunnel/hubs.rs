//! The ordered list of a client's hubs: which one it uses, and when it moves.
//!
//! ```text
//!   silent for a moment     request a new association from the hub, which may have restarted
//!   silent for `failover`   request one from all hubs in order
//!   one has answered        move there; until then the old association stays, and continues if its hub answers again
//! ```
//!
//! Silence does not count while no link may carry data. Requests use only links that may carry data.
//!
//! A hub may move: after a failed attempt to connect, its name is looked up again.
//!
//! While a client uses another hub than the first, it tries the preceding ones from time to time, and moves back to
//! one that has answered several times in a row.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ropewalk_runtime::endpoint::{Association, ConnectError, Endpoint, OpenError, Options, Target};
use ropewalk_runtime::seal::PublicKey;
use ropewalk_runtime::system::Changes;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::link_state::{Rules, obstacle};
use super::links::LinkLedger;
use super::machine::OUTSIDE_MARK;
use super::network_watch::NetworkWatch;
use crate::captive_portal::{self, CaptivePortal};
use crate::whereabouts::Whereabouts;

/// Poll interval of an association while data is unacknowledged. An idle client does not poll.
const LOOK: Duration = Duration::from_millis(100);
/// A hub is silent if it has sent nothing for this time, and twice the round-trip time, after a packet was sent
/// to it.
const SILENT: Duration = Duration::from_millis(300);
/// Value used for twice the round-trip time before it is measured.
const UNMEASURED: Duration = Duration::from_millis(600);
/// Additional silence of a hub before it is reported to the user. A restarted hub has answered by then.
const SAID_AFTER: Duration = Duration::from_secs(1);
/// How long a hub may take to open an association while there are others to try.
const ANSWER: Duration = Duration::from_secs(2);
/// How long the only hub may take until its name is looked up again.
const ANSWER_BEFORE_LOOKUP: Duration = Duration::from_secs(8);
/// Interval at which the hubs before the one in use are tried, and number of consecutive answers that
/// is required.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
const CHECKS: u32 = 3;
/// Waits between attempts to connect.
const SHORTEST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Poll interval for a link while none is up, if the system reports no change.
const LINK_LOOK: Duration = Duration::from_secs(5);

/// A hub, and how to reach it.
#[derive(Debug)]
pub struct Hub {
    options: Options,
    key: PublicKey,
    place: Whereabouts,
}

/// Callback that receives the addresses of all hubs when one has moved, before they are used.
#[derive(Clone)]
pub struct OnMoved(pub Arc<Told>);

type Told = dyn Fn(&[SocketAddr]) + Send + Sync;

impl fmt::Debug for OnMoved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnMoved")
    }
}

/// The hubs of a client, the preferred one first.
#[derive(Debug)]
pub struct HubList {
    /// At least one.
    pub hubs: Vec<Hub>,
    /// How long a hub may be silent before others are tried.
    pub failover: Duration,
    /// Called when a hub has moved.
    pub on_moved: Option<OnMoved>,
}

impl Hub {
    /// A hub with this key at this place.
    pub const fn new(options: Options, key: PublicKey, place: Whereabouts) -> Self {
        Self { options, key, place }
    }

    /// Its key.
    pub const fn key(&self) -> PublicKey {
        self.key
    }

    /// Its options with the interfaces that are up now, if they are found automatically.
    fn options(&self) -> Options {
        let options = self.options.clone();
        if options.automatic { options.automatic(&self.place.addresses()) } else { options }
    }
}

/// Reports to the user about the connection to a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The hub should have answered, and has sent nothing for too long.
    Silent,
    /// The hub has sent something.
    Answers,
    /// No link may carry data, for this reason.
    Blocked(String),
    /// A link may carry data again.
    Unblocked,
}

/// An association that a hub has just accepted. The client has not requested addresses yet.
#[derive(Debug)]
pub struct Fresh {
    /// Number of the hub in the list.
    pub index: usize,
    /// The endpoint of the association.
    pub endpoint: Endpoint,
    /// The association.
    pub association: Association,
}

/// Why there is no association with a hub.
#[derive(Debug, thiserror::Error)]
pub enum NoAssociation {
    /// This machine cannot open the sockets.
    #[error("{0}")]
    Local(OpenError),
    /// No link is up that could reach the hub.
    #[error("no link is up that could reach it")]
    NoLink,
    /// The hub refused, or did not answer for as long as an association waits.
    #[error("{0}")]
    Hub(ConnectError),
    /// The hub did not answer soon enough, and there are others to try.
    #[error("it does not answer")]
    Timeout,
}

impl HubList {
    /// The addresses of all hubs.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.hubs.iter().flat_map(|hub| hub.place.addresses()).collect()
    }

    /// Whether a link is up that could reach a hub.
    pub fn has_link(&self) -> bool {
        self.hubs.iter().any(|hub| hub.options().has_local())
    }

    /// The links whose networks answer HTTP requests to this hub themselves.
    pub async fn captive_portals(&self, index: usize) -> Vec<(String, CaptivePortal)> {
        let hub = &self.hubs[index];
        let mut found = Vec::new();
        for link in hub.options().locals {
            let mut ips = hub.place.addresses().into_iter().map(|at| at.ip().to_canonical());
            let Some(ip) = ips.find(|ip| ip.is_ipv4() == link.address.is_ipv4()) else { continue };
            if let Some(portal) = captive_portal::find(&link, ip, OUTSIDE_MARK).await {
                let own = link.address.ip().to_string();
                found.push((link.interface.unwrap_or(own), portal));
            }
        }
        found
    }

    /// Waits until a link is up that could reach a hub.
    pub async fn link_up(&self) {
        // Opened before the first check, so that no change is missed.
        let mut watch = NetworkWatch::open(Changes::Interfaces, LINK_LOOK);
        while !self.has_link() {
            watch.changed(Some(LINK_LOOK)).await;
        }
    }

    /// Opens an association with a hub. The wait for an answer is limited if there are other hubs. With `rules`, the
    /// handshake uses only links that may carry data, unless there are none.
    ///
    /// # Errors
    /// [`NoAssociation`].
    pub async fn open(&self, index: usize, rules: Rules<'_>) -> Result<Fresh, NoAssociation> {
        let hub = &self.hubs[index];
        if hub.place.begin_attempt().await
            && let Some(OnMoved(tell)) = &self.on_moved
        {
            tell(&self.addresses());
        }
        let target = Target { addresses: hub.place.addresses(), key: Some(hub.key) };
        let mut options = hub.options();
        options.handshake_avoids = rules.map(LinkLedger::forbidden).unwrap_or_default();
        let endpoint = Endpoint::open(options).map_err(|error| match error {
            OpenError::NoInterface => NoAssociation::NoLink,
            other => NoAssociation::Local(other),
        })?;
        let connected = endpoint.connect(&target);
        let limit = match (self.hubs.len(), hub.place.has_name()) {
            (2.., _) => Some(ANSWER),
            (_, true) => Some(ANSWER_BEFORE_LOOKUP),
            (_, false) => None,
        };
        let association = match limit {
            Some(limit) => timeout(limit, connected).await.map_err(|_| NoAssociation::Timeout)?,
            None => connected.await,
        };
        let association = association.map_err(NoAssociation::Hub)?;
        hub.place.confirm();
        Ok(Fresh { index, endpoint, association })
    }

    /// Waits until the hub in use has become silent and a hub has accepted a new association. `sent` is notified
    /// whenever data was sent. `tell` is called when the hub has been silent for a while, when it answers again, when
    /// no link may carry data, and when a link may again.
    pub async fn replacement(
        &self,
        index: usize,
        association: &Association,
        sent: &Notify,
        rules: Rules<'_>,
        tell: impl Fn(Condition),
    ) -> Fresh {
        loop {
            let mut watch = silent(association, sent, rules, &tell).await;
            let tells = async {
                sleep(SAID_AFTER).await;
                tell(Condition::Silent);
                std::future::pending::<Infallible>().await
            };
            tokio::select! {
                fresh = self.ask(index, rules) => return fresh,
                () = watch.answered(association) => tell(Condition::Answers),
                why = blocked(association, rules) => tell(Condition::Blocked(why)),
                never = tells => match never {},
            }
        }
    }

    /// Tries the hub with this number, then the others in order and this one again, until one has accepted.
    async fn ask(&self, index: usize, rules: Rules<'_>) -> Fresh {
        if let Ok(Ok(fresh)) = timeout(self.failover, self.open(index, rules)).await {
            return fresh;
        }
        let mut wait = SHORTEST_WAIT;
        let others = (0..self.hubs.len()).filter(|other| *other != index);
        let order: Vec<usize> = others.chain([index]).collect();
        loop {
            self.link_up().await;
            for index in &order {
                if let Ok(fresh) = self.open(*index, rules).await {
                    return fresh;
                }
            }
            sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Waits until a hub before the one in use has answered several times in a row. No hub is tried while no link may
    /// carry data.
    pub async fn preferred(
        &self,
        index: usize,
        association: &Association,
        rules: Rules<'_>,
    ) -> Fresh {
        let mut answers = vec![0; index];
        if answers.is_empty() {
            return std::future::pending().await;
        }
        loop {
            sleep(CHECK_INTERVAL).await;
            if obstacle(association, rules).is_some() {
                continue;
            }
            for (index, answers) in answers.iter_mut().enumerate() {
                match self.open(index, rules).await {
                    Ok(fresh) if *answers + 1 >= CHECKS => return fresh,
                    // No addresses are requested: the hub sees an association that ends immediately.
                    Ok(_) => *answers += 1,
                    Err(_) => *answers = 0,
                }
            }
        }
    }
}

/// Data that had arrived from a hub at the last check.
#[derive(Clone, Copy, Debug)]
struct Watch {
    received_packets: u64,
    at: Instant,
}

impl Watch {
    fn of(association: &Association) -> (Self, Duration) {
        let stats = association.stats();
        let paths = stats.iter().flat_map(|stats| &stats.paths);
        let received_packets = paths.clone().map(|path| path.traffic.received_packets).sum();
        let longest = paths.filter_map(|path| path.srtt_s).reduce(f64::max);
        let round_trips = longest.map_or(UNMEASURED, |srtt| Duration::from_secs_f64(2.0 * srtt));
        (Self { received_packets, at: Instant::now() }, SILENT + round_trips)
    }

    /// Waits until something arrives.
    async fn answered(&mut self, association: &Association) {
        while Self::of(association).0.received_packets == self.received_packets {
            sleep(LOOK).await;
        }
    }
}

/// Waits until an acknowledgement of the peer is overdue and the peer has sent nothing for too long. Time during
/// which no link may carry data does not count.
async fn silent(
    association: &Association,
    sent: &Notify,
    rules: Rules<'_>,
    tell: &impl Fn(Condition),
) -> Watch {
    // Another association may have been blocked.
    let mut may_be_blocked = true;
    let look = || {
        let why = obstacle(association, rules);
        let is_blocked = why.is_some();
        tell(why.map_or(Condition::Unblocked, Condition::Blocked));
        is_blocked
    };
    loop {
        sent.notified().await;
        let (mut last, mut limit) = Watch::of(association);
        // Until everything is acknowledged.
        while timeout(LOOK, association.flushed()).await.is_err() {
            let (now, longest) = Watch::of(association);
            let is_overdue = now.at - last.at >= limit;
            if may_be_blocked || is_overdue {
                may_be_blocked = look();
            }
            if may_be_blocked || now.received_packets != last.received_packets {
                (last, limit) = (now, longest);
            } else if is_overdue {
                return last;
            }
        }
        may_be_blocked = may_be_blocked && look();
    }
}

/// Waits until no link may carry data. Returns why.
async fn blocked(association: &Association, rules: Rules<'_>) -> String {
    loop {
        if let Some(why) = obstacle(association, rules) {
            return why;
        }
        sleep(SAID_AFTER).await;
    }
}

/// The hub that is tried next, and the pause before that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts {
    hubs: usize,
    index: usize,
    /// Number of hubs that have failed since one has accepted.
    failed: usize,
    wait: Duration,
}

impl Attempts {
    /// Starts with the first of this number of hubs.
    pub const fn new(hubs: usize) -> Self {
        Self { hubs, index: 0, failed: 0, wait: SHORTEST_WAIT }
    }

    /// The hub to try.
    pub const fn index(&self) -> usize {
        self.index
    }

    /// Notes that a hub has accepted.
    pub const fn on_accepted(&mut self, index: usize) {
        (self.index, self.failed, self.wait) = (index, 0, SHORTEST_WAIT);
    }

    /// Selects the next hub after one did not answer, or refused. Returns the pause before that, which is zero until
    /// all have failed.
    pub fn on_failed(&mut self) -> Duration {
        self.index = (self.index + 1) % self.hubs;
        self.failed += 1;
        if !self.failed.is_multiple_of(self.hubs) {
            return Duration::ZERO;
        }
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        self.wait
    }

    /// The association has ended after the hub had accepted it. Returns the pause before the same hub is tried again:
    /// a long one if another machine with the same key has taken over.
    pub const fn on_ended(&self, taken_over: bool) -> Duration {
        if taken_over { LONGEST_WAIT } else { SHORTEST_WAIT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hubs_are_tried_in_their_order_and_a_pause_follows_when_all_have_failed() {
        let mut attempts = Attempts::new(3);
        let mut tried = Vec::new();
        let pauses: Vec<u64> = (0..7)
            .map(|_| {
                tried.push(attempts.index());
                attempts.on_failed().as_millis() as u64
            })
            .collect();
        assert_eq!(tried, [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(pauses, [0, 0, 400, 0, 0, 800, 0]);
        attempts.on_accepted(1);
        assert_eq!((attempts.index(), attempts.on_ended(false)), (1, SHORTEST_WAIT));
        assert_eq!(attempts.on_ended(true), LONGEST_WAIT);
    }

    #[test]
    fn a_single_hub_is_tried_with_longer_and_longer_pauses() {
        let mut attempts = Attempts::new(1);
        let pauses: Vec<u64> = (0..7).map(|_| attempts.on_failed().as_millis() as u64).collect();
        assert_eq!(pauses, [400, 800, 1600, 3200, 5000, 5000, 5000]);
        assert_eq!(attempts.index(), 0);
    }
}
