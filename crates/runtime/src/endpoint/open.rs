//! Opening an endpoint: checks its options, and binds or adopts its sockets.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use super::interface_monitor;
use super::local_interfaces::{self, BoundInterface};
use super::options::Options;
use super::raw::{Carrier, RawError, overlap};
use super::shards::{SHARDS_LIMIT, Steering};
use super::socket::{BindAddress, Socket};
use super::transport::{Encryption, UnknownName};
use crate::interfaces::InterfaceAddress;

/// Why an endpoint could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A socket could not be bound there.
    #[error("cannot bind {0}: {1}{hint}", hint = hint(.1))]
    Bind(BindAddress, io::Error),
    /// No address was given.
    #[error("no local address: name at least one")]
    NoAddress,
    /// No interface that may be used is up with an address of the peer's family.
    #[error(
        "no interface that may be used is up with an address of the peer's family (IPv4 or IPv6)"
    )]
    NoInterface,
    /// The name of a scheduler or congestion control is unknown.
    #[error("{0}")]
    Unknown(UnknownName),
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    Random,
    /// There is no SCTP port 0.
    #[error("there is no SCTP port 0: give one from 1 to 65535")]
    SctpPort,
    /// Packets cannot be sent over IP alone.
    #[error("{0}")]
    Raw(RawError),
    /// Another endpoint on this machine owns the SCTP port, over IP alone.
    #[error("cannot use SCTP port {0} over IP: {1}; another program has it")]
    SctpPortTaken(u16, io::Error),
    /// An endpoint cannot have this number of shards, or shards with automatic interfaces.
    #[error(
        "{0} shards: an endpoint has 1 to {SHARDS_LIMIT}, and 1 if it finds its interfaces by itself"
    )]
    Shards(usize),
    /// An inherited socket cannot be used.
    #[error("cannot use the inherited socket at {0}: {1}")]
    Inherited(SocketAddr, io::Error),
    /// Inherited sockets do not permit other sockets with the same address, which shards need.
    #[error(
        "the inherited socket at {0} permits no other one with its address: use one shard, or bind it with \
         SO_REUSEPORT (systemd: ReusePort=yes)"
    )]
    InheritedAlone(SocketAddr),
}

/// Hint for a bind error.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; another program has this port: stop it, or choose another port"
        }
        io::ErrorKind::AddrNotAvailable => {
            "; no interface has this address: `ip address` lists the addresses"
        }
        io::ErrorKind::PermissionDenied => {
            "; ports below 1024 need a privilege: choose a higher one, or run it as root"
        }
        _ => "",
    }
}

/// Checks everything that does not require a bound socket.
///
/// # Errors
/// [`OpenError`].
pub(super) fn check(options: &Options) -> Result<(), OpenError> {
    if options.locals.is_empty() {
        return Err(if options.automatic { OpenError::NoInterface } else { OpenError::NoAddress });
    }
    if options.sctp_ports.contains(&0) {
        return Err(OpenError::SctpPort);
    }
    let found = options.automatic || options.all_interfaces;
    if !(1..=SHARDS_LIMIT).contains(&options.shards) || options.shards > 1 && found {
        return Err(OpenError::Shards(options.shards));
    }
    if options.carrier == Carrier::Ip {
        check_raw(options).map_err(OpenError::Raw)?;
    }
    options.transport.scheduler().map_err(OpenError::Unknown)?;
    let encryption = Encryption::Sealed { ipv6: false };
    let config = options.transport.config(&[Ipv4Addr::LOCALHOST.into()], &encryption);
    config.map(|_| ()).map_err(OpenError::Unknown)
}

/// Checks whether packets can be sent over IP alone.
///
/// # Errors
/// [`RawError`].
fn check_raw(options: &Options) -> Result<(), RawError> {
    if options.sealing.is_some() {
        return Err(RawError::Sealed);
    }
    if options.shards > 1 {
        return Err(RawError::Shards);
    }
    if !options.inherited.is_empty() {
        return Err(RawError::Inherited);
    }
    for (at, one) in options.locals.iter().enumerate() {
        if let Some(other) = options.locals[..at].iter().find(|other| overlap(one, other)) {
            return Err(RawError::Overlap(other.clone(), one.clone()));
        }
    }
    RawError::check()
}

