//! Assignment of packets directly over IP: each raw socket of a host receives the packets of all
//! programs.

use std::net::SocketAddr;
use std::time::Duration;

use ropewalk_interop::hosts::Hosts;
use ropewalk_interop::{Missing, or_skip};
use ropewalk_runtime::endpoint::{
    Carrier, CloseReason, ConnectError, Endpoint, OpenError, Options, PORT, RawError, SctpPorts,
    Target,
};
use tokio::time::timeout;

/// A host on which raw sockets can be used.
fn host() -> Result<Hosts, Missing> {
    RawError::check().map_err(|error| Missing(error.to_string()))?;
    Hosts::new(0)
}

fn loopback() -> Vec<SocketAddr> {
    vec![SocketAddr::from(([127, 0, 0, 1], 0))]
}

fn target() -> Target {
    Target { addresses: loopback(), key: None }
}

fn listening(ports: &[u16]) -> Result<Endpoint, OpenError> {
    Endpoint::open(Options::listening(&loopback()).over(Carrier::Ip).on_sctp_ports(ports))
}

fn connecting() -> Endpoint {
    Endpoint::open(Options::connecting(&loopback()).over(Carrier::Ip)).expect("an endpoint")
}

const fn to(local: Option<u16>, remote: u16) -> SctpPorts {
    SctpPorts { local, remote }
}

/// RFC 9260, 8.4, would require each of the other endpoints to answer foreign packets with an ABORT.
#[test]
fn endpoints_of_one_host_leave_each_other_s_associations_alone() {
    let host = or_skip!(host());
    host.live(async || {
        let [one, two] = [5001, 5002].map(|port| listening(&[port]).expect("a free port"));
        let bystanders = [connecting(), connecting()];
        let client = connecting();
        for number in 0..10 {
            for (server, port) in [(&one, 5001), (&two, 5002)] {
                let near = client.connect_with_ports(&target(), to(None, port)).await;
                let near = near.expect("the server listens");
                let far = server.accept().await;
                assert_eq!(far.sctp_ports().map(|(local, _)| local), Some(port));
                near.send(0, number, vec![7; 20_000].into()).await.expect("it is up");
                assert_eq!(far.receive().await.map(|message| message.ppid), Some(number));
                let (closed, end) = tokio::join!(near.shutdown(), far.receive());
                assert_eq!((closed, end), (Ok(()), None));
            }
        }
        for bystander in &bystanders {
            let counters = bystander.counters();
            assert_eq!((counters.received, counters.sent), (0, 0), "the filter lets packets pass");
        }
        // Each server has received its own packets only.
        assert!(one.counters().received > 0 && client.counters().unknown == 0);
    });
}

/// An endpoint cannot know whether another program owns the port, so it is silent.
#[test]
fn a_port_that_nobody_owns_is_not_answered_and_a_port_of_the_endpoint_is() {
    let host = or_skip!(host());
    host.live(async || {
        let server = listening(&[5001]).expect("a free port");
        let client = connecting();
        let nobody = client.start_connect(&target(), to(None, 5003)).expect("a free port");
        let waited = timeout(Duration::from_millis(300), nobody.established()).await;
        assert!(waited.is_err(), "{waited:?}");
        assert_eq!(server.counters().sent, 0);
        // The server answers on a port of associations that it has opened itself, although it accepts none
        // there.
        let own = server.start_connect(&target(), to(Some(5004), 5005)).expect("a free port");
        let refused = client.connect_with_ports(&target(), to(None, 5004)).await;
        let Err(ConnectError::Ended(CloseReason::AbortedByPeer(_))) = refused else {
            panic!("{refused:?}");
        };
        own.abort();
        nobody.abort();
    });
}

#[test]
fn a_port_has_one_owner_on_a_host() {
    let host = or_skip!(host());
    host.live(async || {
        let server = listening(&[5001]).expect("a free port");
        let refused = listening(&[5002, 5001]).expect_err("it is taken");
        assert!(matches!(refused, OpenError::SctpPortTaken(5001, _)), "{refused}");
        let other = listening(&[]).expect("an endpoint");
        assert!(!other.listen_on(5001) && !other.listens_on(5001));
        assert!(other.listen_on(5002) && other.listens_on(5002) && !other.listen_on(5002));
        let taken = other.start_connect(&target(), to(Some(5001), PORT));
        assert_eq!(taken.err(), Some(ConnectError::PortTaken(5001)));
        // A released port is free for others once the endpoint has noticed.
        server.stop_listening_on(5001);
        let free = async {
            while !other.listen_on(5001) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(10), free).await.expect("it is released");
        let client = connecting();
        client.connect_with_ports(&target(), to(None, 5001)).await.expect("it accepts there now");
    });
}

#[test]
fn what_cannot_work_over_ip_is_refused_when_the_endpoint_is_opened() {
    let host = or_skip!(host());
    host.live(async || {
        let options = || Options::listening(&loopback()).over(Carrier::Ip);
        let open = |options: Options| match Endpoint::open(options) {
            Err(OpenError::Raw(error)) => error.to_string(),
            other => panic!("{other:?}"),
        };
        let secret = ropewalk_runtime::seal::SecretKey::generate().expect("random numbers");
        let allowed = ropewalk_runtime::seal::Allowed::Anyone;
        let twice = Options::listening(&loopback().repeat(2)).over(Carrier::Ip);
        for (options, reason) in [
            (options().sealed(secret, allowed), "sealed packets are no SCTP packets"),
            (Options { shards: 2, ..options() }, "an endpoint has one shard"),
            (twice, "packets would arrive both at 127.0.0.1:0 and at 127.0.0.1:0"),
        ] {
            let said = open(options);
            assert!(said.contains(reason), "{said}");
        }
    });
}
