//! What an operator may want to know while it happens.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::reason::Reason;
use super::target::Target;

/// Is told what happens.
pub type Tell = Arc<dyn Fn(Notice) + Send + Sync>;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The near end has reached the exit.
    Connected(String),
    /// The near end has lost the exit; all its connections are reset.
    Lost(String),
    /// The near end has not reached the exit, and tries again after that time.
    NotConnected(String, Duration),
    /// A path came or went.
    Path(String),
    /// A near end has come to the exit.
    Joined(String),
    /// A near end has left the exit: who, and why.
    Left(String, String),
    /// A connection was opened for this program, or near end.
    Opened(SocketAddr, Target),
    /// A connection did not come about.
    Failed(SocketAddr, Target, Reason),
    /// A program said something that is neither SOCKS nor HTTP, or did not finish it in time.
    Nonsense(SocketAddr, String),
    /// The exit opened a connection.
    Led(Target),
    /// The exit opened none.
    Refused(String, Reason),
}

impl Notice {
    /// Whether it concerns one connection of many.
    pub const fn is_detail(&self) -> bool {
        matches!(
            self,
            Self::Opened(..)
                | Self::Failed(..)
                | Self::Nonsense(..)
                | Self::Led(_)
                | Self::Refused(..)
        )
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected(how) => write!(f, "connected to the exit: {how}"),
            Self::Lost(why) => {
                write!(f, "lost the exit: {why}; open connections were reset, connecting anew")
            }
            Self::NotConnected(why, after) => {
                write!(f, "no way to the exit: {why}; trying again in {:.1} s", after.as_secs_f64())
            }
            Self::Path(text) => f.write_str(text),
            Self::Joined(who) => write!(f, "{who} has connected"),
            Self::Left(who, why) => write!(f, "{who} has gone: {why}"),
            Self::Opened(who, target) => write!(f, "{who} -> {target}"),
            Self::Failed(who, target, why) => write!(f, "{who} -> {target}: {why}"),
            Self::Nonsense(who, what) => write!(f, "{who}: {what}"),
            Self::Led(target) => write!(f, "-> {target}"),
            Self::Refused(target, why) => write!(f, "-> {target}: {why}"),
        }
    }
}
