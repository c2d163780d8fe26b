//! The engine against dcsctp, in memory and virtual time.

mod lane;
mod stream_reset;

use dcsctp::api::{
    DcSctpSocket, Message, PpId, SendOptions, SocketEvent, SocketState, StreamId as TheirStream,
};
use ropewalk_base::StreamId;
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::Event;
use ropewalk_engine::sctp::Part;
use ropewalk_engine::sctp::association::CloseReason;
use ropewalk_interop::pattern::{Checker, messages};

use self::lane::Lane;

const PPID: u32 = 1000;

/// Total bytes, bytes per message, streams, and loss interval in packets.
const CASES: [(usize, usize, u16, usize); 5] = [
    (500_000, 1000, 1, 0),
    (300_000, 700, 200, 0),
    (600_000, 100_000, 3, 0),
    (600_000, 200_000, 1, 0),
    (300_000, 5000, 7, 53),
];

fn both() -> [Lane; 2] {
    let mut they_begin = Lane::waiting();
    they_begin.theirs.connect();
    [Lane::connecting(), they_begin]
}

fn up(lane: &mut Lane) {
    lane.run(|lane| {
        let connected = |event: &SocketEvent| matches!(event, SocketEvent::OnConnected());
        lane.our_events.contains(&Event::Connected) && lane.their_events.iter().any(connected)
    });
}

#[test]
fn what_we_send_arrives_and_we_shut_down() {
    for (total, length, streams, lose_every) in CASES {
        for mut lane in both() {
            up(&mut lane);
            lane.lose_every = lose_every;
            let mut rest = messages(total, length, streams).peekable();
            let mut received = Checker::default();
            let mut closing = false;
            lane.run(|lane| {
                while let Some(message) = lane.theirs.get_next_message() {
                    assert_eq!(message.ppid.0, PPID);
                    received.take(message.stream_id.0, &message.payload);
                }
                let now = lane.now;
                let ours = lane.ours().expect("it is up");
                while let Some((stream, bytes)) = rest.peek() {
                    let payload = Payload::from(bytes.clone());
                    if ours.send_with_ppid(StreamId(*stream), PPID, payload, false).is_err() {
                        break;
                    }
                    rest.next();
                }
                if rest.peek().is_none() && !closing {
                    closing = true;
                    ours.shutdown(now);
                }
                lane.our_events.contains(&Event::Closed(CloseReason::Shutdown))
            });
            lane.run(|lane| lane.theirs.state() == SocketState::Closed);
            assert_eq!(received.bytes, total.next_multiple_of(length), "{length} {streams}");
        }
    }
}

#[test]
fn what_they_send_arrives_and_they_shut_down() {
    for (total, length, streams, lose_every) in CASES {
        for mut lane in both() {
            up(&mut lane);
            lane.lose_every = lose_every;
            let mut rest = messages(total, length, streams).peekable();
            let mut received = Checker::default();
            let mut closing = false;
            lane.run(|lane| {
                let now = lane.now;
                while let Some(message) = lane.ours().and_then(|ours| ours.read(now)) {
                    assert_eq!((message.ppid, message.part), (PPID, Part::Whole));
                    let Payload::Bytes(bytes) = message.payload else { panic!("bytes") };
                    received.take(message.stream.0, &bytes);
                }
                while let Some((stream, bytes)) = rest.peek() {
                    let message = Message::new(TheirStream(*stream), PpId(PPID), bytes.to_vec());
                    if lane.theirs.send(message, &SendOptions::default()).is_err() {
                        break;
                    }
                    rest.next();
                }
                // dcsctp sends nothing after it has begun to shut down, not even queued data.
                if received.bytes >= total && !closing {
                    closing = true;
                    lane.theirs.shutdown();
                }
                lane.our_events.contains(&Event::Closed(CloseReason::Shutdown))
            });
            assert_eq!(received.bytes, total.next_multiple_of(length), "{length} {streams}");
            lane.run(|lane| lane.theirs.state() == SocketState::Closed);
        }
    }
}

#[test]
fn whoever_aborts_the_other_end_learns_of_it() {
    for mut lane in both() {
        up(&mut lane);
        lane.ours().expect("it is up").abort();
        lane.run(|lane| {
            let aborted = |event: &SocketEvent| matches!(event, SocketEvent::OnAborted(..));
            lane.their_events.iter().any(aborted)
        });
    }
    for mut lane in both() {
        up(&mut lane);
        lane.theirs.close();
        let aborted = |event: &Event| matches!(event, Event::Closed(CloseReason::AbortedByPeer(_)));
        lane.run(|lane| lane.our_events.iter().any(aborted));
    }
}

#[test]
fn when_both_begin_at_once_there_is_one_association() {
    let mut lane = Lane::connecting();
    lane.theirs.connect();
    up(&mut lane);
    let message = Message::new(TheirStream(3), PpId(PPID), vec![7; 100]);
    lane.theirs.send(message, &SendOptions::default()).expect("it is up");
    lane.run(|lane| {
        let now = lane.now;
        lane.ours().and_then(|ours| ours.read(now)).is_some_and(|message| message.stream.0 == 3)
    });
}
