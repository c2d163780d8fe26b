//! Streams that are reset and added over real sockets (RFC 6525).

use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use ropewalk_runtime::endpoint::{
    AcceptedRequests, Association, Delivery, Endpoint, Options, Outcome, ReconfigurationError,
    Reconfigured, ResetDirection, SctpPorts, Streams, Target, Transport, UpToEvent,
};
use tokio::time::timeout;

/// Timeout that no step should reach.
const LIMIT: Duration = Duration::from_secs(30);

/// The ends of an association over loopback; the server accepts these requests.
async fn ends(accepted: AcceptedRequests) -> (Endpoint, Endpoint, Association, Association) {
    let locals = [(Ipv4Addr::LOCALHOST, 0).into()];
    let with = |options: Options, accepted_requests| {
        let settings =
            Transport { reconfiguration: true, accepted_requests, ..Transport::default() };
        Endpoint::open(Options { transport: settings, ..options }).expect("a free port")
    };
    let server = with(Options::listening(&locals).on_sctp_ports(&[7]), accepted);
    let client = with(Options::connecting(&locals), AcceptedRequests::default());
    let target = Target { addresses: server.locals().to_vec(), key: None };
    let ports = SctpPorts { local: None, remote: 7 };
    let near = client.connect_with_ports(&target, ports).await.expect("it listens");
    let far = timeout(LIMIT, server.accept()).await.expect("it comes");
    (server, client, near, far)
}

async fn next(association: &Association) -> Reconfigured {
    let event = timeout(LIMIT, association.next_reconfiguration()).await;
    event.expect("in time").expect("it goes on")
}

#[tokio::test]
async fn a_reset_comes_between_the_messages_of_before_and_those_of_after() {
    let (_server, _client, near, far) = ends(AcceptedRequests::ALL).await;
    assert!(near.reconfigures() && far.reconfigures());
    let send = |text: &'static [u8]| {
        near.try_send(3, 0, Bytes::from_static(text), Delivery::RELIABLE).expect("room");
    };
    send(b"before");
    near.reset_streams(&[3], ResetDirection::Outgoing).expect("a request");
    send(b"after");
    let streams = Streams::of(&[ropewalk_base::StreamId(3)]);
    assert_eq!(next(&near).await, Reconfigured::Reset(streams.clone(), Outcome::Performed));
    near.flushed().await;
    // Both messages have arrived, with the event between them.
    assert_eq!(far.try_reconfiguration(), None, "the message of before is not received yet");
    let mut order = Vec::new();
    loop {
        let mut messages = Vec::new();
        let UpToEvent { event, more } = far.try_receive_up_to_event(&mut messages, 1 << 20);
        order.extend(messages.iter().map(|message| message.bytes.to_vec()));
        if let Some(event) = event {
            assert_eq!(event, Reconfigured::ResetByPeer(streams.clone()));
            order.push(b"reset".to_vec());
        } else if !more {
            break;
        }
    }
    assert_eq!(order, [&b"before"[..], b"reset", b"after"]);
    assert!(!far.has_input());
}

#[tokio::test]
async fn streams_are_added_and_what_is_not_accepted_is_denied() {
    let more_streams = AcceptedRequests { more_streams: true, ..AcceptedRequests::default() };
    let (_server, _client, near, far) = ends(more_streams).await;
    far.set_accepted_requests(AcceptedRequests { stream_resets: false, ..far.accepted_requests() });
    near.reset_streams(&[], ResetDirection::Outgoing).expect("a request");
    let denied = Outcome::Denied;
    assert_eq!(next(&near).await, Reconfigured::Reset(Streams::All, denied));
    // 1024 is both the limit and the current number.
    assert_eq!(near.stream_counts(), (1024, 1024));
    near.add_streams(5, 0).expect("a request");
    let expected = Reconfigured::StreamsAdded { outgoing: 5, incoming: 0, outcome: denied };
    assert_eq!(next(&near).await, expected);
    near.reset_association().expect("a request");
    let event = next(&near).await;
    assert!(
        matches!(event, Reconfigured::Association { outcome: Outcome::Denied, .. }),
        "{event:?}"
    );
    near.shutdown().await.expect("it ends");
    assert_eq!(near.next_reconfiguration().await, None);
    assert_eq!(near.reset_association(), Err(ReconfigurationError::Closing));
}

#[tokio::test]
async fn an_association_that_is_reset_carries_on() {
    let (_server, _client, near, far) = ends(AcceptedRequests::ALL).await;
    for round in 0..3u8 {
        near.try_send(1, 0, vec![round; 100].into(), Delivery::RELIABLE).expect("room");
        near.reset_association().expect("a request");
        far.try_send(2, 0, vec![round; 100].into(), Delivery::RELIABLE).expect("room");
        let message = timeout(LIMIT, far.receive()).await.expect("in time").expect("a message");
        assert_eq!(message.bytes, vec![round; 100]);
        let message = timeout(LIMIT, near.receive()).await.expect("in time").expect("a message");
        assert_eq!(message.bytes, vec![round; 100]);
        // All earlier messages have been received, so nothing delays the events.
        for (end, requested_there) in [(&near, false), (&far, true)] {
            let event = next(end).await;
            let Reconfigured::Association { by_peer, outcome, .. } = event else {
                panic!("{event:?}")
            };
            assert_eq!((by_peer, outcome), (requested_there, Outcome::Performed));
        }
    }
}
