//! Requests of the user during an association (RFC 9260, 11.1.9, 11.1.10, 11.1.12, 11.1.13).

use ropewalk_base::{Duration, PathId, Time};

use super::super::rx::SACK_DELAY_LIMIT;
use super::{Association, State};
use crate::multipath::TxPath;
use crate::path::{FailureLimits, PathStatus, RtoLimits};

/// The protocol parameters (RFC 9260, 16) that can be changed at any time. RTO.Alpha and RTO.Beta are not among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// RTO.Initial, RTO.Min and RTO.Max.
    pub rto: RtoLimits,
    /// Association.Max.Retrans. RFC 9260, 8.2: if it exceeds the sum of Path.Max.Retrans over all paths, the
    /// association may still count as alive when all paths are inactive.
    pub association_max_retrans: u32,
    /// Path.Max.Retrans of the paths without their own value ([`Association::set_path_max_retrans`]), and
    /// the number of errors after which a path is potentially failed.
    pub failure: FailureLimits,
    /// Max.Init.Retransmits.
    pub max_init_retransmits: u32,
    /// HB.interval of the paths without their own value ([`Association::set_heartbeats`]).
    pub heartbeat_interval: Duration,
    /// HB.Max.Burst; 0: no limit.
    pub heartbeat_burst: u32,
    /// Max.Burst; 0: no limit.
    pub max_burst: u32,
    /// SACK.Delay.
    pub sack_delay: Duration,
    /// Number of packets with DATA after which a SACK is sent.
    pub sack_every_packets: u32,
    /// Valid.Cookie.Life.
    pub cookie_life: Duration,
}

/// Why [`Association::set_parameters`] refused the parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParameterError {
    /// RTO.Initial or RTO.Max is zero, or RTO.Initial or RTO.Min exceeds RTO.Max.
    #[error("RTO.Min and RTO.Initial are at most RTO.Max, and the latter two not zero")]
    Rto,
    /// SACK.Delay is more than RFC 9260, 6.2, allows.
    #[error("SACKs are delayed by 500 ms at most")]
    SackDelay,
    /// The number of packets per SACK is zero.
    #[error("a SACK is sent for every packet with DATA, or for each so many of them")]
    NoSack,
    /// Valid.Cookie.Life is zero: every cookie would be stale.
    #[error("a cookie that lives for no time is never taken")]
    CookieLife,
}

impl Parameters {
    fn check(&self) -> Result<(), ParameterError> {
        let RtoLimits { initial, min, max } = self.rto;
        if initial == Duration::ZERO || initial.max(min) > max {
            return Err(ParameterError::Rto);
        }
        if self.sack_delay > SACK_DELAY_LIMIT {
            return Err(ParameterError::SackDelay);
        }
        if self.sack_every_packets == 0 {
            return Err(ParameterError::NoSack);
        }
        if self.cookie_life == Duration::ZERO {
            return Err(ParameterError::CookieLife);
        }
        Ok(())
    }
}

impl Association {
    /// The current protocol parameters.
    pub const fn parameters(&self) -> Parameters {
        let config = &self.config;
        Parameters {
            rto: config.rto,
            association_max_retrans: config.association_max_retrans,
            failure: config.failure,
            max_init_retransmits: config.max_init_retransmits,
            heartbeat_interval: config.heartbeat_interval,
            heartbeat_burst: config.heartbeat_burst,
            max_burst: config.max_burst,
            sack_delay: config.sack.delay,
            sack_every_packets: config.sack.every_packets,
            cookie_life: config.cookie_life,
        }
    }

    /// Changes the protocol parameters from now on (RFC 9260, 11.1.13). Running timers keep their deadlines,
    /// except those of HEARTBEATs to idle addresses and of the first INIT.
    ///
    /// # Errors
    /// [`ParameterError`]; nothing is changed then.
    pub fn set_parameters(
        &mut self,
        now: Time,
        parameters: Parameters,
    ) -> Result<(), ParameterError> {
        parameters.check()?;
        let Parameters { rto, failure, .. } = parameters;
        let other_interval = parameters.heartbeat_interval != self.config.heartbeat_interval;
        if let State::CookieWait { t1, .. } = &mut self.state
            && t1.count == 0
        {
            let sent = t1.at.as_nanos().saturating_sub(self.config.rto.initial.as_nanos());
            t1.at = Time::from_nanos(sent) + rto.initial;
        }
        self.config.rto = rto;
        self.config.association_max_retrans = parameters.association_max_retrans;
        self.config.failure = failure;
        self.config.max_init_retransmits = parameters.max_init_retransmits;
        self.config.heartbeat_interval = parameters.heartbeat_interval;
        self.config.heartbeat_burst = parameters.heartbeat_burst;
        self.config.max_burst = parameters.max_burst;
        self.config.sack.delay = parameters.sack_delay;
        self.config.sack.every_packets = parameters.sack_every_packets;
        self.config.cookie_life = parameters.cookie_life;
        self.apply_config();
        self.receiver.acks.set_pace(parameters.sack_delay, parameters.sack_every_packets);
        for index in 0..self.sender.paths.len() {
            let path = &mut self.sender.paths[index];
            path.tx.rtt.set_limits(rto);
            path.tx.state.set_limits(path.tx.config.failure(failure));
            if other_interval && path.tx.config.heartbeat_interval.is_none() {
                self.put_off_heartbeat(now, PathId::from_index(index));
            }
        }
        Ok(())
    }

