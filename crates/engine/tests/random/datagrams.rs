//! Messages with limits over random networks: an unordered message is delivered at most once and not
//! later than a forward delay after its lifetime, an ordered one in order, and no state of it remains.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use ropewalk_base::{Duration, Seed, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::scheduler::DelaySource;
use ropewalk_engine::sctp::{Association, Config, Copies, Delivery, PacketForm, Part, Urgency};

use super::from_environment;
use crate::driver::{Fate, LEFT, Pair, RIGHT, config, in_turn, ms, scheduler};

#[derive(Clone, Debug)]
struct Case {
    delays: Vec<u64>,
    /// Share of packets lost, delayed and duplicated.
    loss: f64,
    late: f64,
    twice: f64,
    /// Maximum additional delay, ms.
    jitter: u64,
    lay: bool,
    compact: bool,
    buffer: u64,
    seed: u64,
    messages: Vec<Message>,
}

#[derive(Clone, Copy, Debug)]
struct Message {
    /// Time since the previous message, ms.
    after: u64,
    size: u32,
    stream: u16,
    delivery: Delivery,
}

fn any_delivery() -> impl Strategy<Value = Delivery> {
    let lifetime = prop_oneof![1 => Just(None), 6 => (1..400u64).prop_map(|at| Some(ms(at)))];
    let retransmissions = prop_oneof![Just(None), (0..3u8).prop_map(Some)];
    let urgency = prop::sample::select(
        &[Urgency::Interactive, Urgency::Bulk, Urgency::FirstOpen, Urgency::Background][..],
    );
    let copies = prop_oneof![3 => Just(Copies::One), 1 => Just(Copies::Two)];
    let flags = (prop::bool::weighted(0.2), prop::bool::weighted(0.2));
    let priority = prop_oneof![2 => Just(None), 1 => (0..4u32).prop_map(Some)];
    (lifetime, retransmissions, priority, flags, urgency, copies).prop_map(
        |(lifetime, retransmissions, priority, (ordered, immediate), urgency, copies)| Delivery {
            lifetime,
            retransmissions,
            priority,
            ordered,
            urgency,
            copies,
            immediate,
            exceeds_buffer: false,
            context: 0,
        },
    )
}

fn any_message() -> impl Strategy<Value = Message> {
    let after = prop_oneof![3 => Just(0), 2 => 0..5u64, 1 => 0..100u64];
    let size = prop_oneof![3 => 8..300u32, 3 => 1000..1452u32, 1 => 1453..9000u32];
    (after, size, 0..3u16, any_delivery()).prop_map(|(after, size, stream, delivery)| Message {
        after,
        size,
        stream,
        delivery,
    })
}

fn any_case() -> impl Strategy<Value = Case> {
    let network = (vec(1..120u64, 1..4), 0.0..0.3, 0.0..0.2, 0.0..0.1, 0..200u64);
    let knobs = (any::<[bool; 2]>(), prop_oneof![Just(1u64 << 14), Just(1 << 18)], any::<u64>());
    (network, knobs, vec(any_message(), 1..120)).prop_map(
        |((delays, loss, late, twice, jitter), ([lay, compact], buffer, seed), messages)| Case {
            delays,
            loss,
            late,
            twice,
            jitter,
            lay,
            compact,
            buffer,
            seed,
            messages,
        },
    )
}

fn pair_of(case: &Case) -> Pair {
    let paths = config(case.delays.len(), case.buffer);
    let settings = Config { streams: 3, reports_abandoned: true, ..paths };
    let settings = match case.compact {
        true => Config {
            packet_form: PacketForm::Compact,
            delay_source: DelaySource::Timestamp,
            ..settings
        },
        false => settings,
    };
    let one = || if case.lay { scheduler("lay") } else { in_turn() };
    let mut pair = Pair::with(&settings, &settings, &case.delays, [one(), one()]);
    pair.connect();
    let mut rng = Seed::root(case.seed).child("network").rng();
    let (loss, late, twice, jitter) = (case.loss, case.late, case.twice, case.jitter);
    pair.script(move |_| match () {
        () if rng.chance(loss) => Fate::Drop,
        () if rng.chance(late) => Fate::Late(ms(rng.below(jitter + 1))),
        () if rng.chance(twice) => Fate::Twice,
        () => Fate::Arrive,
    });
    pair
}

/// Sent messages, by number.
type Sent = BTreeMap<u32, (Time, Message)>;

fn send_all(pair: &mut Pair, case: &Case) -> Sent {
    let mut sent = Sent::new();
    for (number, message) in (0u32..).zip(&case.messages) {
        pair.run_for(ms(message.after));
        let mut bytes = vec![0; message.size as usize];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        let payload = Payload::from(Bytes::from(bytes));
        let delivery = Delivery { context: context_of(number), ..message.delivery };
        if pair.try_send(LEFT, message.stream, payload, delivery).is_ok() {
            sent.insert(number, (pair.now, *message));
        }
    }
    sent
}

/// The application's number of a message. One in four messages has none.
const fn context_of(number: u32) -> u32 {
    if number % 4 == 3 { 0 } else { number + 1 }
}

