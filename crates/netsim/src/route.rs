//! Routes: the links that a packet crosses, and the end.

use crate::ids::{CrossId, HostId, LinkId, Port, RouteId};

/// End of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// At a host's port.
    Host(HostId, Port),
    /// At the receiver of a cross-traffic source.
    CrossData(CrossId),
    /// At the sender of a cross-traffic source, bringing an acknowledgement.
    CrossAck(CrossId),
}

/// A step of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Cross this link.
    Link(LinkId),
    /// Cross the radio link at this position among all of them.
    Radio(u32),
    /// Arrive.
    End(End),
}

/// All routes in one list of steps: a packet carries one index, and a hop costs one look-up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    steps: Vec<Step>,
    /// Index of each route's first step.
    starts: Vec<u32>,
}

impl Routes {
    /// Adds a route over `links` to `end`.
    ///
    /// # Panics
    /// If `links` is empty.
    pub(crate) fn add(&mut self, links: &[LinkId], end: End) -> RouteId {
        assert!(!links.is_empty(), "a route has at least one link");
        let id = RouteId(u32::try_from(self.starts.len()).expect("fewer than 2^32 routes"));
        let start = u32::try_from(self.steps.len()).expect("fewer than 2^32 steps");
        self.starts.push(start);
        self.steps.extend(links.iter().map(|link| match link.as_radio() {
            None => Step::Link(*link),
            Some(radio) => Step::Radio(radio),
        }));
        self.steps.push(Step::End(end));
        id
    }

    /// Index of the first step of `route`.
    #[inline]
    pub(crate) fn start(&self, route: RouteId) -> u32 {
        self.starts[route.0 as usize]
    }

    /// The step at `index`; the next one of the same route is at `index + 1`.
    #[inline]
    pub(crate) fn step(&self, index: u32) -> Step {
        self.steps[index as usize]
    }

    /// The links of `route`, in order.
    pub(crate) fn links(&self, route: RouteId) -> impl Iterator<Item = LinkId> + '_ {
        self.steps[self.start(route) as usize..].iter().map_while(|step| match step {
            Step::Link(link) => Some(*link),
            Step::Radio(radio) => Some(LinkId::radio(*radio)),
            Step::End(_) => None,
        })
    }
}
