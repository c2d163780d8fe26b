//! Reachability of a path (RFC 9260, 5.4 and 8; RFC 7829).

/// Error counts that change the status of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureLimits {
    /// With more consecutive errors than this, the path is potentially failed (RFC 7829, PFMR; 0 in the
    /// CMT-PF papers: the first timeout).
    pub potentially_failed: u32,
    /// With more consecutive errors than this, the path is inactive (Path.Max.Retrans, 5).
    pub path_max_retrans: u32,
}

/// Whether a path may carry data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathStatus {
    /// Not yet confirmed as the peer's address: heartbeats only (RFC 9260, 5.4).
    Unconfirmed,
    /// In use.
    Active,
    /// No new data while another path is active (RFC 7829).
    PotentiallyFailed,
    /// Failed; heartbeats continue.
    Inactive,
}

/// Status and error counter of one path.
#[derive(Clone, Copy, Debug)]
pub struct PathState {
    status: PathStatus,
    errors: u32,
    limits: FailureLimits,
}

impl PathState {
    /// A path that has not been confirmed.
    pub const fn unconfirmed(limits: FailureLimits) -> Self {
        Self { status: PathStatus::Unconfirmed, errors: 0, limits }
    }

    /// Changes the limits, which apply from the next error on.
    pub const fn set_limits(&mut self, limits: FailureLimits) {
        self.limits = limits;
    }

    /// The status.
    #[inline]
    pub const fn status(&self) -> PathStatus {
        self.status
    }

    /// Consecutive errors.
    pub const fn errors(&self) -> u32 {
        self.errors
    }

    /// Whether there were more consecutive errors than Path.Max.Retrans, regardless of the status.
    pub const fn has_failed(&self) -> bool {
        self.errors > self.limits.path_max_retrans
    }

    /// Records that the address is confirmed. Returns whether the status changed.
    pub fn on_confirmed(&mut self) -> bool {
        self.on_success_of(true)
    }

    /// Records that data was acknowledged or a heartbeat answered. Returns whether the status changed.
    #[inline]
    pub fn on_success(&mut self) -> bool {
        if self.errors == 0 && self.status == PathStatus::Active {
            return false;
        }
        self.on_success_of(false)
    }

    fn on_success_of(&mut self, proves_address: bool) -> bool {
        let before = self.status;
        self.errors = 0;
        if proves_address || before != PathStatus::Unconfirmed {
            self.status = PathStatus::Active;
        }
        before != self.status
    }

    /// Sets the path inactive immediately, because nothing can be sent on it.
    pub const fn fail(&mut self) {
        self.errors = self.limits.path_max_retrans.saturating_add(1);
        self.status = PathStatus::Inactive;
    }

    /// Records a timeout or an unanswered heartbeat. Returns whether the status changed.
    pub fn on_error(&mut self) -> bool {
        let before = self.status;
        self.errors = self.errors.saturating_add(1);
        if before != PathStatus::Unconfirmed {
            if self.errors > self.limits.path_max_retrans {
                self.status = PathStatus::Inactive;
            } else if self.errors > self.limits.potentially_failed {
                self.status = PathStatus::PotentiallyFailed;
            }
        }
        before != self.status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: FailureLimits = FailureLimits { potentially_failed: 0, path_max_retrans: 5 };

    #[test]
    fn errors_lead_from_active_over_doubt_to_inactive_and_one_success_back() {
        let mut path = PathState::unconfirmed(LIMITS);
        assert!(!path.on_success(), "an acknowledgement does not prove an address");
        assert!(path.on_confirmed());
        assert!(path.on_error());
        assert_eq!(path.status(), PathStatus::PotentiallyFailed);
        for _ in 0..4 {
            assert!(!path.on_error());
        }
        assert!(path.on_error());
        assert_eq!(path.status(), PathStatus::Inactive);
        assert!(path.on_success());
        assert_eq!((path.status(), path.errors()), (PathStatus::Active, 0));
    }
}
