//! Callbacks of the application: decisions on incoming handshakes, and reports of limits.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use super::limits::Limit;
use crate::seal::PublicKey;

/// An incoming handshake, before any state is kept for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncomingInfo {
    /// The initiator's key, proved except for replay. `None` without sealing.
    pub key: Option<PublicKey>,
    /// Source address of the handshake. Not proved: senders can forge it.
    pub address: SocketAddr,
}

/// Decision on an incoming handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The handshake continues.
    Accept,
    /// The peer receives an ABORT and need not try again.
    Refuse,
    /// No answer is sent. The peer tries for half a minute and cannot distinguish this end from an absent one.
    Ignore,
}

/// Decides on each handshake. The endpoint is locked during the call: the function must neither wait nor call the
/// endpoint.
#[derive(Clone)]
pub struct IncomingFilter(Arc<dyn Fn(&IncomingInfo) -> Decision + Send + Sync>);

impl IncomingFilter {
    /// Creates a filter from a function.
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

/// Reports that a limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitReport {
    /// The limit.
    pub limit: Limit,
    /// How often it was reached since its last report.
    pub times: u64,
    /// Address of the last peer that reached it, if known.
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

/// Receives reports of reached limits, at most one per second for each limit. The endpoint is locked during the call:
/// the function must neither wait nor call the endpoint.
#[derive(Clone)]
pub struct OnLimit(Arc<dyn Fn(&LimitReport) + Send + Sync>);

impl OnLimit {
    /// Creates a listener from a function.
    pub fn new(listen: impl Fn(&LimitReport) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listen))
    }

    pub(super) fn call(&self, report: &LimitReport) {
        (self.0)(report);
    }
}

impl fmt::Debug for OnLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnLimit")
    }
}
