//! Associations that announce new addresses of this machine, and remove those that disappear (RFC 6458, 8.1.23).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;
use ropewalk_interop::ours::{PPID, address_changes, open, receive};
use ropewalk_interop::pattern;
use ropewalk_runtime::endpoint::{
    AddressChange, Association, Options, PORT, PathEvent, PathStatus, Target, Transport,
};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes to send before, between and after the changes.
const TOTAL: usize = 1_000_000;

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn transport() -> Transport {
    Transport { address_reconfiguration: true, follow_interfaces: true, ..Transport::default() }
}

/// The messages of a test, which are sent part by part.
struct Messages(Box<dyn Iterator<Item = (u16, Bytes)> + Send>);

impl Messages {
    fn of(total: usize) -> Self {
        Self(Box::new(pattern::messages(total, 1000, 3)))
    }

    /// Sends the next [`TOTAL`] bytes.
    async fn send(&mut self, association: &Association) {
        for (stream, bytes) in self.0.by_ref().take(TOTAL / 1000) {
            association.send(stream, PPID, bytes).await.expect("taken");
        }
    }
}

/// How an endpoint's sockets are bound.
#[derive(Clone, Copy, Debug)]
enum Bound {
    ToNoAddress,
    ToEachInterface,
}

fn client_options(bound: Bound, to: SocketAddr) -> Options {
    let anywhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    let options = Options { transport: transport(), ..Options::connecting(&[anywhere]) };
    match bound {
        Bound::ToNoAddress => options,
        Bound::ToEachInterface => options.on_all_interfaces(&[to]),
    }
}

/// Waits for this change of addresses.
async fn change(association: &Association, expected: AddressChange) {
    let found = async {
        loop {
            match association.next_path_event().await {
                Some(PathEvent::Address(change)) if change == expected => return,
                Some(_) => {}
                None => panic!("{:?}; expected {expected:?}", association.ended().await),
            }
        }
    };
    let found = timeout(PATIENCE, found).await;
    assert!(found.is_ok(), "{expected:?}: {:?}", association.stats());
}

/// Waits until a path between these addresses carries data.
async fn active(association: &Association, from: &str, to: &str) {
    let between = |association: &Association| {
        let stats = association.stats()?;
        let path = stats.paths.iter().position(|path| {
            path.remote.is_some_and(|remote| remote.ip() == ip(to))
                && path.local.as_ref().is_some_and(|local| local.address.ip() == ip(from))
        })?;
        association.paths().get(path).copied()
    };
    let found = async {
        while between(association) != Some(PathStatus::Active) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(PATIENCE, found).await.is_ok(), "{from} to {to}: {:?}", association.stats());
}

/// Runs `client` against a server that is bound to no address and expects `total` bytes. Returns the address
/// changes that the server has seen.
fn beside_a_server(
    hosts: &Hosts,
    total: usize,
    bound: Bound,
    client: impl AsyncFnOnce(Association, Messages) + Send,
) -> Vec<AddressChange> {
    std::thread::scope(|scope| {
        let (listens, listening) = mpsc::channel();
        let there = scope.spawn(|| {
            hosts.live_on(Side::Theirs, async move || {
                let anywhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), PORT);
                let options = Options { transport: transport(), ..Options::listening(&[anywhere]) };
                let endpoint = open(options).await;
                listens.send(()).expect("somebody waits");
                let association = endpoint.accept().await;
                assert_eq!(receive(&association, usize::MAX).await.bytes, total);
                address_changes(&association).await
            })
        });
        listening.recv().expect("it listens");
        hosts.live(async || {
            let to = hosts.sockets(Side::Theirs, PORT)[0];
            let endpoint = open(client_options(bound, to)).await;
            let target = Target { addresses: vec![to], key: None };
            let association = endpoint.connect(&target).await.expect("an association");
            assert!(association.reconfigures_addresses());
            client(association, Messages::of(total)).await;
            endpoint.close().await;
        });
        there.join().expect("the server")
    })
}

#[test]
fn a_second_network_is_used_when_it_appears_and_carries_all_when_the_first_one_is_gone() {
    let hosts = or_skip!(Hosts::new(2));
    for bound in [Bound::ToEachInterface, Bound::ToNoAddress] {
        hosts.unplug(2);
        let seen = beside_a_server(&hosts, 3 * TOTAL, bound, async |association, mut messages| {
            messages.send(&association).await;
            hosts.plug_in(2);
            // Both ends announce their addresses, in any order.
            active(&association, "10.77.2.1", "10.77.2.2").await;
            messages.send(&association).await;
            hosts.unplug(1);
            change(&association, AddressChange::OwnRemoved(ip("10.77.1.1"), Ok(()))).await;
            messages.send(&association).await;
            association.shutdown().await.expect("a shutdown");
        });
        for expected in [
            AddressChange::Added(ip("10.77.2.1")),
            AddressChange::OwnAdded(ip("10.77.2.2"), Ok(())),
            AddressChange::Removed(ip("10.77.1.1")),
        ] {
            assert!(seen.contains(&expected), "{bound:?}: {expected:?} in {seen:?}");
        }
        hosts.plug_in(1);
    }
}

#[test]
fn an_association_moves_to_a_network_that_appears_after_the_only_one_was_lost() {
    let hosts = or_skip!(Hosts::new(2));
    for bound in [Bound::ToEachInterface, Bound::ToNoAddress] {
        hosts.remove_address(Side::Ours, 2);
        let seen = beside_a_server(&hosts, 2 * TOTAL, bound, async |association, mut messages| {
            messages.send(&association).await;
            association.flushed().await;
            hosts.remove_address(Side::Ours, 1);
            // Longer than the time after which an address counts as gone. The last address is not
            // removed.
            tokio::time::sleep(Duration::from_secs(4)).await;
            hosts.add_address(Side::Ours, 2);
            let sending = messages.send(&association);
            let moves = async {
                change(&association, AddressChange::OwnAdded(ip("10.77.2.1"), Ok(()))).await;
                change(&association, AddressChange::OwnRemoved(ip("10.77.1.1"), Ok(()))).await;
            };
            tokio::join!(sending, moves);
            association.shutdown().await.expect("a shutdown");
        });
        for expected in
            [AddressChange::Added(ip("10.77.2.1")), AddressChange::Removed(ip("10.77.1.1"))]
        {
            assert!(seen.contains(&expected), "{bound:?}: {expected:?} in {seen:?}");
        }
        hosts.add_address(Side::Ours, 1);
    }
}

#[test]
fn an_address_that_is_away_for_a_moment_is_not_given_up() {
    let hosts = or_skip!(Hosts::new(2));
    for bound in [Bound::ToEachInterface, Bound::ToNoAddress] {
        let seen = beside_a_server(&hosts, 2 * TOTAL, bound, async |association, mut messages| {
            active(&association, "10.77.2.1", "10.77.2.2").await;
            messages.send(&association).await;
            for _ in 0..2 {
                hosts.remove_address(Side::Ours, 2);
                tokio::time::sleep(Duration::from_secs(1)).await;
                hosts.add_address(Side::Ours, 2);
                tokio::time::sleep(Duration::from_millis(1500)).await;
            }
            active(&association, "10.77.2.1", "10.77.2.2").await;
            messages.send(&association).await;
            association.shutdown().await.expect("a shutdown");
        });
        assert_eq!(seen, [], "{bound:?}");
    }
}
