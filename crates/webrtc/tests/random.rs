//! Random channels and messages over a link that loses and reorders packets: reliable channels deliver everything, in
//! order where they are ordered, and the others deliver a part of it, each message once and unchanged.

use std::collections::BTreeMap;

use proptest::prelude::*;
use ropewalk_webrtc::{
    ChannelId, ChannelOptions, Config, DtlsRole, Duration, Event, Message, Reliability,
};

use crate::link::{Link, Ours, Weather};

/// What an application does.
#[derive(Clone, Debug)]
enum Act {
    Open {
        by_a: bool,
        ordered: bool,
        reliability: Reliability,
        priority: u16,
    },
    /// Messages of these lengths on one of the channels, from either end.
    Send {
        from_a: bool,
        which: usize,
        lengths: Vec<usize>,
        text: bool,
    },
    Wait {
        ms: u64,
    },
}

fn reliability() -> impl Strategy<Value = Reliability> {
    prop_oneof![
        3 => Just(Reliability::Reliable),
        1 => (0u32..4).prop_map(Reliability::Retransmissions),
        1 => (0u64..400).prop_map(|ms| Reliability::Lifetime(Duration::from_millis(ms))),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let lengths = prop::collection::vec(prop_oneof![3 => 0usize..300, 1 => 0usize..20_000], 1..8);
    prop_oneof![
        2 => (any::<bool>(), any::<bool>(), reliability(), 0u16..2000)
            .prop_map(|(by_a, ordered, reliability, priority)| Act::Open { by_a, ordered, reliability, priority }),
        4 => (any::<bool>(), any::<usize>(), lengths, any::<bool>())
            .prop_map(|(from_a, which, lengths, text)| Act::Send { from_a, which, lengths, text }),
        1 => (0u64..300).prop_map(|ms| Act::Wait { ms }),
    ]
}

/// A message of this length that can be told from all others of its channel if it is long enough.
fn message(number: usize, length: usize, text: bool) -> Message {
    let mut content = format!("{number:08} ").repeat(length / 9 + 1);
    content.truncate(length);
    if text { Message::Text(content) } else { Message::Binary(content.into_bytes().into()) }
}

type Sent = BTreeMap<(bool, u16), Vec<Message>>;

fn received(end: &Ours) -> BTreeMap<u16, Vec<Message>> {
    let mut all: BTreeMap<u16, Vec<Message>> = BTreeMap::new();
    for event in &end.events {
        if let Event::Message { channel, message } = event {
            all.entry(channel.0).or_default().push(message.clone());
        }
    }
    all
}

/// Whether `part` is `whole` without some of its elements.
fn is_part(part: &[Message], whole: &[Message]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|one| rest.any(|other| other == one))
}

fn sorted(messages: &[Message]) -> Vec<Vec<u8>> {
    let bytes = |message: &Message| match message {
        Message::Text(text) => [b"t", text.as_bytes()].concat(),
        Message::Binary(bytes) => [b"b", &bytes[..]].concat(),
    };
    let mut all: Vec<_> = messages.iter().map(bytes).collect();
    all.sort();
    all
}

fn play(link: &mut Link<Ours, Ours>, acts: Vec<Act>) -> Sent {
    let (mut sent, mut number) = (Sent::new(), 0);
    for act in acts {
        let now = link.now;
        match act {
            Act::Open { by_a, ordered, reliability, priority } => {
                let options =
                    ChannelOptions { ordered, reliability, priority, ..ChannelOptions::default() };
                let end = if by_a { &mut link.a } else { &mut link.b };
                end.connection.open(now, options).expect("a number is free");
            }
            Act::Send { from_a, which, lengths, text } => {
                let end = if from_a { &mut link.a } else { &mut link.b };
                let all: Vec<ChannelId> = end.connection.channels().collect();
                let Some(channel) = all.get(which % all.len().max(1)).copied() else { continue };
                for length in lengths {
                    number += 1;
                    let message = message(number, length, text);
                    if end.connection.send(now, channel, message.clone()).is_ok() {
                        sent.entry((from_a, channel.0)).or_default().push(message);
                    }
                }
            }
            Act::Wait { ms } => link.run_for(Duration::from_millis(ms)),
        }
        link.drain();
    }
    sent
}

fn check(link: &Link<Ours, Ours>, sent: &Sent) -> Result<(), TestCaseError> {
    for ((from_a, channel), sent) in sent {
        let (from, to) = if *from_a { (&link.a, &link.b) } else { (&link.b, &link.a) };
        let (options, _) = from.connection.channel(ChannelId(*channel)).expect("it is open");
        let got = received(to).remove(channel).unwrap_or_default();
        match (options.reliability == Reliability::Reliable, options.ordered) {
            (true, true) => prop_assert_eq!(&got, sent),
            (true, false) => prop_assert_eq!(sorted(&got), sorted(sent)),
            (false, true) => prop_assert!(is_part(&got, sent)),
            (false, false) => {
                let (got, mut sent) = (sorted(&got), sorted(sent).into_iter());
                prop_assert!(got.iter().all(|one| sent.any(|other| other == *one)));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn every_channel_delivers_what_it_promises(
        acts in prop::collection::vec(act(), 1..40),
        loss_permille in 0u64..150,
        jitter_ms in 0u64..60,
        interleaving in any::<(bool, bool)>(),
    ) {
        let config = |role, interleaving| Config { interleaving, ..Config::new(role) };
        let a = Ours::new(config(DtlsRole::Client, interleaving.0), 1);
        let b = Ours::new(config(DtlsRole::Server, interleaving.1), 2);
        let mut link = Link::new(a, b);
        link.weather = Weather { loss_permille, jitter_ms };
        link.run(|link| link.a.has(&Event::Connected) && link.b.has(&Event::Connected));
        prop_assert_eq!(link.a.connection.interleaves(), interleaving.0 && interleaving.1);
        let sent = play(&mut link, acts);
        link.run(|link| link.a.connection.is_flushed() && link.b.connection.is_flushed());
        // What was abandoned may still hold back what is behind it.
        link.run_for(Duration::from_secs(30));
        check(&link, &sent)?;
        prop_assert!(link.longest <= 1132, "{} B", link.longest);
        let violations = |end: &Ours| end.connection.stats(link.now).violations.iter().map(|(_, n)| n).sum::<u64>();
        prop_assert_eq!(violations(&link.a) + violations(&link.b), 0);
    }
}