/// The sockets of each shard, given those of an endpoint without shards. Those sockets have shown that no other
/// program uses the addresses.
///
/// # Errors
/// [`OpenError`]; in that case nothing stays bound.
pub(super) fn sockets_of_shards(
    mut sockets: Vec<Socket>,
    options: &Options,
) -> Result<Vec<Vec<Socket>>, OpenError> {
    if options.shards == 1 {
        return Ok(vec![sockets]);
    }
    let steering = Steering::new(options.sealing.is_some(), options.shards);
    // In shard order: the kernel numbers sockets with the same address in the order in which they are bound.
    // Inherited sockets were bound first.
    let mut shards = Vec::with_capacity(options.shards);
    if options.inherited.is_empty() {
        sockets.iter_mut().for_each(Socket::close);
        shards.push(bind_sharing(&sockets, &options.locals, steering)?);
    } else {
        sockets.iter_mut().for_each(|socket| socket.share(steering));
        shards.push(sockets);
    }
    while shards.len() < options.shards {
        let another = bind_sharing(&shards[0], &options.locals, steering)?;
        shards.push(another);
    }
    Ok(shards)
}

/// Binds another socket like each of `sockets`.
fn bind_sharing(
    sockets: &[Socket],
    locals: &[BindAddress],
    steering: Steering,
) -> Result<Vec<Socket>, OpenError> {
    let bind = |(socket, local): (&Socket, &BindAddress)| {
        socket.bind_sharing(local, steering).map_err(|e| OpenError::Bind(local.clone(), e))
    };
    sockets.iter().zip(locals).map(bind).collect()
}

/// Adopts inherited sockets.
fn adopt(
    options: &Options,
    all: &[InterfaceAddress],
) -> Result<(Vec<Socket>, Vec<BoundInterface>), OpenError> {
    let mut adopted = Vec::with_capacity(options.inherited.len());
    for (inherited, local) in options.inherited.iter().zip(&options.locals) {
        let refused = |error| OpenError::Inherited(local.address, error);
        let socket = Socket::adopt(inherited.clone()).map_err(refused)?;
        if options.shards > 1 && !socket.permits_others().map_err(refused)? {
            return Err(OpenError::InheritedAlone(local.address));
        }
        adopted.push((socket, BoundInterface::new(local.clone(), all)));
    }
    Ok(adopted.into_iter().unzip())
}

/// A closed socket, which is bound once its interface or address is present.
fn wait_for(
    local: &BindAddress,
    bind: fn(&BindAddress) -> io::Result<Socket>,
) -> io::Result<(Socket, BoundInterface)> {
    let anywhere = local_interfaces::unspecified(local.address.is_ipv6());
    let mut socket = bind(&BindAddress::of(anywhere))?;
    socket.close();
    Ok((socket, BoundInterface::waiting(local.clone())))
}

/// Binds or adopts all sockets, or none.
///
/// # Errors
/// [`OpenError`]; in that case nothing stays bound.
pub(super) fn bind(
    options: &Options,
    all: &[InterfaceAddress],
) -> Result<(Vec<Socket>, Vec<BoundInterface>), OpenError> {
    if !options.inherited.is_empty() {
        return adopt(options, all);
    }
    let mut bound = Vec::with_capacity(options.locals.len());
    let found = options.automatic || options.all_interfaces;
    if found {
        // The user did not name these interfaces: a missing one is skipped and may appear later.
        bound.extend(
            options
                .locals
                .iter()
                .filter_map(|local| interface_monitor::bind_automatic(local, options.carrier, all)),
        );
        if bound.is_empty() && options.avoids_interfaces() {
            return Err(OpenError::NoInterface);
        }
    }
    let ipv6 = options.locals.iter().all(|local| local.address.is_ipv6());
    let anywhere = [BindAddress::of(local_interfaces::unspecified(ipv6))];
    let locals = if found { &anywhere[..] } else { &options.locals };
    if bound.is_empty() {
        let beside_ipv4 = options.ipv6_only || locals.iter().any(|local| local.address.is_ipv4());
        let bind = match options.carrier {
            Carrier::Ip => Socket::bind_raw,
            Carrier::Udp if beside_ipv4 => Socket::bind_beside_ipv4,
            Carrier::Udp => Socket::bind,
        };
        for local in locals {
            let waits = options.wait_for_locals && local_interfaces::is_missing(local, all);
            let one = match bind(local) {
                Err(error) if waits && error.kind() != io::ErrorKind::PermissionDenied => {
                    wait_for(local, bind)
                }
                result => result.map(|socket| (socket, BoundInterface::new(local.clone(), all))),
            };
            bound.push(one.map_err(|error| OpenError::Bind(local.clone(), error))?);
        }
        if options.wait_for_locals && bound.iter().all(|(_, link)| link.is_gone()) {
            return Err(OpenError::NoInterface);
        }
    }
    Ok(bound.into_iter().unzip())
}
