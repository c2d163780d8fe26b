//! Measurements between two endpoints over loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ropewalk_apps::measure::{Direction, MeasurementPlan, run, serve};
use ropewalk_runtime::endpoint::{Association, Endpoint, Options, Target};

/// A client's end; the server serves it.
async fn client(loopback: Ipv4Addr) -> (Association, Arc<Endpoint>) {
    let at = SocketAddr::from((loopback, 0));
    let server = Endpoint::open(Options::listening(&[at])).expect("a free port");
    let to = server.locals()[0];
    tokio::spawn(async move {
        let association = server.accept().await;
        serve(&association).await;
        association.ended().await;
    });
    let here = Arc::new(Endpoint::open(Options::listening(&[at])).expect("a free port"));
    let association =
        here.connect(&Target { addresses: vec![to], key: None }).await.expect("it answers");
    (association, here)
}

#[tokio::test]
async fn what_overtakes_the_plan_does_not_make_a_client_one_of_another_version() {
    for direction in [Direction::Up, Direction::Down] {
        let (association, _here) = client(Ipv4Addr::new(127, 0, 0, 9)).await;
        // The plan may be lost in transit, and bulk data and probes are unordered: streams 0 and 2.
        for stream in [0, 2] {
            let early = Bytes::from_static(&[7; 8]);
            association.send_unordered(stream, 0, early).await.expect("it is up");
        }
        let plan = MeasurementPlan { direction, in_order: false, warmup_s: 0.05, seconds: 0.2 };
        let measured = tokio::time::timeout(Duration::from_secs(20), run(&association, plan)).await;
        let figures = measured.expect("in time").expect("it is served").figures;
        assert!(figures.bytes > 0 && figures.seconds >= 0.2, "{figures:?}");
    }
}
