//! A hub with clients that behave differently from `ropewalk tunnel up`, and limits on the data of a client. Needs
//! Linux and root; otherwise says so and passes.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "waits for real programs, which take real time")]

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
use ropewalk_apps::tunnel::control::{
    CONTROL_PPID, CONTROL_STREAM, Control, PACKET_PPID, PACKET_STREAM, TAKEN_OVER, VERSION,
};
use ropewalk_load::{
    Client, Failure, HUB_ADDRESS, Hub, HubOptions, Places, SERVER_ADDRESS, source,
};
use serde_json::Value;

use crate::support::can_emulate;

const BINARY: &str = env!("CARGO_BIN_EXE_ropewalk");
/// No step takes this long, unless something is broken.
const PATIENCE: Duration = Duration::from_secs(60);
const ANSWER: Duration = Duration::from_secs(2);
/// Size of the echoed packets, bytes.
const ECHO_LENGTH: usize = 128;
/// Ports of the server: one that answers, and one that only counts.
const ECHO: u16 = 7;
const COUNT: u16 = 9;
/// Port of the hub's endpoint.
const ENDPOINT: u16 = 9899;

/// A running hub, and servers behind it.
struct Test {
    places: Places,
    hub: Hub,
    options: HubOptions,
    /// Bytes that the counting server has received.
    counted: Arc<AtomicU64>,
}

impl Test {
    /// Starts the hub. `None`, with a note, if the system does not permit it.
    fn new(clients: usize, entry: &str) -> Option<Self> {
        if !can_emulate() {
            return None;
        }
        let places = Places::new().expect("namespaces");
        let options = HubOptions { clients, entry: entry.to_owned(), ..HubOptions::default() };
        let hub = Hub::start(Path::new(BINARY), &places, &options).expect("a hub");
        let server = |port| {
            places.at_hub(|| Ok(UdpSocket::bind((SERVER_ADDRESS, port))?)).expect("a free port")
        };
        let (echo, count) = (server(ECHO), server(COUNT));
        thread::spawn(move || {
            let mut bytes = [0; 2048];
            while let Ok((size, from)) = echo.recv_from(&mut bytes) {
                let _ = echo.send_to(&bytes[..size], from);
            }
        });
        let counted = Arc::<AtomicU64>::default();
        let counter = counted.clone();
        thread::spawn(move || {
            let mut bytes = [0; 2048];
            while let Ok((size, _)) = count.recv_from(&mut bytes) {
                counter.fetch_add(size as u64, Ordering::Relaxed);
            }
        });
        Some(Self { places, hub, options, counted })
    }

    /// Runs clients in their namespace.
    fn clients(&self, what: impl AsyncFnOnce(&Hub) -> Result<(), Failure> + Send) {
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(what(&self.hub))
        };
        self.places.at_clients(run).expect("what the test says");
    }
}

async fn connect(hub: &Hub, number: usize) -> Client {
    let secret = hub.keys()[number].clone();
    Client::connect(secret, hub.public(), source(number)).await.expect("a connection")
}

fn status(hub: &Hub) -> Value {
    hub.status(Path::new(BINARY)).expect("a status")["tunnel"].clone()
}

fn refused(hub: &Hub, reason: &str) -> u64 {
    let status = status(hub);
    let all = status["refused"].as_array().cloned().unwrap_or_default();
    all.iter().find(|it| it["reason"] == reason).and_then(|it| it["packets"].as_u64()).unwrap_or(0)
}

/// Waits for a condition. The status is published once a second.
async fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "not {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn ipv4(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => panic!("{address} is not of IPv4"),
    }
}

/// A UDP packet.
fn udp(from: IpAddr, to: Ipv4Addr, port: u16, bytes: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4(ipv4(from).octets(), to.octets(), 64).udp(4000, port);
    builder.write(&mut packet, &vec![7; bytes]).expect("it fits");
    packet
}

/// Sends one request to the echo server. Returns the answer.
async fn ask(client: &Client) -> Option<Bytes> {
    client.send([udp(client.address, SERVER_ADDRESS, ECHO, 100)]).await.expect("sent");
    client.receive(ANSWER).await
}

/// Whether the echo server answers a client within a few attempts.
async fn echoes(client: &Client) -> bool {
    for _ in 0..5 {
        if ask(client).await.is_some_and(|packet| packet.len() == ECHO_LENGTH) {
            return true;
        }
    }
    false
}