fn check(pair: &Pair, case: &Case, sent: &Sent) -> Result<BTreeSet<u32>, TestCaseError> {
    let slowest = case.delays.iter().max().copied().unwrap_or(0) + case.jitter;
    let mut seen = BTreeMap::<u32, Time>::new();
    let mut last = [None; 3];
    let mut parts = Vec::new();
    for (message, at) in pair.read[RIGHT].iter().zip(&pair.read_at[RIGHT]) {
        let piece = message.payload.clone().into_bytes().to_vec();
        let cut_off = message.part == Part::Last && piece.is_empty();
        // Complete messages may be delivered between the parts of another one.
        let bytes = match message.part {
            Part::Whole => piece,
            Part::First | Part::Middle => {
                parts.extend(piece);
                continue;
            }
            Part::Last => [std::mem::take(&mut parts), piece].concat(),
        };
        if cut_off {
            continue;
        }
        prop_assert!(bytes.len() >= 8, "a part of a message");
        let number = u32::from_be_bytes(*bytes.first_chunk().expect("8 bytes"));
        let (begun, of) = sent.get(&number).expect("it was sent");
        prop_assert_eq!(bytes.len(), of.size as usize);
        prop_assert!(seen.insert(number, *at).is_none(), "message {} twice", number);
        if let (Some(lifetime), false) = (of.delivery.lifetime, of.delivery.ordered) {
            let latest = *begun + lifetime + ms(slowest);
            let whole = of.size <= 1452;
            prop_assert!(!whole || *at <= latest, "{} read at {}, {:?}", number, at, of);
        }
        if of.delivery.ordered && of.delivery.urgency != Urgency::Background {
            let before = last[usize::from(of.stream)].replace(number);
            prop_assert!(before < Some(number), "{:?} before {}", before, number);
        }
    }
    for (number, (_, message)) in sent {
        let Delivery { lifetime, retransmissions, priority, .. } = message.delivery;
        let reliable = lifetime.is_none() && retransmissions.is_none() && priority.is_none();
        prop_assert!(!reliable || seen.contains_key(number), "{} is missing", number);
    }
    Ok(seen.into_keys().collect())
}

/// Each message that did not arrive is reported once as abandoned, with the application's number, and
/// nothing is counted twice.
fn check_reports(pair: &mut Pair, sent: &Sent, seen: &BTreeSet<u32>) -> Result<(), TestCaseError> {
    let reports = pair.ends[LEFT].take_abandoned();
    let counts = pair.ends[LEFT].abandoned_messages(None, None);
    prop_assert_eq!(counts.unsent + counts.sent, reports.len() as u64);
    prop_assert_eq!(pair.ends[LEFT].sender_stats().abandoned, reports.len() as u64);
    let never_left = reports.iter().filter(|message| message.never_left()).count();
    prop_assert_eq!(counts.unsent as usize, never_left);
    let mut gone = BTreeSet::new();
    for message in &reports {
        if message.from_beginning && message.freed == 0 {
            let bytes = message.payload.clone().into_bytes();
            let number = u32::from_be_bytes(*bytes.first_chunk().expect("4 bytes"));
            prop_assert_eq!(bytes.len(), sent[&number].1.size as usize, "message {}", number);
            prop_assert_eq!(message.context, context_of(number));
            prop_assert!(gone.insert(number), "{} is reported twice", number);
        } else {
            // Its beginning has arrived and was acknowledged.
            gone.extend(message.context.checked_sub(1));
        }
    }
    for number in sent.keys().filter(|number| context_of(**number) > 0) {
        let known = seen.contains(number) || gone.contains(number);
        prop_assert!(known, "{} neither arrived nor was reported", number);
    }
    Ok(())
}

fn play(case: &Case) -> Result<(), TestCaseError> {
    let mut pair = pair_of(case);
    // Without the measurements, whose histograms grow up to a fixed size.
    let size = |pair: &Pair| {
        let state = |end: &Association| {
            format!("{end:?}").len() - format!("{:?}", end.receive_stats()).len()
        };
        pair.ends.iter().map(state).sum::<usize>()
    };
    let before = size(&pair);
    let sent = send_all(&mut pair, case);
    pair.run_for(Duration::from_secs(2));
    pair.heal();
    pair.run_for(Duration::from_secs(300));
    prop_assert!(pair.ends[LEFT].is_flushed(), "{:?}", pair.ends[LEFT].state());
    prop_assert_eq!(pair.ends[RIGHT].receive_occupancy().0, 0);
    let seen = check(&pair, case, &sent)?;
    check_reports(&mut pair, &sent, &seen)?;
    let after = size(&pair);
    prop_assert!(after < before + 12_000, "{} characters became {}", before, after);
    Ok(())
}

/// Number of cases unless the environment sets it.
const CASES: u32 = 300;

#[test]
fn a_message_with_limits_arrives_at_most_once_and_in_time_and_leaves_nothing() {
    let cases = from_environment("ROPEWALK_DATAGRAM_CASES", CASES);
    let seed = from_environment("ROPEWALK_SEED", 1);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let played = TestRunner::new_with_rng(config, rng).run(&any_case(), |case| play(&case));
    assert!(played.is_ok(), "ROPEWALK_SEED={seed}: {}", played.unwrap_err());
}
