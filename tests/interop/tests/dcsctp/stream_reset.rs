//! Streams that are reset amid traffic (RFC 6525), at both ends, with and without losses.

use bytes::Bytes;
use dcsctp::api::{DcSctpSocket, Message, PpId, SendOptions, SocketEvent, StreamId as TheirStream};
use ropewalk_base::StreamId;
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::ResetDirection;
use ropewalk_engine::sctp::{Outcome, Reconfigured, Streams};

use super::lane::Lane;
use super::{PPID, both, up};

/// Number of resets, and of messages between two of them on each stream.
const ROUNDS: u8 = 6;
const MESSAGES: u8 = 5;
/// The first stream is reset, and the other one continues.
const RESET: u16 = 3;
const OTHER: u16 = 4;

fn body(round: u8, at: u8) -> Vec<u8> {
    // Some messages need several packets.
    let size = if at == 2 { 4000 } else { 300 };
    [vec![round, at], vec![7; size]].concat()
}

/// Checks the messages of the stream that is reset, and counts those of the other stream.
#[derive(Default)]
struct Reader {
    next: (u8, u8),
    others: usize,
}

impl Reader {
    fn take(&mut self, stream: u16, bytes: &[u8]) {
        if stream == OTHER {
            self.others += 1;
            return;
        }
        assert_eq!((stream, bytes), (RESET, &body(self.next.0, self.next.1)[..]));
        self.next.1 += 1;
    }

    /// On a reset of the stream, all messages of its round must have arrived.
    fn on_reset(&mut self) {
        assert_eq!(self.next.1, MESSAGES);
        self.next = (self.next.0 + 1, 0);
    }
}

/// Whether the event reports that we have reset the stream.
fn is_reset(event: &SocketEvent) -> bool {
    matches!(event, SocketEvent::OnIncomingStreamReset(all) if *all == [TheirStream(RESET)])
}

/// Whether the event reports that dcsctp has reset the stream.
fn is_performed(event: &SocketEvent) -> bool {
    matches!(event, SocketEvent::OnStreamsResetPerformed(all) if *all == [TheirStream(RESET)])
}

#[test]
fn streams_that_we_reset_start_over_at_their_end() {
    for (at, mut lane) in both().into_iter().chain(both()).enumerate() {
        up(&mut lane);
        lane.lose_every = if at < 2 { 0 } else { 13 };
        let (mut reader, mut done) = (Reader::default(), 0);
        for round in 0..ROUNDS {
            let ours = lane.ours().expect("it is up");
            assert!(ours.reconfigures());
            for at in 0..MESSAGES {
                for stream in [RESET, OTHER] {
                    let payload = Payload::from(Bytes::from(body(round, at)));
                    ours.send_with_ppid(StreamId(stream), PPID, payload, false).expect("room");
                }
            }
            ours.reset_streams(&[StreamId(RESET)], ResetDirection::Outgoing).expect("a request");
            let whole = Streams::of(&[StreamId(RESET)]);
            lane.run(|lane| {
                while let Some(message) = lane.theirs.get_next_message() {
                    reader.take(message.stream_id.0, &message.payload);
                }
                let ours = lane.ours().expect("it is up");
                let mut ended = false;
                while let Some(event) = ours.poll_reconfiguration() {
                    assert_eq!(event, Reconfigured::Reset(whole.clone(), Outcome::Performed));
                    ended = true;
                }
                ended
            });
            done = lane.their_events.iter().filter(|event| is_reset(event)).count();
            assert_eq!(done, usize::from(round) + 1);
            reader.on_reset();
        }
        assert_eq!(done, usize::from(ROUNDS));
        lane.run(|lane| {
            while let Some(message) = lane.theirs.get_next_message() {
                reader.take(message.stream_id.0, &message.payload);
            }
            reader.others == usize::from(ROUNDS * MESSAGES)
        });
    }
}

#[test]
fn streams_that_they_reset_start_over_at_our_end() {
    for (at, mut lane) in both().into_iter().chain(both()).enumerate() {
        up(&mut lane);
        lane.lose_every = if at < 2 { 0 } else { 13 };
        let mut reader = Reader::default();
        for round in 0..ROUNDS {
            for at in 0..MESSAGES {
                for stream in [RESET, OTHER] {
                    let message = Message::new(TheirStream(stream), PpId(PPID), body(round, at));
                    lane.theirs.send(message, &SendOptions::default()).expect("it is up");
                }
            }
            // dcsctp resets a stream before it sends queued messages, so the queue must be empty.
            let expected = (round, MESSAGES);
            lane.run(|lane| {
                read(lane, &mut reader);
                reader.next == expected
            });
            lane.theirs.reset_streams(&[TheirStream(RESET)]).expect("a request");
            lane.run(|lane| {
                read(lane, &mut reader);
                let count = lane.their_events.iter().filter(|event| is_performed(event)).count();
                count == usize::from(round) + 1 && reader.next.0 == round + 1
            });
        }
        lane.run(|lane| {
            read(lane, &mut reader);
            reader.others == usize::from(ROUNDS * MESSAGES)
        });
    }
}

/// Reads all messages that have arrived, and handles each event in order.
fn read(lane: &mut Lane, reader: &mut Reader) {
    let now = lane.now;
    let ours = lane.ours().expect("it is up");
    loop {
        while let Some(event) = ours.poll_reconfiguration() {
            assert_eq!(event, Reconfigured::ResetByPeer(Streams::of(&[StreamId(RESET)])));
            reader.on_reset();
        }
        let Some(message) = ours.read(now) else { return };
        reader.take(message.stream.0, &message.payload.into_bytes());
    }
}

#[test]
fn both_reset_the_same_stream_at_the_same_time() {
    for mut lane in both() {
        up(&mut lane);
        for _ in 0..3 {
            lane.theirs.reset_streams(&[TheirStream(RESET)]).expect("a request");
            let ours = lane.ours().expect("it is up");
            ours.reset_streams(&[StreamId(RESET)], ResetDirection::Outgoing).expect("a request");
            let mut ours_ended = 0;
            lane.run(|lane| {
                let ours = lane.ours().expect("it is up");
                ours_ended += std::iter::from_fn(|| ours.poll_reconfiguration()).count();
                ours_ended == 2
            });
        }
        lane.run(|lane| lane.their_events.iter().filter(|event| is_performed(event)).count() == 3);
    }
}