/// Waits until the echo server answers a client. A busy machine may lose or delay packets.
async fn goes_on(hub: &Hub, client: &Client) {
    let start = Instant::now();
    while !echoes(client).await {
        let (status, stats) = (status(hub), client.association.stats());
        let said = hub.said();
        assert!(start.elapsed() < PATIENCE, "no answer:\n{said}\n{status}\n{stats:?}");
    }
}

#[test]
fn a_client_that_has_used_its_volume_up_is_told_and_a_restart_gives_it_no_other() {
    let Some(mut test) = Test::new(2, "[peer.tunnel]\nquota = \"20 kB/month\"") else { return };
    let quota = 20_000;
    test.clients(async |hub| {
        let client = connect(hub, 0).await;
        let (mut answers, mut lost) = (0, 0);
        let each = 2 * ECHO_LENGTH as u64;
        loop {
            match ask(&client).await {
                Some(packet) if packet.len() == ECHO_LENGTH => answers += 1,
                Some(_) => break,
                None => lost += 1,
            }
            assert!(answers * each < quota && lost < 20, "{answers} answers, {lost} lost");
        }
        assert!((answers + lost + 2) * each > quota, "{answers} answers, {lost} lost");
        // The first packet beyond the volume was answered immediately. The next answer comes after a
        // second.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        client.send([udp(client.address, SERVER_ADDRESS, ECHO, 100)]).await?;
        let answer = client.receive(ANSWER).await.expect("an answer");
        let packet = SlicedPacket::from_ip(&answer).expect("a sound packet");
        let Some(TransportSlice::Icmpv4(icmp)) = packet.transport else { panic!("{answer:?}") };
        assert_eq!((icmp.type_u8(), icmp.code_u8()), (3, 13));
        goes_on(hub, &connect(hub, 1).await).await;
        wait_for("counted", || refused(hub, "client quota") >= 2).await;
        let volume = status(hub)["volumes"][0].clone();
        assert_eq!(volume["client"], "c0");
        assert_eq!(volume["quota_bytes"], quota);
        assert!(volume["used_bytes"].as_u64().is_some_and(|used| used <= quota));
        Ok(())
    });
    let (file, key) = (test.places.file("state/tunnel.volumes"), test.hub.keys()[0].public());
    let start = Instant::now();
    while !std::fs::read_to_string(&file).is_ok_and(|text| text.contains(&key.to_string())) {
        assert!(start.elapsed() < PATIENCE, "not stored");
        thread::sleep(Duration::from_millis(100));
    }
    test.hub = test.hub.restart(Path::new(BINARY), &test.places, &test.options).expect("a hub");
    test.clients(async |hub| {
        let (client, other) = (connect(hub, 0).await, connect(hub, 1).await);
        assert!(!echoes(&client).await, "its volume is used up");
        goes_on(hub, &other).await;
        Ok(())
    });
}

#[test]
fn a_client_gets_its_rate_and_no_more() {
    let Some(test) = Test::new(1, "[peer.tunnel]\nrate = \"1 Mbit/s\"") else { return };
    test.clients(async |hub| {
        let client = connect(hub, 0).await;
        let start = Instant::now();
        let mut sent = 0;
        while start.elapsed() < Duration::from_secs(2) {
            let packet = udp(client.address, SERVER_ADDRESS, COUNT, 1000);
            sent += 50 * packet.len() as u64;
            client.send(vec![packet; 50]).await?;
            client.association.flushed().await;
        }
        let most = 65_536 + (1e6 / 8.0 * start.elapsed().as_secs_f64()) as u64;
        let passed = test.counted.load(Ordering::Relaxed);
        assert!(passed <= most && sent > most, "{passed} of {sent} B passed, at most {most}");
        assert!(passed > 65_536, "{passed} B passed: less than the burst");
        wait_for("counted", || refused(hub, "client rate") > 0).await;
        Ok(())
    });
}

