//! The far end: takes streams, and leads each to where its opener wants, if it may.

mod dial;
mod policy;
mod rule;

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use self::policy::Policy;
pub use self::rule::{Rule, RuleError};
use super::notice::{Notice, Tell};
use super::reason::{Kind, Reason};
use super::relay::{relay, tune};
use super::target::Target;
use crate::mux::{Connection, EndReason, Incoming};

/// What all near ends of an exit share.
#[derive(Clone)]
pub struct Exit {
    policy: Arc<Policy>,
    /// Connections of all near ends together: files that the system lets us open are few.
    places: Arc<Semaphore>,
    tell: Tell,
}

impl Exit {
    /// An exit that leads where the policy says, for at most so many connections at a time.
    pub fn new(policy: Policy, most: usize, tell: Tell) -> Self {
        Self { policy: Arc::new(policy), places: Arc::new(Semaphore::new(most)), tell }
    }

    /// Serves one near end until it has gone; tells why. All its connections end with it.
    pub async fn serve(&self, connection: Connection) -> EndReason {
        let mut tasks = JoinSet::new();
        while let Some(incoming) = connection.accept().await {
            while tasks.try_join_next().is_some() {}
            tasks.spawn(self.clone().lead(incoming));
        }
        connection.ended().await
    }

    async fn lead(self, incoming: Incoming) {
        let Ok(_place) = self.places.try_acquire() else {
            let reason = Reason::new(Kind::Busy, "the exit has too many connections");
            return incoming.refuse(reason.refusal());
        };
        let target = match Target::decode(&incoming.target) {
            Ok(target) => target,
            Err(error) => {
                let reason = Reason::new(Kind::BadTarget, error.to_string());
                return self.refuse(incoming, "?".into(), reason);
            }
        };
        let dialled = tokio::select! {
            dialled = dial::dial(&target, &self.policy) => dialled,
            () = incoming.given_up() => return,
        };
        match dialled {
            Err(reason) => self.refuse(incoming, target.to_string(), reason),
            Ok(socket) => {
                tune(&socket);
                let Some(stream) = incoming.accept() else { return };
                (self.tell)(Notice::Led(target));
                // Whoever broke it knows; the other one is told by the break itself.
                let _ = relay(socket, stream).await;
            }
        }
    }

    fn refuse(&self, incoming: Incoming, target: String, reason: Reason) {
        incoming.refuse(reason.refusal());
        (self.tell)(Notice::Refused(target, reason));
    }
}
