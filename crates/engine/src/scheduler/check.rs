//! The rules for every decision of any scheduler.

use ropewalk_base::{PathId, Time};

use super::{Action, Decision, View};

/// A decision that the engine must not carry out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IllegalDecision {
    /// There is no such path.
    #[error("{0:?} does not exist; see View::paths")]
    UnknownPath(PathId),
    /// The path is not usable, or its window is full.
    #[error("{0:?} is not open; choose from View::open")]
    ClosedPath(PathId),
    /// The position is not below the number of chunks that may be sent.
    #[error("position {position} is out of reach: it must be below {limit}")]
    BeyondReach {
        /// The requested position.
        position: u64,
        /// The first position that may not be sent.
        limit: u64,
    },
    /// A set of copies without a path.
    #[error("copies on no path; name at least one")]
    NoCopies,
    /// A wait until a time that is not in the future, or an infinite wait.
    #[error("waiting until {0} has no end or is past; answer Blocked instead")]
    UnboundedWait(Time),
}

/// Checks whether the engine may carry out `decision`.
///
/// # Errors
/// The first rule that the decision breaks.
#[inline]
pub fn check(view: &View<'_>, decision: &Decision) -> Result<(), IllegalDecision> {
    match decision.action {
        Action::Send { path, position } => check_one(view, path, position),
        Action::Copies { paths, .. } if paths.is_empty() => Err(IllegalDecision::NoCopies),
        Action::Copies { paths, position } => {
            paths.iter().try_for_each(|path| check_one(view, path, position))
        }
        Action::Wait { until } if until <= view.now || until == Time::FAR_FUTURE => {
            Err(IllegalDecision::UnboundedWait(until))
        }
        Action::Wait { .. } | Action::Blocked => Ok(()),
    }
}

fn check_one(view: &View<'_>, id: PathId, position: u64) -> Result<(), IllegalDecision> {
    let path = view.path(id).ok_or(IllegalDecision::UnknownPath(id))?;
    let limit = view.reach();
    if !path.may_send() {
        Err(IllegalDecision::ClosedPath(id))
    } else if position >= limit {
        Err(IllegalDecision::BeyondReach { position, limit })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{path_view, view};
    use super::super::{DecisionKind, PathSet, Reason};
    use super::*;

    #[test]
    fn each_rule_is_named_by_the_decision_that_breaks_it() {
        let mut paths = [path_view(0), path_view(1), path_view(2)];
        paths[1].in_flight = paths[1].window;
        let view =
            View { sendable: 9, backlog_chunks: 12, now: Time::from_millis(3), ..view(&paths) };
        let send = |path, position| Decision::send(PathId(path), position, Reason::Custom);
        let both = PathSet::EMPTY.with(PathId(0)).with(PathId(2));
        let wait = |until| Decision::wait(until, Reason::Custom);
        let beyond = IllegalDecision::BeyondReach { position: 9, limit: 9 };
        for (decision, verdict) in [
            (send(0, 0), Ok(())),
            (send(0, 8), Ok(())),
            (send(0, 9), Err(beyond)),
            (send(1, 0), Err(IllegalDecision::ClosedPath(PathId(1)))),
            (send(3, 0), Err(IllegalDecision::UnknownPath(PathId(3)))),
            (Decision::copies(both, 5, Reason::Custom), Ok(())),
            (Decision::copies(PathSet::EMPTY, 0, Reason::Custom), Err(IllegalDecision::NoCopies)),
            (wait(Time::from_millis(4)), Ok(())),
            (wait(view.now), Err(IllegalDecision::UnboundedWait(view.now))),
            (wait(Time::FAR_FUTURE), Err(IllegalDecision::UnboundedWait(Time::FAR_FUTURE))),
            (Decision::blocked(Reason::Custom), Ok(())),
        ] {
            assert_eq!(check(&view, &decision), verdict, "{decision:?}");
        }
    }

    #[test]
    fn a_lost_chunk_goes_whatever_the_span_says() {
        let paths = [path_view(0)];
        let occasion = DecisionKind::Retransmission { lost_on: PathId(0) };
        let view = View { occasion, sendable: 0, ..view(&paths) };
        let decision = Decision::send(PathId(0), 0, Reason::RetransmissionPolicy);
        assert_eq!(check(&view, &decision), Ok(()));
    }

    #[test]
    fn messages_show_the_value_and_a_way_out() {
        let text = IllegalDecision::BeyondReach { position: 9, limit: 7 }.to_string();
        assert!(text.contains('9') && text.contains("below 7"), "{text}");
    }
}
