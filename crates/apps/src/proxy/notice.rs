//! Events at either end, for logs and terminals.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ropewalk_base::PeerText;

use super::exit::{Client, Limit};
use super::reason::Reason;
use super::target::Target;

/// Receives notices.
pub type NoticeSink = Arc<dyn Fn(Notice) + Send + Sync>;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The near end has connected to the exit, over these paths.
    Connected(String),
    /// The near end has lost the exit; all its connections are reset.
    Lost(PeerText),
    /// The near end could not connect to the exit, and tries again after this time.
    NotConnected(PeerText, Duration),
    /// A near end's key has reached a limit of the exit.
    LimitReached(Client, Limit),
    /// The near end opened a connection for this program.
    Opened(SocketAddr, Target),
    /// A connection for this program could not be opened.
    Failed(SocketAddr, Target, Reason),
    /// A program's request was malformed or not complete in time.
    BadRequest(SocketAddr, PeerText),
    /// The exit connected to a target.
    TargetConnected(Client, Target),
    /// The exit did not connect to a target.
    TargetRefused(Client, PeerText, Reason),
}

impl Notice {
    /// Whether the notice concerns a single connection.
    pub const fn is_detail(&self) -> bool {
        matches!(
            self,
            Self::Opened(..)
                | Self::Failed(..)
                | Self::BadRequest(..)
                | Self::TargetConnected(..)
                | Self::TargetRefused(..)
        )
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected(how) => write!(f, "connected to the exit: {how}"),
            Self::Lost(why) => {
                write!(f, "connection to the exit lost: {why}; open connections were reset")
            }
            Self::NotConnected(why, after) => {
                let seconds = after.as_secs_f64();
                write!(f, "cannot connect to the exit: {why}; next attempt in {seconds:.1} s")
            }
            Self::LimitReached(client, limit) => {
                write!(f, "{client}: limit reached: {limit}")
            }
            Self::Opened(who, target) => write!(f, "{who} -> {target}"),
            Self::Failed(who, target, why) => write!(f, "{who} -> {target}: {why}"),
            Self::BadRequest(who, what) => write!(f, "{who}: {what}"),
            Self::TargetConnected(client, target) => write!(f, "{client} -> {target}"),
            Self::TargetRefused(client, target, why) => write!(f, "{client} -> {target}: {why}"),
        }
    }
}
