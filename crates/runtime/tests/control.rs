//! Requests and settings of an association while it exists, and the data left after its end.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use ropewalk_base::Duration as Span;
use ropewalk_runtime::endpoint::{
    Association, CloseReason, Endpoint, Options, ParameterError, Parameters, Target, Undelivered,
};
use tokio::time::{sleep, timeout};

/// Timeout that no step should reach.
const PATIENCE: Duration = Duration::from_secs(30);

/// Two established ends with `paths` addresses each, which send nothing on their own except HEARTBEATs.
async fn pair(paths: usize) -> (Endpoint, Endpoint, Association, Association) {
    let locals: Vec<SocketAddr> = vec![(Ipv4Addr::LOCALHOST, 0).into(); paths];
    let (mut server, mut client) = (Options::listening(&locals), Options::connecting(&locals));
    for end in [&mut server, &mut client] {
        end.transport.discover_mtu = false;
    }
    let server = Endpoint::open(server).expect("free ports");
    let client = Endpoint::open(client).expect("free ports");
    let target = Target { addresses: server.locals().to_vec(), key: None };
    let near = client.connect(&target).await.expect("the server listens");
    let far = server.accept().await;
    (server, client, near, far)
}

/// Waits until nothing has arrived at an endpoint for a while. Returns how many datagrams have arrived so far.
async fn settled(endpoint: &Endpoint) -> u64 {
    loop {
        let before = endpoint.counters().received;
        sleep(Duration::from_millis(300)).await;
        if endpoint.counters().received == before {
            return before;
        }
    }
}

/// Waits until `count` datagrams have arrived.
async fn received(endpoint: &Endpoint, count: u64) {
    let enough = async {
        while endpoint.counters().received < count {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, enough).await.expect("they come");
}

#[tokio::test]
async fn a_heartbeat_leaves_when_the_user_asks_for_it() {
    let (server, client, near, _far) = pair(1).await;
    let before = (settled(&server).await, settled(&client).await);
    assert!(near.request_heartbeat(0));
    received(&server, before.0 + 1).await;
    received(&client, before.1 + 1).await;
    assert!(!near.request_heartbeat(1), "there is no such path");
    near.shutdown().await.expect("in order");
    assert!(!near.request_heartbeat(0), "it has ended");
}

#[tokio::test]
async fn heartbeats_leave_at_the_interval_of_the_user_and_stop_when_none_are_wanted() {
    let (server, _client, near, _far) = pair(1).await;
    let before = settled(&server).await;
    assert!(near.set_heartbeats(0, true, Some(Span::from_millis(20))));
    received(&server, before + 5).await;
    assert!(near.set_heartbeats(0, false, None));
    let before = settled(&server).await;
    sleep(Duration::from_millis(2500)).await;
    assert_eq!(server.counters().received, before);
    assert!(!near.set_heartbeats(1, true, None), "there is no such path");
}

#[tokio::test]
async fn parameters_change_while_an_association_lives_and_bad_ones_are_refused() {
    let (_server, _client, near, _far) = pair(1).await;
    let usual = near.parameters().expect("it is up");
    let other = Parameters { association_max_retrans: 3, ..usual };
    near.set_parameters(other).expect("good ones");
    assert_eq!(near.parameters(), Some(other));
    let bad = Parameters { sack_delay: Span::from_secs(1), ..usual };
    assert_eq!(near.set_parameters(bad), Err(ParameterError::SackDelay));
    assert_eq!(near.parameters(), Some(other));
    assert!(near.set_path_max_retrans(0, Some(2)));
    assert!(!near.set_path_max_retrans(1, Some(2)), "there is no such path");
}

#[tokio::test]
async fn what_was_not_delivered_can_be_had_after_the_end() {
    let (_server, _client, near, far) = pair(1).await;
    // The application does not read: the first messages fill the peer's window, and the rest stay queued.
    let message = |label: u32| Bytes::from(label.to_be_bytes().repeat(250));
    let mut count = 0;
    let fill = async {
        loop {
            near.send_unordered(0, count, message(count)).await.expect("it is up");
            count += 1;
        }
    };
    let _ = timeout(Duration::from_secs(2), fill).await;
    near.abort();
    assert!(matches!(near.ended().await, Some(CloseReason::Aborted(_))));
    let (left, waited) = (near.unacknowledged(), near.unsent());
    assert!(!waited.is_empty());
    let all: Vec<&Undelivered> = left.iter().chain(&waited).collect();
    let first = all[0].ppid;
    assert!(first > 0, "the peer has acknowledged the first");
    for (at, undelivered) in all.iter().enumerate() {
        let ppid = first + at as u32;
        assert_eq!((undelivered.stream, undelivered.ppid), (0, ppid));
        assert!(undelivered.unordered && undelivered.whole);
        assert_eq!(undelivered.bytes, message(ppid));
    }
    assert_eq!(first + all.len() as u32, count, "to the last one");
    // The messages missing from that list have arrived here.
    let mut read = 0;
    while timeout(PATIENCE, far.receive()).await.expect("in time").is_some() {
        read += 1;
    }
    assert!(read >= first, "{read} of {first}");
}
