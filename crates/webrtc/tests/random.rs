//! Random channels and messages over a link that loses and reorders packets: reliable channels deliver everything, in
//! order if they are ordered, and the others deliver some of it, each message at most once and unchanged. Channels are
//! closed at random, and their numbers are reused.

use std::collections::BTreeMap;

use proptest::prelude::*;
use ropewalk_webrtc::{
    ChannelId, ChannelOptions, Config, DtlsRole, Duration, Event, Message, Reliability,
};

use crate::link::{Link, Ours, Weather};

/// An action of the application.
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
    Close {
        by_a: bool,
        which: usize,
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
        1 => (any::<bool>(), any::<usize>()).prop_map(|(by_a, which)| Act::Close { by_a, which }),
        2 => (0u64..300).prop_map(|ms| Act::Wait { ms }),
    ]
}

/// A message of this length. If it is long enough, it is unique in its channel.
fn message(number: usize, length: usize, text: bool) -> Message {
    let mut content = format!("{number:08} ").repeat(length / 9 + 1);
    content.truncate(length);
    if text { Message::Text(content) } else { Message::Binary(content.into_bytes().into()) }
}

/// The history of a channel.
#[derive(Debug, Default)]
struct Life {
    options: ChannelOptions,
    /// Messages from `a` and from `b`.
    sent: [Vec<Message>; 2],
    /// Whether `a` and `b` have closed it.
    closed: [bool; 2],
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

/// One of the open channels of an end, with its label.
fn choose(end: &Ours, which: usize) -> Option<(ChannelId, String)> {
    let all: Vec<ChannelId> = end.connection.channels().collect();
    let channel = *all.get(which % all.len().max(1))?;
    let (options, _) = end.connection.channel(channel)?;
    Some((channel, options.label.clone()))
}

fn play(link: &mut Link<Ours, Ours>, acts: Vec<Act>) -> BTreeMap<String, Life> {
    let mut lives: BTreeMap<String, Life> = BTreeMap::new();
    let mut number = 0;
    for act in acts {
        let now = link.now;
        number += 100;
        match act {
            Act::Open { by_a, ordered, reliability, priority } => {
                let label = number.to_string();
                let known = ChannelOptions { ordered, reliability, priority, ..Default::default() };
                let options = ChannelOptions { label: label.clone(), ..known };
                let end = if by_a { &mut link.a } else { &mut link.b };
                end.connection.open(now, options.clone()).expect("a number is free");
                lives.insert(label, Life { options, ..Life::default() });
            }
            Act::Send { from_a, which, lengths, text } => {
                let end = if from_a { &mut link.a } else { &mut link.b };
                let Some((channel, label)) = choose(end, which) else { continue };
                for length in lengths {
                    number += 1;
                    let message = message(number, length, text);
                    if end.connection.send(now, channel, message.clone()).is_ok() {
                        let life = lives.entry(label.clone()).or_default();
                        life.sent[usize::from(!from_a)].push(message);
                    }
                }
            }
            Act::Close { by_a, which } => {
                let end = if by_a { &mut link.a } else { &mut link.b };
                let Some((channel, label)) = choose(end, which) else { continue };
                end.connection.close(channel);
                lives.entry(label).or_default().closed[usize::from(!by_a)] = true;
            }
            Act::Wait { ms } => link.run_for(Duration::from_millis(ms)),
        }
        link.drain();
    }
    lives
}

fn check(link: &Link<Ours, Ours>, lives: &BTreeMap<String, Life>) -> Result<(), TestCaseError> {
    for (label, life) in lives {
        for (from, to) in [(0, &link.b), (1, &link.a)] {
            let sent = &life.sent[from];
            let got = to.by_label.get(label).cloned().unwrap_or_default();
            // An end that has closed a channel no longer accepts messages from it.
            let whole = life.options.reliability == Reliability::Reliable && !life.closed[1 - from];
            match (whole, life.options.ordered) {
                (true, true) => prop_assert_eq!(&got, sent, "{}", label),
                (true, false) => prop_assert_eq!(sorted(&got), sorted(sent), "{}", label),
                (false, true) => prop_assert!(is_part(&got, sent), "{}", label),
                (false, false) => {
                    let (got, mut sent) = (sorted(&got), sorted(sent).into_iter());
                    let each = got.iter().all(|one| sent.any(|other| other == *one));
                    prop_assert!(each, "{}", label);
                }
            }
        }
    }
    let closed = lives.values().filter(|life| life.closed != [false; 2]).count();
    let open = lives.len() - closed;
    let counts = [&link.a, &link.b].map(|end| end.connection.channels().count());
    prop_assert_eq!(counts, [open; 2], "channels are open at both ends or at none");
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
        let lives = play(&mut link, acts);
        link.run(|link| link.a.connection.is_flushed() && link.b.connection.is_flushed());
        // Abandoned messages may still delay the delivery of later ones.
        link.run_for(Duration::from_secs(30));
        check(&link, &lives)?;
        prop_assert!(link.longest <= 1132, "{} B", link.longest);
        let violations = |end: &Ours| end.connection.stats(link.now).violations.iter().map(|(_, n)| n).sum::<u64>();
        prop_assert_eq!(violations(&link.a) + violations(&link.b), 0);
    }
}
