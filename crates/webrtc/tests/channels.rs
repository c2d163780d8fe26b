//! Two ends of this crate: opening, sending, thresholds, limits, closing.

use bytes::Bytes;
use ropewalk_webrtc::{
    ChannelClosed, ChannelId, ChannelOptions, ChannelState, CloseReason, Config, DtlsRole,
    Duration, Event, Message, OpenError, Reliability, SendError, priority,
};

use crate::link::{Link, Ours, Weather, up};

fn opened(channel: ChannelId, by_peer: bool) -> Event {
    Event::Opened { channel, by_peer }
}

fn messages(end: &Ours) -> Vec<(u16, Message)> {
    let of = |event: &Event| match event {
        Event::Message { channel, message } => Some((channel.0, message.clone())),
        _ => None,
    };
    end.events.iter().filter_map(of).collect()
}

#[test]
fn the_peer_learns_all_properties_of_a_channel() {
    let kinds = [
        Reliability::Reliable,
        Reliability::Retransmissions(0),
        Reliability::Retransmissions(1000),
        Reliability::Lifetime(Duration::from_millis(1)),
        Reliability::Lifetime(Duration::from_secs(4_000_000)),
    ];
    let mut link = up();
    for (at, reliability) in kinds.into_iter().cycle().take(10).enumerate() {
        let options = ChannelOptions {
            label: "ß".repeat(at * 1000),
            protocol: "p".repeat(at),
            ordered: at < 5,
            reliability,
            priority: priority::VERY_LOW << (at % 4),
            negotiated: None,
        };
        let now = link.now;
        let channel = link.a.connection.open(now, options.clone()).expect("there is room");
        link.run(|link| link.a.has(&opened(channel, false)));
        assert!(link.b.has(&opened(channel, true)));
        assert_eq!(link.b.connection.channel(channel), Some((&options, ChannelState::Open)));
        assert_eq!(link.a.connection.channel(channel), Some((&options, ChannelState::Open)));
    }
}

#[test]
fn numbers_follow_the_dtls_role_and_the_lowest_free_one_is_taken() {
    let mut link = up();
    let now = link.now;
    for (at, expected) in [0u16, 2, 4].into_iter().enumerate() {
        let options = ChannelOptions::labelled(&at.to_string());
        assert_eq!(link.a.connection.open(now, options), Ok(ChannelId(expected)));
    }
    for expected in [1, 3] {
        let options = ChannelOptions::default();
        assert_eq!(link.b.connection.open(now, options), Ok(ChannelId(expected)));
    }
    link.run(|link| {
        link.a.connection.channels().count() == 5 && link.b.connection.channels().count() == 5
    });
    let all: Vec<u16> = link.b.connection.channels().map(|channel| channel.0).collect();
    assert_eq!(all, [0, 1, 2, 3, 4]);
}

#[test]
fn channels_opened_before_the_association_is_up_are_announced_then() {
    let mut link = Link::new(Ours::client(), Ours::server());
    let now = link.now;
    let channel = link.a.connection.open(now, ChannelOptions::labelled("early")).expect("room");
    let early = link.a.connection.send(now, channel, Message::from("x"));
    assert_eq!(early, Err(SendError::NotConnected));
    link.run(|link| link.b.has(&opened(channel, true)) && link.a.has(&opened(channel, false)));
    // RFC 8832, 6: messages may follow before the peer has answered.
    assert_eq!(link.a.events[0], Event::Connected);
}

#[test]
fn negotiated_channels_are_open_at_once_and_nothing_is_announced() {
    let mut link = up();
    let now = link.now;
    for number in [7, 8, 65_534] {
        let options =
            ChannelOptions { negotiated: Some(ChannelId(number)), ..ChannelOptions::default() };
        let channel = ChannelId(number);
        for end in [&mut link.a, &mut link.b] {
            assert_eq!(end.connection.open(now, options.clone()), Ok(channel));
            assert_eq!(end.connection.open(now, options.clone()), Err(OpenError::InUse));
        }
        link.a.connection.send(now, channel, Message::from("at once")).expect("it is open");
        link.run(|link| messages(&link.b).contains(&(number, Message::from("at once"))));
        assert!(link.b.has(&opened(channel, false)));
    }
    let beyond =
        ChannelOptions { negotiated: Some(ChannelId(65_535)), ..ChannelOptions::default() };
    assert_eq!(link.a.connection.open(now, beyond), Err(OpenError::NoSuchStream));
}

#[test]
fn every_kind_of_message_arrives_as_it_was_sent_in_both_directions() {
    let mut link = up();
    let now = link.now;
    let channel = link.a.connection.open(now, ChannelOptions::labelled("all")).expect("room");
    let sent = [
        Message::from("text ß"),
        Message::from(""),
        Message::from(vec![0, 255, 7]),
        Message::from(Bytes::new()),
        Message::from(vec![9; 65_536]),
        Message::from("y".repeat(65_536)),
    ];
    for message in &sent {
        link.a.connection.send(now, channel, message.clone()).expect("room");
    }
    link.run(|link| messages(&link.b).len() == sent.len());
    let now = link.now;
    for (_, message) in messages(&link.b) {
        link.b.connection.send(now, channel, message).expect("room");
    }
    link.run(|link| messages(&link.a).len() == sent.len());
    let back: Vec<_> = messages(&link.a).into_iter().map(|(_, message)| message).collect();
    assert_eq!(back, sent);
    let bytes = sent.iter().map(|message| message.len() as u64).sum();
    for end in [&link.a, &link.b] {
        let stats = end.connection.channel_stats(channel).expect("it is open");
        assert_eq!((stats.messages_sent, stats.messages_received), (6, 6));
        assert_eq!((stats.bytes_sent, stats.bytes_received), (bytes, bytes));
    }
}

