//! Memory that packets of a hostile peer make one end of a tunnel hold.

use std::sync::Arc;

use bytes::Bytes;
use ropewalk_apps::tunnel::{PacketMemory, QueueShare};
use ropewalk_base::{Duration, Time};
use ropewalk_tunnel::{Class, Config, Ecn, Header, Inner, Order, Tunnel};

use crate::{allocated, turn};

/// The bit of a header that requests order. The number of a packet is below it.
const ORDERED: u32 = 1 << 18;

/// Receives packets of flows whose numbers are far apart, one per `pause`. Returns the maximum allocation, bytes.
fn hold(packets: u32, pause: Duration, bytes: usize) -> u64 {
    let _turn = turn();
    let before = allocated();
    let mut tunnel = Tunnel::new(Config::default());
    let mut most = 0;
    let mut now = Time::ZERO;
    for number in 0..packets {
        now += pause;
        // All flows, each with every second packet missing.
        let (slot, round) =
            (number % u32::from(Config::FLOWS_MAX), number / u32::from(Config::FLOWS_MAX));
        let header = (slot << 22) | ORDERED | ((2 * round) % ORDERED);
        let packet = Bytes::from(vec![0; bytes]);
        tunnel.on_message(now, Header::decode(header.to_be_bytes()), bytes as u32, packet);
        while tunnel.deliver(now).is_some() {}
        most = allocated().saturating_sub(before).max(most);
    }
    most
}

#[test]
fn packets_that_wait_for_others_take_a_bounded_part_of_the_memory() {
    let limit = Config::default().held_bytes;
    for (packets, bytes) in [(200_000, 1), (200_000, 48), (20_000, 1400)] {
        let most = hold(packets, Duration::from_micros(1), bytes);
        assert!(
            most > limit / 2,
            "{packets} packets of {bytes} B: {most} B, the limit is not reached"
        );
        assert!(most < limit * 3 / 2 + (2 << 20), "{packets} packets of {bytes} B: {most} B");
    }
}

/// Hubs give each client a tunnel. Here, packets to all clients are queued, and packets from all clients wait for
/// missing ones. Returns the maximum allocation, bytes.
fn hold_for_many(limit: u64, clients: usize, bytes: usize) -> u64 {
    let _turn = turn();
    let before = allocated();
    let memory = Arc::new(PacketMemory::new(limit));
    let mut ends: Vec<_> = (0..clients)
        .map(|_| (Tunnel::new(Config::default()), QueueShare::of(memory.clone())))
        .collect();
    let (mut most, mut now) = (0, Time::ZERO);
    for number in 0..400_000 / bytes as u32 {
        now += Duration::from_micros(1);
        for (tunnel, share) in &mut ends {
            let packet = || Bytes::from(vec![0; bytes]);
            let header = ORDERED | ((2 * number) % ORDERED);
            tunnel.on_message(now, Header::decode(header.to_be_bytes()), bytes as u32, packet());
            let inner = Inner {
                flow: u64::from(number % 8),
                class: Class::Bulk,
                order: Order::Restored,
                ecn: Ecn::NotEct,
                bytes: bytes as u32,
                payload: packet(),
            };
            tunnel.enqueue(now, inner);
            while tunnel.deliver(now).is_some() {}
            let room = share.set(tunnel.cost());
            tunnel.limit_cost(room);
        }
        most = allocated().saturating_sub(before).max(most);
    }
    assert!(memory.used() > limit / 4, "{} of {limit} B: the limit is not reached", memory.used());
    most
}

#[test]
fn packets_of_all_clients_together_take_a_bounded_part_of_the_memory() {
    let limit = 4 << 20;
    for (clients, bytes) in [(200, 28), (200, 1400), (1000, 200)] {
        let most = hold_for_many(limit, clients, bytes);
        // The queues and lists of each client, empty.
        let base = clients as u64 * (16 << 10);
        assert!(most < limit * 3 / 2 + base, "{clients} clients, {bytes} B long: {most} B");
    }
}
