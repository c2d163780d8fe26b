//! The links between two ends, and the paths that use them while addresses are added and removed.

use core::net::IpAddr;

use ropewalk_base::PathId;
use ropewalk_engine::sctp::{AddressChange, Association, Packet, PathConfig};

use super::Pair;

/// The source address of packets on a path.
pub fn address_of(path: usize) -> IpAddr {
    IpAddr::from([10, 0, path as u8, 1])
}

/// The link with this address.
fn link_at(ip: IpAddr) -> usize {
    let IpAddr::V4(ip) = ip else { return usize::MAX };
    usize::from(ip.octets()[2])
}

impl Pair {
    /// A packet arrives on a link. If no path of the end uses the link, it is ignored, unless its ASCONF
    /// assigns it to the association.
    pub(super) fn arrive(&mut self, to: usize, link: usize, mut packet: Packet) {
        if self.path_by(to, link).is_none() && self.ends[to].admits_source(&packet) {
            self.add_path(to, link);
        }
        let path = self.path_by(to, link).unwrap_or(PathId(link as u8));
        self.ends[to].handle_from(self.now, path, address_of(link), &mut packet);
    }

    /// The link of a path: that of the same number, unless addresses were added or removed.
    pub(super) fn link_of(&self, end: usize, path: PathId) -> usize {
        self.links[end].get(path.index()).copied().unwrap_or(path.index())
    }

    /// The path that uses a link.
    fn path_by(&self, end: usize, link: usize) -> Option<PathId> {
        let all = (0..self.ends[end].path_count()).map(PathId::from_index);
        let uses = |path: &PathId| self.link_of(end, *path) == link;
        all.filter(uses).find(|path| !self.ends[end].is_retired(*path))
    }

    /// Retires the path that uses a link, if there is one.
    pub fn retire(&mut self, end: usize, link: usize) {
        if let Some(path) = self.path_by(end, link) {
            self.ends[end].retire_path(self.now, path);
        }
    }

    /// Adds and retires the paths of added and removed addresses.
    pub(super) fn follow_addresses(&mut self, end: usize) {
        while let Some(change) = self.ends[end].poll_address_change() {
            self.addresses[end].push(change);
            match change {
                AddressChange::Added(ip) => self.add_path(end, link_at(ip)),
                AddressChange::OwnAdded(ip, Ok(())) => match self.path_by(end, link_at(ip)) {
                    Some(path) => self.ends[end].validate_path(self.now, path),
                    None => self.add_path(end, link_at(ip)),
                },
                AddressChange::Removed(ip) => self.retire(end, link_at(ip)),
                AddressChange::Primary(ip) => {
                    if let Some(path) = self.path_by(end, link_at(ip)) {
                        self.ends[end].set_primary(path);
                    }
                }
                _ => continue,
            }
            self.drain(end);
        }
    }

    /// Adds a path on this link, unless there is one.
    fn add_path(&mut self, end: usize, link: usize) {
        if self.path_by(end, link).is_none() {
            let now = self.now;
            self.place_path(end, link, |end| end.add_path(now, PathConfig::default()));
        }
    }

    /// Adds a path on this link, on which a new address of the end is announced.
    pub fn announce(&mut self, end: usize, link: usize) {
        self.place_path(end, link, |end| end.add_announcing_path(PathConfig::default()));
    }

    fn place_path(
        &mut self,
        end: usize,
        link: usize,
        add: impl FnOnce(&mut Association) -> Option<PathId>,
    ) {
        let known = self.links[end].len();
        self.links[end].extend(known..self.ends[end].path_count());
        let Some(path) = add(&mut self.ends[end]) else { return };
        self.links[end].resize(self.ends[end].path_count(), link);
        self.links[end][path.index()] = link;
    }
}
