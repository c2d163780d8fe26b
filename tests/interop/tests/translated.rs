//! A client behind NAT that moves from one private network to another.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use ropewalk_interop::or_skip;
use ropewalk_interop::ours::{PPID, address_changes, open, receive};
use ropewalk_interop::pattern;
use ropewalk_interop::translators::{PRIVATE, PUBLIC, SERVER, Translators, address};
use ropewalk_runtime::endpoint::{
    AddressChange, Association, Options, PORT, PathEvent, PathStatus, Target, Transport,
};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(40);
/// Bytes that are sent before each change.
const PART: usize = 500_000;

fn transport() -> Transport {
    Transport { address_reconfiguration: true, follow_interfaces: true, ..Transport::default() }
}

/// How the client's sockets are bound.
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

/// The messages of a test, part by part.
struct Messages(Box<dyn Iterator<Item = (u16, Bytes)> + Send>);

impl Messages {
    async fn send(&mut self, association: &Association) {
        for (stream, bytes) in self.0.by_ref().take(PART / 1000) {
            association.send(stream, PPID, bytes).await.expect("taken");
        }
    }
}

/// Waits for this change of addresses.
async fn change(association: &Association, expected: AddressChange) {
    let found = async {
        loop {
            match association.next_path_event().await {
                Some(PathEvent::Address(change)) if change == expected => return,
                Some(PathEvent::Address(change)) => {
                    assert!(!format!("{change:?}").contains("Err"), "{change:?}");
                }
                Some(_) => {}
                None => panic!("{:?}; expected {expected:?}", association.ended().await),
            }
        }
    };
    let found = timeout(PATIENCE, found).await;
    assert!(found.is_ok(), "{expected:?}: {:?}", association.stats());
}

/// Waits until a path from this own address carries data.
async fn active(association: &Association, from: &str) {
    let is_active = || {
        let stats = association.stats()?;
        let begins = |local: &Option<ropewalk_runtime::endpoint::LocalAddress>| {
            local.as_ref().is_some_and(|local| local.address.ip() == address(from))
        };
        let path = stats.paths.iter().position(|path| begins(&path.local))?;
        association.paths().get(path).map(|status| *status == PathStatus::Active)
    };
    let found = async {
        while is_active() != Some(true) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(PATIENCE, found).await.is_ok(), "{from}: {:?}", association.stats());
}

/// Runs `client` against a server that expects `total` bytes. Returns the address changes that the server has seen.
fn beside_a_server(
    hosts: &Translators,
    total: usize,
    bound: Bound,
    client: impl AsyncFnOnce(Association, Messages) + Send,
) -> Vec<AddressChange> {
    std::thread::scope(|scope| {
        let (listens, listening) = mpsc::channel();
        let there = scope.spawn(|| {
            hosts.on_server(async move || {
                let here = SocketAddr::new(address(SERVER), PORT);
                let transport = Transport { follow_interfaces: false, ..transport() };
                let options = Options { transport, ..Options::listening(&[here]) };
                let endpoint = open(options).await;
                listens.send(()).expect("somebody waits");
                let association = endpoint.accept().await;
                assert_eq!(receive(&association, usize::MAX).await.bytes, total);
                address_changes(&association).await
            })
        });
        listening.recv().expect("it listens");
        hosts.on_client(async || {
            let to = SocketAddr::new(address(SERVER), PORT);
            let endpoint = open(client_options(bound, to)).await;
            let target = Target { addresses: vec![to], key: None };
            let association = endpoint.connect(&target).await.expect("an association");
            assert!(association.reconfigures_addresses());
            let messages = Messages(Box::new(pattern::messages(total, 1000, 3)));
            client(association, messages).await;
            endpoint.close().await;
        });
        there.join().expect("the server")
    })
}

#[test]
fn a_client_behind_a_translator_moves_to_a_network_behind_another_one() {
    for bound in [Bound::ToNoAddress, Bound::ToEachInterface] {
        let hosts = or_skip!(Translators::new());
        let seen = beside_a_server(&hosts, 2 * PART, bound, async |association, mut messages| {
            messages.send(&association).await;
            association.flushed().await;
            hosts.leave(1).expect("the first network");
            hosts.enter(2).expect("the second network");
            let moves = async {
                change(&association, AddressChange::OwnAdded(address(PRIVATE[1]), Ok(()))).await;
                change(&association, AddressChange::OwnRemoved(address(PRIVATE[0]), Ok(()))).await;
            };
            tokio::join!(messages.send(&association), moves);
            association.shutdown().await.expect("a shutdown");
        });
        // The server only knows the translators' addresses.
        for expected in
            [AddressChange::Added(address(PUBLIC[1])), AddressChange::Removed(address(PUBLIC[0]))]
        {
            assert!(seen.contains(&expected), "{bound:?}: {expected:?} in {seen:?}");
        }
        let private = |change: &AddressChange| format!("{change:?}").contains("10.88.");
        assert!(!seen.iter().any(private), "{bound:?}: {seen:?}");
    }
}

#[test]
fn two_networks_behind_translators_are_used_together_and_one_stays() {
    let hosts = or_skip!(Translators::new());
    let bound = Bound::ToEachInterface;
    let seen = beside_a_server(&hosts, 3 * PART, bound, async |association, mut messages| {
        messages.send(&association).await;
        hosts.enter(2).expect("the second network");
        active(&association, PRIVATE[1]).await;
        messages.send(&association).await;
        hosts.leave(1).expect("the first network");
        change(&association, AddressChange::OwnRemoved(address(PRIVATE[0]), Ok(()))).await;
        messages.send(&association).await;
        association.shutdown().await.expect("a shutdown");
    });
    assert_eq!(
        seen,
        [AddressChange::Added(address(PUBLIC[1])), AddressChange::Removed(address(PUBLIC[0]))]
    );
}

#[test]
fn a_network_whose_translator_lets_nothing_through_does_not_end_the_association() {
    let hosts = or_skip!(Translators::new());
    hosts.block(2);
    let bound = Bound::ToEachInterface;
    beside_a_server(&hosts, 2 * PART, bound, async |association, mut messages| {
        messages.send(&association).await;
        hosts.enter(2).expect("the second network");
        let refused = async {
            while let Some(event) = association.next_path_event().await {
                if let PathEvent::Address(AddressChange::OwnAdded(ip, answer)) = event {
                    return (ip, answer.is_err());
                }
            }
            panic!("{:?}", association.ended().await);
        };
        let refused = timeout(PATIENCE, refused).await.expect("an end of the request");
        assert_eq!(refused, (address(PRIVATE[1]), true));
        messages.send(&association).await;
        association.shutdown().await.expect("a shutdown");
    });
}