#[test]
fn messages_beyond_the_limit_of_the_peer_are_refused_and_nothing_is_sent() {
    let config = Config { peer_max_message_size: 1000, ..Config::new(DtlsRole::Client) };
    let mut link = Link::new(Ours::new(config, 1), Ours::server());
    link.run(|link| link.a.has(&Event::Connected));
    let now = link.now;
    let channel = link.a.connection.open(now, ChannelOptions::default()).expect("room");
    let long = link.a.connection.send(now, channel, Message::from(vec![1; 1001]));
    assert_eq!(long, Err(SendError::TooLong { length: 1001, limit: 1000 }));
    assert_eq!(link.a.connection.buffered_amount(channel), 0);
    link.a.connection.send(now, channel, Message::from(vec![1; 1000])).expect("it fits");
    link.run(|link| messages(&link.b).len() == 1);
}

#[test]
fn the_buffered_amount_falls_and_the_event_comes_once_at_the_threshold() {
    let mut link = up();
    let now = link.now;
    let channel = link.a.connection.open(now, ChannelOptions::default()).expect("room");
    link.a.connection.set_low_threshold(channel, 100_000);
    for _ in 0..40 {
        link.a.connection.send(now, channel, Message::from(vec![1; 50_000])).expect("room");
    }
    let low = Event::BufferedAmountLow { channel };
    assert!(link.a.connection.buffered_amount(channel) > 1_900_000);
    link.run(|link| link.a.has(&low));
    assert!(link.a.connection.buffered_amount(channel) <= 100_000);
    link.run(|link| link.a.connection.is_flushed());
    assert_eq!(link.a.connection.buffered_amount(channel), 0);
    assert_eq!(link.a.events.iter().filter(|event| **event == low).count(), 1);
}

#[test]
fn a_full_send_buffer_refuses_messages_and_the_application_learns_when_there_is_room() {
    let mut link = up();
    let now = link.now;
    let channel = link.a.connection.open(now, ChannelOptions::default()).expect("room");
    let mut sent = 0;
    while link.a.connection.send(now, channel, Message::from(vec![1; 60_000])).is_ok() {
        sent += 1;
    }
    assert!((69..=71).contains(&sent), "{sent} messages in 4 MiB");
    // The OPEN of another channel waits for room as well.
    let other = link.a.connection.open(now, ChannelOptions::labelled("late")).expect("a number");
    link.run(|link| link.a.has(&Event::Writable));
    link.run(|link| link.a.has(&opened(other, false)) && link.b.has(&opened(other, true)));
    link.run(|link| messages(&link.b).len() == sent);
}

#[test]
fn a_reader_that_stops_stops_the_sender_and_nothing_is_lost() {
    let mut link = up();
    let now = link.now;
    let channel = link.a.connection.open(now, ChannelOptions::default()).expect("room");
    link.run(|link| link.a.has(&opened(channel, false)));
    link.b.reads = false;
    let now = link.now;
    for number in 0..60u8 {
        link.a.connection.send(now, channel, Message::from(vec![number; 60_000])).expect("room");
    }
    link.run_for(Duration::from_secs(5));
    let unsent = link.a.connection.buffered_amount(channel);
    assert!(unsent > 2_000_000, "{unsent} B wait: the receive buffer has 1 MiB");
    link.b.reads = true;
    link.run(|link| messages(&link.b).len() == 60);
    assert!(
        messages(&link.b)
            .iter()
            .zip(0u8..)
            .all(|((_, message), number)| { *message == Message::from(vec![number; 60_000]) })
    );
}

#[test]
fn a_shutdown_delivers_what_was_sent_and_closes_all_channels() {
    let mut link = up();
    let now = link.now;
    let channel = link.a.connection.open(now, ChannelOptions::default()).expect("room");
    link.a.connection.send(now, channel, Message::from(vec![1; 65_000])).expect("room");
    link.a.connection.shutdown(now);
    let refused = link.a.connection.open(now, ChannelOptions::default());
    assert_eq!(refused, Err(OpenError::Closing));
    let over = Event::Disconnected(CloseReason::Shutdown);
    link.run(|link| link.a.has(&over) && link.b.has(&over));
    let closed = Event::Closed { channel, reason: ChannelClosed::Association };
    let [.., message, first, last] = &link.b.events[..] else { panic!("events") };
    assert!(matches!(message, Event::Message { .. }));
    assert_eq!((first, last), (&closed, &over));
    assert!(link.a.has(&closed));
}

