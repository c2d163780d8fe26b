//! The class of service of packets: their Differentiated Services Code Point.

use std::collections::BTreeMap;

use super::association::Association;

/// A Differentiated Services Code Point (RFC 2474, 3): six bits that ask the network for a class of service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dscp(u8);

impl Dscp {
    /// Best effort.
    pub const DEFAULT: Self = Self(0);

    /// The code point of this value, 0 to 63.
    pub const fn new(value: u8) -> Option<Self> {
        if value < 64 { Some(Self(value)) } else { None }
    }

    /// The code point in the TOS byte of IPv4, or in the traffic class of IPv6. The lower two bits, which are the ECN field,
    /// are ignored.
    pub const fn of_field(field: u8) -> Self {
        Self(field >> 2)
    }

    /// The byte that contains the code point, with an ECN field of zero.
    pub const fn field(self) -> u8 {
        self.0 << 2
    }

    /// The value, 0 to 63.
    pub const fn value(self) -> u8 {
        self.0
    }
}

/// The code points of an association's packets.
#[derive(Clone, Debug, Default)]
pub(super) struct PathDscps {
    general: Dscp,
    /// Code points of individual paths, by path number.
    of_paths: BTreeMap<usize, Dscp>,
}

impl PathDscps {
    /// The same for all paths.
    pub(super) const fn all(dscp: Dscp) -> Self {
        Self { general: dscp, of_paths: BTreeMap::new() }
    }

    /// The code point of the packets of a path.
    pub(super) fn of(&self, path: usize) -> Dscp {
        self.of_paths.get(&path).copied().unwrap_or(self.general)
    }

    /// The code point of packets on paths for which none is set.
    pub(super) const fn general(&self) -> Dscp {
        self.general
    }
}

impl Association {
    /// Sets the code point of the packets of a path, or of all present and future paths if `path` is `None`. If the
    /// code point changes, the path's congestion control restarts, because its packets may use other queues of the
    /// network (RFC 9260, 7.2.5.1). Returns whether the path exists.
    ///
    /// Marked packets cost more CPU time: the system takes them one at a time, without segmentation offload. Systems
    /// other than Linux send them with the default code point.
    pub fn set_dscp(&self, path: Option<usize>, dscp: Dscp) -> bool {
        let set = self.with(|peer, _| {
            let count = peer.machine.path_count();
            if path.is_some_and(|path| path >= count) {
                return false;
            }
            let before = peer.dscps.clone();
            match path {
                Some(path) => {
                    peer.dscps.of_paths.insert(path, dscp);
                }
                None => peer.dscps = PathDscps::all(dscp),
            }
            for path in (0..count).filter(|path| before.of(*path) != peer.dscps.of(*path)) {
                peer.machine.reset_congestion(ropewalk_base::PathId::from_index(path));
            }
            true
        });
        set.unwrap_or(false)
    }

    /// The code point of the packets of a path, or of paths without their own. `None` once the association is gone.
    pub fn dscp(&self, path: Option<usize>) -> Option<Dscp> {
        self.inspect(|peer, _| path.map_or(peer.dscps.general(), |path| peer.dscps.of(path)))
    }
}
