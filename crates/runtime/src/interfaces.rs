//! The addresses of this machine.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// An address of an interface of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The interface.
    pub name: String,
    /// Its number: one that is made anew under the same name has another.
    pub index: Option<u32>,
    /// The address.
    pub ip: IpAddr,
    /// The broadcast address of its network, if that has one.
    pub broadcast: Option<Ipv4Addr>,
    /// Whether the interface says that it can carry anything.
    pub up: bool,
}

impl Seen {
    /// Whether peers elsewhere may know it: neither this machine nor this link alone.
    pub const fn leads_out(&self) -> bool {
        match self.ip {
            IpAddr::V4(ip) => !(ip.is_loopback() || ip.is_link_local()),
            IpAddr::V6(ip) => !(ip.is_loopback() || ip.is_unicast_link_local()),
        }
    }
}

/// All addresses of this machine as they are now.
///
/// # Errors
/// As the system says.
pub fn look() -> io::Result<Vec<Seen>> {
    let found = if_addrs::get_if_addrs()?.into_iter().map(|it| Seen {
        ip: it.ip(),
        up: it.is_oper_up(),
        index: it.index,
        broadcast: match it.addr {
            if_addrs::IfAddr::V4(address) => address.broadcast,
            if_addrs::IfAddr::V6(_) => None,
        },
        name: it.name,
    });
    Ok(found.collect())
}