#[test]
fn capacity_is_shared_by_priority() {
    let mut link = up();
    let now = link.now;
    let open = |link: &mut Link<Ours, Ours>, priority| {
        let options = ChannelOptions { priority, ..ChannelOptions::default() };
        link.a.connection.open(now, options).expect("room")
    };
    let channels = [open(&mut link, priority::HIGH), open(&mut link, priority::LOW)];
    for channel in channels {
        for _ in 0..30 {
            link.a.connection.send(now, channel, Message::from(vec![1; 60_000])).expect("room");
        }
    }
    link.run(|link| link.a.connection.buffered_amount(channels[0]) < 600_000);
    let sent = channels.map(|one| 1_800_000 - link.a.connection.buffered_amount(one));
    let ratio = sent[0] as f64 / sent[1] as f64;
    assert!((3.2..4.8).contains(&ratio), "high to low is 4: {ratio}");
}

#[test]
fn a_channel_that_is_closed_delivers_what_was_sent_and_closes_at_both_ends() {
    for by_a in [true, false] {
        let mut link = up();
        let now = link.now;
        let channel = link.a.connection.open(now, ChannelOptions::labelled("x")).expect("room");
        link.run(|link| link.a.has(&opened(channel, false)));
        let now = link.now;
        let (closer, other) = if by_a { (&mut link.a, &link.b) } else { (&mut link.b, &link.a) };
        assert_eq!(messages(other), []);
        for number in 0..20u8 {
            let message = Message::from(vec![number; 50_000]);
            closer.connection.send(now, channel, message).expect("room");
        }
        closer.connection.close(channel);
        let state = closer.connection.channel(channel).map(|(_, state)| state);
        assert_eq!(state, Some(ChannelState::Closing));
        let refused = closer.connection.send(now, channel, Message::from("late"));
        assert_eq!(refused, Err(SendError::Closing));
        let closed = |reason| Event::Closed { channel, reason };
        let (here, there) = (closed(ChannelClosed::Here), closed(ChannelClosed::ByPeer));
        let (of_a, of_b) = if by_a { (here, there) } else { (there, here) };
        link.run(|link| link.a.has(&of_a) && link.b.has(&of_b));
        let received = messages(if by_a { &link.b } else { &link.a });
        assert_eq!(received.len(), 20, "all that was sent before");
        assert_eq!(link.a.connection.channels().chain(link.b.connection.channels()).count(), 0);
    }
}

#[test]
fn both_ends_may_close_a_channel_at_once_and_each_reports_it_once() {
    let mut link = up();
    let now = link.now;
    let channel = link.a.connection.open(now, ChannelOptions::default()).expect("room");
    link.run(|link| link.a.has(&opened(channel, false)));
    link.a.connection.close(channel);
    link.b.connection.close(channel);
    link.b.connection.close(channel);
    let closed = Event::Closed { channel, reason: ChannelClosed::Here };
    link.run(|link| link.a.has(&closed) && link.b.has(&closed));
    link.run_for(Duration::from_secs(5));
    for end in [&link.a, &link.b] {
        let count = end.events.iter().filter(|one| matches!(one, Event::Closed { .. })).count();
        assert_eq!(count, 1);
    }
}

#[test]
fn a_number_is_used_again_after_both_ends_have_closed_it() {
    let mut link = up();
    link.weather = Weather { loss_permille: 100, jitter_ms: 30 };
    for round in 0..200u32 {
        let now = link.now;
        let label = round.to_string();
        let options =
            ChannelOptions { ordered: round % 2 == 0, ..ChannelOptions::labelled(&label) };
        let channel = link.a.connection.open(now, options).expect("a number is free");
        assert_eq!(channel, ChannelId(0));
        link.run(|link| link.a.has(&opened(channel, false)));
        let now = link.now;
        link.a.connection.send(now, channel, Message::from(label.as_str())).expect("room");
        link.b.connection.send(now, channel, Message::from(label.as_str())).expect("room");
        let expected = (0, Message::from(label.as_str()));
        link.run(|link| {
            messages(&link.a).contains(&expected) && messages(&link.b).contains(&expected)
        });
        if round % 3 == 0 {
            link.b.connection.close(channel)
        } else {
            link.a.connection.close(channel)
        }
        link.run(|link| link.a.connection.channel(channel).is_none());
        (link.a.events, link.b.events) = (Vec::new(), Vec::new());
    }
    let stats = |end: &Ours| end.connection.stats(link.now).violations;
    assert!(stats(&link.a).iter().chain(&stats(&link.b)).all(|(_, count)| *count == 0));
}

#[test]
fn a_channel_that_waits_for_the_association_or_for_room_closes_at_once() {
    let mut link = Link::new(Ours::client(), Ours::server());
    let now = link.now;
    let channel = link.a.connection.open(now, ChannelOptions::default()).expect("room");
    link.a.connection.close(channel);
    let closed = Event::Closed { channel, reason: ChannelClosed::Here };
    link.run(|link| link.a.has(&closed) && link.a.has(&Event::Connected));
    link.run_for(Duration::from_secs(1));
    assert_eq!(link.b.connection.channels().count(), 0);
}