    /// Sets whether HEARTBEATs are sent on this path while it is idle, and their interval; `None` uses
    /// the interval of the association (RFC 9260, 11.1.9). Without HEARTBEATs, the failure of an idle
    /// path and the recovery of a failed path are never detected. Unconfirmed addresses (5.4),
    /// potentially failed paths (RFC 7829) and paths whose address changed get HEARTBEATs regardless.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn set_heartbeats(
        &mut self,
        now: Time,
        path: PathId,
        enabled: bool,
        interval: Option<Duration>,
    ) {
        self.configure_path(path, |config| {
            (config.heartbeats, config.heartbeat_interval) = (enabled, interval);
        });
        self.put_off_heartbeat(now, path);
    }

    /// The HEARTBEAT interval of this path while it is idle, `None` if HEARTBEATs are disabled.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn heartbeats_of(&self, path: PathId) -> Option<Duration> {
        let config = &self.sender.paths[path.index()].tx.config;
        config
            .heartbeats
            .then(|| self.control.heartbeats.interval_of(&self.sender.paths[path.index()].tx))
    }

    /// Restarts the interval to the next HEARTBEAT of an idle path.
    fn put_off_heartbeat(&mut self, now: Time, id: PathId) {
        let Self { sender, control, random, .. } = self;
        control.heartbeats.restart_interval(now, id, &sender.paths, &mut random.rng);
    }

    /// Sends a HEARTBEAT on this path now (RFC 9260, 11.1.10), whether or not it is idle. The answer, or its
    /// absence, changes the path's status as usual. Returns false if nothing was sent: when the association
    /// is not established or is shutting down, or when the path is unconfirmed. HB.Max.Burst limits the
    /// HEARTBEATs to such a path.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn request_heartbeat(&mut self, now: Time, path: PathId) -> bool {
        if !self.state.sends_heartbeats() || self.path_status(path) == PathStatus::Unconfirmed {
            return false;
        }
        let nonce = self.random.nonce();
        let tx = &self.sender.paths[path.index()].tx;
        let chunk = self.control.heartbeats.build_beside(now, path, tx, nonce);
        self.send_control(path, chunk);
        true
    }

    /// Sets Path.Max.Retrans of one path; `None` uses that of the association (RFC 9260, 11.1.12).
    ///
    /// # Panics
    /// If there is no such path.
    pub fn set_path_max_retrans(&mut self, path: PathId, most: Option<u32>) {
        self.configure_path(path, |config| config.max_retrans = most.map(bounded));
        self.apply_failure_limits(path);
    }

    /// Sets the number of errors after which one path is potentially failed; `None` uses that of the
    /// association (RFC 7829, 7.1).
    ///
    /// # Panics
    /// If there is no such path.
    pub fn set_path_potentially_failed(&mut self, path: PathId, errors: Option<u32>) {
        self.configure_path(path, |config| config.potentially_failed = errors.map(bounded));
        self.apply_failure_limits(path);
    }

    fn apply_failure_limits(&mut self, path: PathId) {
        let TxPath { config, state, .. } = &mut self.sender.paths[path.index()].tx;
        state.set_limits(config.failure(self.config.failure));
    }

    /// Numbers of errors after which a path is potentially failed or inactive.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn path_failure(&self, path: PathId) -> FailureLimits {
        self.sender.paths[path.index()].tx.config.failure(self.config.failure)
    }

    /// Whether the send buffer has room. If not, [`Event::Writable`](super::Event::Writable) is emitted
    /// when it has room again.
    pub fn await_room(&mut self) -> bool {
        let has_room = self.send_room() > 0;
        self.sender.outstanding.was_full |= !has_room;
        has_room
    }

    /// Whether [`Association::read`] returns a message.
    pub fn can_read(&self) -> bool {
        self.receiver.buffer.ready_count() > 0
    }

    /// The retransmission timeout of this path (RFC 9260, 11.1.8).
    ///
    /// # Panics
    /// If there is no such path.
    pub fn path_rto(&self, path: PathId) -> Duration {
        self.sender.paths[path.index()].tx.rtt.rto()
    }

    /// The receive window that the peer advertised last, bytes (RFC 9260, 11.1.8).
    pub const fn peer_window(&self) -> u64 {
        self.sender.outstanding.peer_rwnd
    }

    /// Number of DATA chunks that are in flight on all paths (RFC 9260, 11.1.8).
    pub fn chunks_in_flight(&self) -> usize {
        self.sender.paths.iter().map(|path| path.tx.flights.count() as usize).sum()
    }
}

/// Limits a path's number of errors to 16 bits. Larger numbers do not occur.
fn bounded(errors: u32) -> u16 {
    u16::try_from(errors).unwrap_or(u16::MAX)
}
