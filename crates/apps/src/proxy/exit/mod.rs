//! The far end: accepts streams of near ends, and connects each to its target if the policy permits it.

mod client;
mod dial;
mod limits;
mod policy;
mod resolver;
mod rule;

use std::sync::Arc;

use parking_lot::RwLock;
use ropewalk_base::PeerText;
use tokio::task::JoinSet;

use self::dial::Dialler;
use self::limits::{ConnectionPermit, Quotas};

pub use self::client::{Client, ExitPolicy, PermissionsOf, short_key};
pub use self::limits::{ExitLimits, Limit};
pub use self::policy::{Policy, check_targets};
pub use self::resolver::Resolver;
pub use self::rule::{Rule, RuleError};
use super::notice::{Notice, NoticeSink};
use super::reason::{Reason, ReasonKind};
use super::relay::{relay, tune};
use super::target::Target;
use crate::mux::{Connection, EndReason, Incoming, Limits};

/// Minimum memory for serving an association, bytes.
const LEAST_BUFFER: u64 = 256 << 10;

/// State that all near ends of an exit share.
#[derive(Clone)]
pub struct Exit {
    policy: Arc<RwLock<Arc<Policy>>>,
    resolver: Resolver,
    quotas: Quotas,
    permissions: PermissionsOf,
    notify: NoticeSink,
}

/// State of serving one near end.
struct Session {
    exit: Exit,
    client: Client,
}

impl Exit {
    /// An exit that connects to destinations that the policy permits, for every key.
    pub fn new(policy: Policy, limits: ExitLimits, resolver: Resolver, notify: NoticeSink) -> Self {
        Self {
            policy: Arc::new(RwLock::new(Arc::new(policy))),
            resolver,
            quotas: Quotas::new(limits),
            permissions: Arc::new(|_| Some(ExitPolicy::default())),
            notify,
        }
    }

    /// Sets additional restrictions for keys.
    #[must_use]
    pub fn with_permissions(self, permissions: PermissionsOf) -> Self {
        Self { permissions, ..self }
    }

    /// Replaces the policy. It applies to connections that are opened from now on.
    pub fn set_policy(&self, policy: Policy) {
        *self.policy.write() = Arc::new(policy);
    }

    /// Replaces the limits. Existing connections beyond a lower limit continue.
    pub fn set_limits(&self, limits: ExitLimits) {
        self.quotas.set_limits(limits);
    }

    /// Reserves a part of all resources for each of this number of keys.
    pub fn expect_keys(&self, keys: u64) {
        self.quotas.expect_keys(keys);
    }

    /// The limits of an association of this near end, valid while the permit is held. `None` if the near end's key has
    /// used up its memory.
    pub(super) fn buffers(
        &self,
        client: &Client,
        limits: Limits,
    ) -> Option<(Limits, ConnectionPermit)> {
        let permit = self.quotas.buffered_bytes.try_up_to(&client.key, limits.shared)?;
        let shared = permit.amount();
        (shared >= LEAST_BUFFER.min(limits.shared)).then_some((Limits { shared, ..limits }, permit))
    }

    /// Serves one near end until its connection ends. Returns why it ended. All its streams end with it.
    pub async fn serve(&self, client: Client, connection: Connection) -> EndReason {
        let session = Arc::new(Session { exit: self.clone(), client });
        let mut tasks = JoinSet::new();
        while let Some(incoming) = connection.accept().await {
            while tasks.try_join_next().is_some() {}
            let session = session.clone();
            tasks.spawn(async move { session.connect(incoming).await });
        }
        connection.ended().await
    }
}

impl Session {
    async fn connect(&self, incoming: Incoming) {
        let Exit { policy, resolver, quotas, permissions, .. } = &self.exit;
        let policy = policy.read().clone();
        let permissions = match &self.client.key {
            Some(key) => permissions(key),
            None => Some(ExitPolicy::default()),
        };
        let Some(permissions) = permissions else {
            let reason = Reason::new(ReasonKind::NotAllowed, "the key may no longer use the exit");
            return self.refuse(incoming, &PeerText::default(), reason);
        };
        let Some(_place) = quotas.connection(&self.client, permissions.max_connections) else {
            self.notify(Notice::LimitReached(self.client.clone(), Limit::Connections));
            let reason = Reason::new(ReasonKind::Busy, "too many connections of this key are open");
            return incoming.refuse(reason.refusal());
        };
        let target = match Target::decode(&incoming.target) {
            Ok(target) => target,
            Err(error) => {
                let reason = Reason::new(ReasonKind::BadTarget, error.to_string());
                let shown = PeerText::from_bytes(&incoming.target);
                return self.refuse(incoming, &shown, reason);
            }
        };
        let (targets, user) = (&permissions.targets[..], self.client.key);
        let dialler = Dialler { policy: &policy, targets, resolver, quotas, user };
        let dialled = tokio::select! {
            dialled = dialler.dial(&target) => dialled,
            () = incoming.given_up() => return,
        };
        match dialled {
            Err(reason) => self.refuse(incoming, &PeerText::from(target.to_string()), reason),
            Ok(socket) => {
                tune(&socket);
                let Some(stream) = incoming.accept() else { return };
                self.notify(Notice::TargetConnected(self.client.clone(), target));
                // The end that reset the connection knows the reason; the other end sees the reset.
                let _ = relay(socket, stream).await;
            }
        }
    }

    fn refuse(&self, incoming: Incoming, target: &PeerText, reason: Reason) {
        let refusal = reason.refusal();
        self.notify(match reason.kind {
            ReasonKind::Busy => Notice::LimitReached(self.client.clone(), Limit::Dials),
            _ => Notice::TargetRefused(self.client.clone(), target.clone(), reason),
        });
        incoming.refuse(refusal);
    }

    fn notify(&self, notice: Notice) {
        (self.exit.notify)(notice);
    }
}
