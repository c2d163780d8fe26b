//! The compact form of packets: their capacity, and delays without timestamps.

use ropewalk_base::Duration;
use ropewalk_engine::scheduler::DelaySource;
use ropewalk_engine::sctp::{Chunk, Config, Echoed, PacketForm, Preset};

use crate::driver::{Fate, LEFT, Pair, RIGHT, Sent, config, in_turn, ms, numbered};

const LOWER_HEADER: u32 = Preset::LIVE_LOWER_HEADER;
/// User data of the largest datagram on paths of 1500 B.
const LARGEST: u32 = 1500 - LOWER_HEADER - 3;

fn settings(paths: usize) -> Config {
    Config {
        packet_form: PacketForm::Compact,
        lower_header: LOWER_HEADER,
        delay_source: DelaySource::Timestamp,
        send_buffer: 1 << 24,
        ..config(paths, 1 << 20)
    }
}

fn up(delays: &[u64]) -> Pair {
    let settings = settings(delays.len());
    let mut pair = Pair::with(&settings, &settings, delays, [in_turn(), in_turn()]);
    pair.connect();
    pair.greet();
    pair.log.clear();
    pair
}

fn size(sent: &Sent) -> u32 {
    sent.packet.wire_len_in(PacketForm::Compact) + LOWER_HEADER
}

#[test]
fn the_largest_datagram_fills_its_packet_and_smaller_ones_share_one() {
    let mut pair = up(&[10]);
    assert_eq!(pair.ends[LEFT].largest_datagram(), LARGEST);
    let sizes: Vec<u32> = (LARGEST - 40..=LARGEST).chain([100; 20]).chain([LARGEST + 1]).collect();
    let before = pair.read[RIGHT].len();
    for (salt, size) in sizes.iter().enumerate() {
        pair.queue(LEFT, 0, numbered(*size, salt as u32), true);
    }
    pair.drain(LEFT);
    pair.run_for(Duration::from_secs(9));
    let mut arrived: Vec<_> = pair.read[RIGHT][before..].iter().map(|m| m.payload.len()).collect();
    let mut expected = sizes;
    arrived.sort_unstable();
    expected.sort_unstable();
    assert_eq!(arrived, expected);
    let with_data = || pair.log.iter().filter(|sent| sent.data().next().is_some());
    assert!(with_data().all(|sent| size(sent) <= 1500));
    let full = with_data().find(|sent| size(sent) == 1500).expect("the largest one");
    assert_eq!(full.data().map(|data| data.payload.len()).collect::<Vec<_>>(), [LARGEST]);
    assert!(with_data().any(|sent| sent.data().count() >= 10), "small ones in one packet");
    // A message that exceeds a packet is fragmented like any other.
    let parts: Vec<_> =
        with_data().flat_map(Sent::data).filter(|data| !data.is_datagram()).collect();
    assert_eq!(parts.iter().map(|data| data.payload.len()).sum::<u32>(), LARGEST + 1);
}

#[test]
fn delays_are_measured_without_timestamps_also_if_sacks_take_the_faster_path() {
    for to_last in [false, true] {
        let settings = settings(2);
        let settings = Config {
            sack: ropewalk_engine::sctp::SackOptions { to_last, ..settings.sack },
            ..settings
        };
        let mut pair = Pair::with(&settings, &settings, &[10, 60], [in_turn(), in_turn()]);
        // Because of losses, chunks are retransmitted on the same path and on the other one.
        let mut count = 0;
        pair.script(move |sent| {
            count += 1;
            if sent.from == LEFT && count % 50 == 0 { Fate::Drop } else { Fate::Arrive }
        });
        pair.connect();
        pair.greet();
        pair.send_full(LEFT, 3_000);
        pair.run_for(ms(700));
        assert!(pair.log.iter().all(|sent| sent.packet.stamp.is_none()));
        let echoes = pair.log.iter().filter_map(|sent| sent.packet.echo);
        let by_path = echoes.fold([0; 2], |mut counts, echo| {
            assert!(matches!(echo.of, Echoed::Tsn(_)));
            counts[usize::from(echo.path)] += 1;
            counts
        });
        assert!(by_path.iter().all(|count| *count > 10), "{by_path:?}");
        let forward = |path| pair.view(LEFT, path).forward_delay.expect("measured").as_nanos();
        let difference = (forward(1) - forward(0)) / 1_000;
        assert!((49_000..51_000).contains(&difference), "{difference} us, not 50 ms");
    }
}

#[test]
fn packets_that_set_up_and_end_an_association_have_the_standard_form() {
    let mut pair = up(&[10]);
    pair.send_full(LEFT, 20);
    pair.run_for(Duration::from_secs(2));
    let now = pair.now;
    pair.ends[LEFT].shutdown(now);
    pair.drain(LEFT);
    pair.run_for(Duration::from_secs(2));
    for sent in &pair.log {
        let standard = sent.packet.wire_len() == sent.packet.wire_len_in(PacketForm::Compact);
        let carries = matches!(sent.packet.chunks[0], Chunk::Data(_) | Chunk::Sack(_));
        assert_eq!(standard, !carries, "{:?}", sent.names());
    }
    assert!(pair.closed(LEFT).is_some());
}
