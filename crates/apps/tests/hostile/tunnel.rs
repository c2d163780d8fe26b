//! What packets of a hostile peer make one end of a tunnel hold.

use bytes::Bytes;
use ropewalk_base::{Duration, Time};
use ropewalk_tunnel::{Config, Header, Tunnel};

use crate::{allocated, turn};

/// The bit of a header that asks for order. The number of a packet is below it.
const ORDERED: u32 = 1 << 18;

/// Takes packets of flows whose numbers are far apart, one in `pause`. Returns the most that was allocated, bytes.
fn hold(packets: u32, pause: Duration, bytes: usize) -> u64 {
    let _turn = turn();
    let before = allocated();
    let mut tunnel = Tunnel::new(Config::default());
    let mut most = 0;
    let mut now = Time::ZERO;
    for number in 0..packets {
        now += pause;
        // All flows; of each, every second packet is missing.
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
