//! The application's say in who gets in, and what it hears of limits.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use super::limits::Limit;
use crate::seal::PublicKey;

/// A handshake that has come, before anything is kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncomingInfo {
    /// Whose it is, proved up to replay; none in the clear.
    pub key: Option<PublicKey>,
    /// Where it came from. Not proved: anybody can write any address on a datagram.
    pub address: SocketAddr,
}

/// What becomes of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It goes on.
    Accept,
    /// The peer is told that it is not wanted (ABORT): it need not try again.
    Refuse,
    /// Nothing is answered. The peer tries for half a minute, and cannot tell this end from none.
    Ignore,
}

/// Decides on each handshake, with the endpoint locked: it must neither wait nor call the endpoint.
#[derive(Clone)]
pub struct IncomingFilter(Arc<dyn Fn(&IncomingInfo) -> Decision + Send + Sync>);

impl IncomingFilter {
    /// A filter of this function.
    pub fn new(decide: impl Fn(&IncomingInfo) -> Decision + Send + Sync + 'static) -> Self {
        Self(Arc::new(decide))
    }

    pub(super) fn decide(&self, info: &IncomingInfo) -> Decision {
        (self.0)(info)
    }
}

impl fmt::Debug for IncomingFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IncomingFilter")
    }
}

/// A limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitReport {
    /// Which.
    pub limit: Limit,
    /// How often since the last report of it.
    pub times: u64,
    /// Who reached it last, if known.
    pub address: Option<SocketAddr>,
}

impl fmt::Display for LimitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, times, address } = self;
        let plural = if *times == 1 { "" } else { "s" };
        write!(f, "limit {limit} reached {times} time{plural}")?;
        match address {
            Some(address) => write!(f, ", last by {address}"),
            None => Ok(()),
        }
    }
}

/// Hears of limits that were reached, once a second at most for each of them, with the endpoint locked: it
/// must neither wait nor call the endpoint.
#[derive(Clone)]
pub struct OnLimit(Arc<dyn Fn(&LimitReport) + Send + Sync>);

impl OnLimit {
    /// A listener of this function.
    pub fn new(listen: impl Fn(&LimitReport) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listen))
    }

    pub(super) fn tell(&self, report: &LimitReport) {
        (self.0)(report);
    }
}

impl fmt::Debug for OnLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnLimit")
    }
}
