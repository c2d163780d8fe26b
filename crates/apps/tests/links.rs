//! Measurements of links between two endpoints over loopback.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use ropewalk_apps::measure::links::{Client, LinkPlan, Message, Train, TrainPlan, measure};
use ropewalk_apps::measure::{CONTROL, Direction, MeasureError, serve};
use ropewalk_runtime::endpoint::{Association, Endpoint, Options, Target};
use ropewalk_runtime::seal::{Allowed, SecretKey};

const PATIENCE: Duration = Duration::from_secs(90);

/// Two endpoints with an encrypted association; the server's end is given to `work`.
async fn pair<F: Future<Output = ()> + Send + 'static>(
    work: impl FnOnce(Association) -> F + Send + 'static,
) -> (Association, Endpoint) {
    let [near, far] = [(); 2].map(|()| SecretKey::generate().expect("random numbers"));
    let (key, allowed) = (far.public(), |key| Allowed::Keys(BTreeSet::from([key])));
    let at = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = Options::listening(&[at]).sealed(far, allowed(near.public()));
    let server = Endpoint::open(options).expect("a free port");
    let to = server.locals()[0];
    tokio::spawn(async move {
        let association = server.accept().await;
        work(association).await;
    });
    let here = Options::listening(&[at]).sealed(near, allowed(key));
    let here = Endpoint::open(here).expect("a free port");
    let target = Target { addresses: vec![to], key: Some(key) };
    let association = here.connect(&target).await.expect("it answers");
    (association, here)
}

async fn served(association: Association) {
    serve(&association).await;
    association.ended().await;
}

fn train(count: u32, bytes: u16, interval_ns: u64) -> Train {
    Train { id: 0, path: 0, bytes, count, group: 1, interval_ns }
}

#[tokio::test]
async fn a_measurement_gives_every_value_and_stays_within_its_bytes() {
    let (association, _here) = pair(served).await;
    let plan = LinkPlan { seconds: 4.0, max_bytes: 3_000_000 };
    let measuring = measure(&association, plan, |_, _| {});
    let found = tokio::time::timeout(PATIENCE, measuring).await.expect("in time").expect("served");
    assert!(found.sent_bytes <= plan.max_bytes && found.sent_bytes > 100_000, "{found:?}");
    let [link] = &found.links[..] else { panic!("{found:?}") };
    assert!(link.rtt_s.is_some_and(|rtt| rtt < 1.0), "the clocks' offset cancels: {link:?}");
    for direction in [Direction::Up, Direction::Down] {
        let way = link.of(direction);
        assert!(way.capacity.is_some_and(|found| found.rate_bps > 1e5), "{way:?}");
        assert!(way.loss.is_some_and(|loss| loss.sent > 100 && loss.low <= loss.rate), "{way:?}");
        assert!(way.delays.is_some_and(|delays| delays.samples > 50), "{way:?}");
    }
    assert!(found.groups().is_empty());
}

#[tokio::test]
async fn every_probe_is_counted_in_both_directions() {
    let (association, _here) = pair(served).await;
    let mut client = Client::open(&association, 1_000_000).await.expect("served");
    let plan = |direction| TrainPlan { direction, start_s: 0.0, train: train(200, 500, 500_000) };
    let plans = [plan(Direction::Up), plan(Direction::Down)];
    let trains = client.run(&plans);
    let trains = tokio::time::timeout(PATIENCE, trains).await.expect("in time").expect("served");
    for probes in &trains {
        assert_eq!(probes.len(), 200);
        // A socket buffer of a busy machine may overflow.
        assert!(probes.iter().filter(|probe| probe.arrived_s.is_some()).count() > 150);
        assert!(probes.windows(2).all(|pair| pair[0].sent_s <= pair[1].sent_s));
        assert!(probes.iter().all(|probe| probe.bytes == 500));
    }
    assert_eq!((client.sent_bytes(), client.budget()), (200_000, 800_000));
}

#[tokio::test]
async fn a_server_sends_no_more_than_the_client_has_opened() {
    let (association, _here) = pair(served).await;
    assert!(association.enable_probes());
    let tell = async |message: Message| {
        association.send(CONTROL, 0, message.encode()).await.expect("open");
    };
    tell(Message::Open { bytes: 10_000 }).await;
    // Too many bytes; too many probes; too long: each is refused. A train within the limits is sent, and
    // then nothing more.
    for (id, train) in [
        (1, train(11, 1000, 1)),
        (2, train(u32::MAX, 100, 1)),
        (3, train(50, 100, u64::MAX)),
        (4, train(10, 1000, 1)),
        (5, train(1, 100, 1)),
    ] {
        tell(Message::Train(Train { id, ..train })).await;
    }
    let mut answers = Vec::new();
    while answers.len() < 6 {
        let message = tokio::time::timeout(PATIENCE, association.receive()).await.expect("in time");
        answers.push(Message::decode(&message.expect("open").bytes).expect("a message"));
    }
    assert_eq!(answers.remove(0), Message::Open { bytes: 10_000 });
    answers.sort_by_key(|answer| match answer {
        Message::Sent { id, .. } => *id,
        other => panic!("{other:?}"),
    });
    let sent = |id, count| Message::Sent { id, count };
    assert_eq!(answers, [sent(1, 0), sent(2, 0), sent(3, 0), sent(4, 10), sent(5, 0)]);
    let mut probes = Vec::new();
    association.receive_probes(&mut probes).await;
    assert!(probes.len() <= 10 && probes.iter().all(|probe| probe.train == 4), "{probes:?}");
}

#[tokio::test]
async fn an_invalid_answer_of_a_server_ends_the_measurement() {
    let (association, _here) = pair(async |association: Association| {
        let _ = association.receive().await;
        let _ = association.send(CONTROL, 0, Message::Open { bytes: u64::MAX }.encode()).await;
        let _ = association.receive().await;
        let _ = association.send(CONTROL, 0, bytes::Bytes::from_static(&[9, 9])).await;
        association.ended().await;
    })
    .await;
    let mut client = Client::open(&association, 50_000).await.expect("it answers");
    assert_eq!(client.budget(), 50_000, "the own limit holds");
    let plan = TrainPlan { direction: Direction::Up, start_s: 0.0, train: train(1000, 100, 1) };
    let run = tokio::time::timeout(PATIENCE, client.run(&[plan])).await.expect("in time");
    assert_eq!(run, Err(MeasureError::Version));
}

#[tokio::test]
async fn probes_need_an_encrypted_association_and_a_receiver_that_wants_them() {
    let at = SocketAddr::from(([127, 0, 0, 1], 0));
    let open = || Endpoint::open(Options::listening(&[at])).expect("a free port");
    let (server, here) = (open(), open());
    let target = Target { addresses: vec![server.locals()[0]], key: None };
    let association = here.connect(&target).await.expect("it answers");
    assert!(!association.enable_probes());
    assert_eq!(Client::open(&association, 1).await.err(), Some(MeasureError::NotSealed));
}