#[test]
fn a_client_that_begins_wrongly_is_refused_and_others_go_on() {
    let Some(test) = Test::new(2, "") else { return };
    test.clients(async |hub| {
        let other = connect(hub, 1).await;
        let welcome = Control::Welcome(other.welcome.clone());
        let hello = |version| Control::Hello { version }.encode();
        let first: [(u16, u32, Vec<u8>); 7] = [
            (CONTROL_STREAM, CONTROL_PPID, b"nonsense".to_vec()),
            (CONTROL_STREAM, CONTROL_PPID, vec![b' '; 100_000]),
            (CONTROL_STREAM, CONTROL_PPID, hello(VERSION + 1)),
            (CONTROL_STREAM, CONTROL_PPID, welcome.encode()),
            (PACKET_STREAM, CONTROL_PPID, hello(VERSION)),
            (CONTROL_STREAM, PACKET_PPID, hello(VERSION)),
            (PACKET_STREAM, PACKET_PPID, udp(other.address, SERVER_ADDRESS, COUNT, 100)),
        ];
        for (stream, ppid, bytes) in first {
            let secret = hub.keys()[0].clone();
            let (association, _endpoint) =
                Client::associate(secret, hub.public(), source(0)).await?;
            association.send(stream, ppid, bytes.into()).await?;
            let answer = association.receive().await.expect("an answer");
            let Ok(Control::Refused { .. }) = Control::decode(&answer.bytes) else {
                panic!("{answer:?}");
            };
            tokio::time::timeout(PATIENCE, association.ended()).await.expect("it ends");
        }
        assert_eq!(test.counted.load(Ordering::Relaxed), 0);
        goes_on(hub, &other).await;
        wait_for("alone", || status(hub)["clients"] == 1).await;
        Ok(())
    });
}

#[test]
fn messages_that_a_tunnel_does_not_have_are_counted_and_many_of_them_end_the_association() {
    let Some(test) = Test::new(2, "") else { return };
    test.clients(async |hub| {
        let (client, other) = (connect(hub, 0).await, connect(hub, 1).await);
        let hello = Control::Hello { version: VERSION }.encode();
        let wrong: [(u16, u32, Vec<u8>); 4] = [
            (CONTROL_STREAM, CONTROL_PPID, hello.clone()),
            (CONTROL_STREAM, CONTROL_PPID, b"nonsense".to_vec()),
            // Shorter than a header, and longer than any packet.
            (PACKET_STREAM, PACKET_PPID, vec![1; 3]),
            (PACKET_STREAM, PACKET_PPID, vec![0x45; 1 << 20]),
        ];
        for (stream, ppid, bytes) in wrong {
            client.association.send_unordered(stream, ppid, bytes.into()).await?;
        }
        wait_for("counted", || refused(hub, "message") == 4).await;
        goes_on(hub, &client).await;
        for _ in 0..200 {
            let sent = client.association.send(CONTROL_STREAM, CONTROL_PPID, hello.clone().into());
            if sent.await.is_err() {
                break;
            }
        }
        tokio::time::timeout(PATIENCE, client.association.ended()).await.expect("it is ended");
        goes_on(hub, &other).await;
        goes_on(hub, &connect(hub, 0).await).await;
        Ok(())
    });
}

#[test]
fn a_second_association_of_a_key_takes_its_addresses_over() {
    let Some(test) = Test::new(2, "") else { return };
    test.clients(async |hub| {
        let (first, other) = (connect(hub, 0).await, connect(hub, 1).await);
        let second = connect(hub, 0).await;
        assert_eq!(first.welcome, second.welcome);
        tokio::time::timeout(PATIENCE, first.association.ended()).await.expect("it is ended");
        let reason = first.association.abort_reason().map(|reason| reason.to_string());
        assert_eq!(reason.as_deref(), Some(TAKEN_OVER));
        goes_on(hub, &second).await;
        goes_on(hub, &other).await;
        wait_for("two clients", || status(hub)["clients"] == 2).await;
        Ok(())
    });
}

/// Packets of a client that must not pass, each with the reason under which it is counted.
fn wrong_packets(own: IpAddr, other: IpAddr) -> Vec<(Vec<u8>, &'static str)> {
    let good = || udp(own, SERVER_ADDRESS, COUNT, 100);
    let from = |text: &str| udp(text.parse().expect("an address"), SERVER_ADDRESS, COUNT, 100);
    let to = |text: &str| udp(own, text.parse().expect("an address"), COUNT, 100);
    let changed = |at: usize, byte: u8| {
        let mut packet = good();
        packet[at] = byte;
        packet
    };
    vec![
        (changed(0, 0x55), "version"),
        (Vec::new(), "version"),
        (good()[..19].to_vec(), "header"),
        (changed(0, 0x44), "header"),
        ([good(), vec![0; 9]].concat(), "length"),
        (changed(3, 60), "length"),
        (from("127.0.0.1"), "source"),
        (from("0.0.0.0"), "source"),
        (from("224.0.0.1"), "source"),
        (from("255.255.255.255"), "source"),
        (to("127.0.0.1"), "destination"),
        (to("0.0.0.0"), "destination"),
        (from("10.88.0.1"), "foreign source"),
        (from("192.0.2.1"), "foreign source"),
        (from(&other.to_string()), "foreign source"),
        (to("224.0.0.1"), "no such destination"),
        (to("10.50.0.2"), "private"),
        (to("240.0.0.1"), "private"),
        (to("0.1.2.3"), "private"),
        (to(&other.to_string()), "client to client"),
        (to(&own.to_string()), "client to client"),
        (to("10.88.77.77"), "client to client"),
        (udp(own, HUB_ADDRESS, ENDPOINT, 100), "loop"),
        (udp(own, Ipv4Addr::new(10, 88, 0, 1), ENDPOINT, 100), "loop"),
    ]
}

#[test]
fn packets_that_a_client_may_not_send_are_counted_by_their_reasons_and_reach_nobody() {
    let Some(test) = Test::new(2, "") else { return };
    test.clients(async |hub| {
        let (client, other) = (connect(hub, 0).await, connect(hub, 1).await);
        let wrong = wrong_packets(client.address, other.address);
        let before: Vec<u64> = wrong.iter().map(|(_, reason)| refused(hub, reason)).collect();
        client.send(wrong.iter().map(|(packet, _)| packet.clone())).await?;
        let mut expected = std::collections::BTreeMap::<&str, u64>::new();
        for ((_, reason), before) in wrong.iter().zip(before) {
            *expected.entry(reason).or_insert(before) += 1;
        }
        // The hub's own kernel may also send packets to the device.
        for (reason, packets) in expected {
            wait_for(&format!("{packets} times {reason}"), || refused(hub, reason) >= packets)
                .await;
        }
        assert_eq!(test.counted.load(Ordering::Relaxed), 0, "none of them has arrived");
        assert_eq!(other.receive(Duration::from_millis(300)).await, None);
        goes_on(hub, &client).await;
        goes_on(hub, &other).await;
        Ok(())
    });
}

#[test]
fn a_packet_to_a_private_network_is_answered_with_the_reason() {
    let Some(test) = Test::new(1, "") else { return };
    test.clients(async |hub| {
        let client = connect(hub, 0).await;
        let packet = udp(client.address, Ipv4Addr::new(10, 50, 0, 2), COUNT, 100);
        client.send([packet]).await?;
        let answer = client.receive(PATIENCE).await.expect("an answer");
        let packet = SlicedPacket::from_ip(&answer).expect("a sound packet");
        let Some(TransportSlice::Icmpv4(icmp)) = packet.transport else { panic!("{answer:?}") };
        assert_eq!((icmp.type_u8(), icmp.code_u8()), (3, 13));
        wait_for("counted", || refused(hub, "private") == 1).await;
        Ok(())
    });
}

#[test]
fn a_client_with_many_flows_takes_little_memory_of_the_hub() {
    let Some(test) = Test::new(2, "") else { return };
    test.clients(async |hub| {
        let (client, other) = (connect(hub, 0).await, connect(hub, 1).await);
        goes_on(hub, &other).await;
        let before = hub.memory()?;
        // All slots and generations, with numbers far apart, so that the packets that others wait for never
        // arrive.
        for number in 0..20_000_u32 {
            let ordered = 1 << 18;
            let header = number.wrapping_mul(0x9E37_79B1) & !ordered | ordered;
            let port = COUNT + (number % 2) as u16 * (number % 50_000) as u16;
            let packet = udp(client.address, SERVER_ADDRESS, port, 20);
            client.send_with_header(header.to_be_bytes(), &packet).await?;
            if number % 4000 == 0 {
                goes_on(hub, &other).await;
            }
        }
        client.association.flushed().await;
        let growth = hub.memory()?.saturating_sub(before);
        // Twice the receive buffer, the data held by the core, and its queue
        // (docs/decisions/memory-bounds.md).
        assert!(growth < 48 << 20, "{growth} B");
        goes_on(hub, &other).await;
        Ok(())
    });
}
