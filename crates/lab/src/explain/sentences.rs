//! Texts for decisions and reasons.

use ropewalk_engine::record::{DecisionRecord, PathSnapshot};
use ropewalk_engine::scheduler::{Action, Reason};

/// A reason as one word, for tables and programs.
pub const fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::OnlyOpen => "only-open",
        Reason::NextInTurn => "next-in-turn",
        Reason::LargestDeficit => "largest-deficit",
        Reason::LeastRtt => "least-rtt",
        Reason::OnSchedule => "on-schedule",
        Reason::NewSchedule => "new-schedule",
        Reason::FastFromHead => "fast-from-head",
        Reason::NoEstimate => "no-estimate",
        Reason::LeastCost => "least-cost",
        Reason::EveryPath => "every-path",
        Reason::RetransmissionPolicy => "retransmission-policy",
        Reason::Unblock => "unblock",
        Reason::WindowBlocked => "window-blocked",
        Reason::AllFull => "all-full",
        Reason::NoData => "no-data",
        Reason::NotYetDue => "not-yet-due",
        Reason::FasterSoon => "faster-soon",
        Reason::NothingOnTheWay => "nothing-on-the-way",
        Reason::SoonestDelivery => "soonest-delivery",
        Reason::ShortestQueue => "shortest-queue",
        Reason::AcrossTheGap => "across-the-gap",
        Reason::QueuedElsewhere => "queued-elsewhere",
        Reason::WouldBlock => "would-block",
        Reason::Hedged => "hedged",
        Reason::Custom => "custom",
    }
}

/// A reason as the second part of a sentence.
pub const fn meaning(reason: Reason) -> &'static str {
    match reason {
        Reason::OnlyOpen => "it is the only path with room in its window",
        Reason::NextInTurn => "it is its turn",
        Reason::LargestDeficit => "it is furthest behind its share",
        Reason::LeastRtt => "it has the least round-trip time of the paths with room",
        Reason::OnSchedule => "the schedule puts this chunk on it, so that it arrives in order",
        Reason::NewSchedule => "a new schedule puts this chunk on it, so that it arrives in order",
        Reason::FastFromHead => "it is the fast path, which takes the oldest data",
        Reason::NoEstimate => "the delays are not known yet, and its round-trip time is the least",
        Reason::LeastCost => "it is the cheapest path with room",
        Reason::EveryPath => "each path carries a copy",
        Reason::RetransmissionPolicy => {
            "the chunk was lost, and this is where the retransmission policy sends it"
        }
        Reason::Unblock => {
            "the window is blocked, and the oldest chunk may arrive sooner on another path"
        }
        Reason::WindowBlocked => "the receive window has no room for the next data",
        Reason::AllFull => "the window of every path is full",
        Reason::NoData => "there is nothing to send",
        Reason::NotYetDue => "the schedule has no path send before then",
        Reason::FasterSoon => "a faster path will have room soon and deliver it sooner",
        Reason::NothingOnTheWay => {
            "the scheduler would wait, but nothing is in flight that could end the wait"
        }
        Reason::SoonestDelivery => "it delivers this chunk soonest, behind what is queued there",
        Reason::ShortestQueue => "its queue empties soonest, and a burst stays together",
        Reason::AcrossTheGap => {
            "taken from this position, it arrives together with the data of the faster paths"
        }
        Reason::QueuedElsewhere => {
            "full paths deliver the sendable data sooner, or it is already assigned to them"
        }
        Reason::WouldBlock => "it would occupy window that a faster path needs meanwhile",
        Reason::Hedged => "a second copy goes along, in case the first does not arrive",
        Reason::Custom => "the custom scheduler decided so",
    }
}

/// The action and its reason as a sentence.
pub fn sentence(names: &[&str], record: &DecisionRecord) -> String {
    let why = meaning(record.reason);
    let done = match record.action {
        Action::Send { path, position } => {
            format!("{} goes on {}", chunk(record, position), names[path.index()])
        }
        Action::Copies { paths, position } => {
            let to: Vec<&str> = paths.iter().map(|path| names[path.index()]).collect();
            format!("{} goes on {}", chunk(record, position), to.join(" and "))
        }
        Action::Wait { until } => format!("nothing is sent until {} s", until.as_secs_f64()),
        Action::Blocked => "nothing is sent".to_owned(),
    };
    format!("{done}: {why}")
}

/// The chunk and its distance from the head of the queue.
fn chunk(record: &DecisionRecord, position: u64) -> String {
    let name = record.chunk.map_or_else(|| "a chunk".to_owned(), |n| format!("chunk {n}"));
    match (record.reason, position) {
        (Reason::RetransmissionPolicy | Reason::Unblock, _) => format!("{name} again"),
        (_, 0) => name,
        (_, 1) => format!("{name}, 1 chunk behind the head of the queue,"),
        (_, behind) => format!("{name}, {behind} chunks behind the head of the queue,"),
    }
}

/// The state of the paths as a sentence.
pub fn known(names: &[&str], record: &DecisionRecord) -> String {
    let paths: Vec<String> =
        record.paths.iter().map(|path| path_known(names[path.id.index()], path)).collect();
    paths.join("; ")
}

fn path_known(name: &str, path: &PathSnapshot) -> String {
    if !path.usable {
        return format!("{name}: not usable");
    }
    let kb = |bytes: u64| bytes as f64 / 1e3;
    let filled =
        format!("{name}: {:.1} of {:.1} kB in flight", kb(path.in_flight), kb(path.window));
    let ms = |nanos: u64| nanos as f64 / 1e6;
    match (path.forward_nanos, path.srtt_nanos) {
        (0, 0) => format!("{filled}, delay unknown"),
        (0, rtt) => format!("{filled}, RTT {:.1} ms", ms(rtt)),
        (forward, _) => format!("{filled}, {:.1} ms there", ms(forward)),
    }
}

/// All reasons, for tests. A new reason first causes a compile error in the matches above.
#[cfg(test)]
pub const ALL: [Reason; 25] = [
    Reason::OnlyOpen,
    Reason::NextInTurn,
    Reason::LargestDeficit,
    Reason::LeastRtt,
    Reason::OnSchedule,
    Reason::NewSchedule,
    Reason::FastFromHead,
    Reason::NoEstimate,
    Reason::LeastCost,
    Reason::EveryPath,
    Reason::RetransmissionPolicy,
    Reason::Unblock,
    Reason::WindowBlocked,
    Reason::AllFull,
    Reason::NoData,
    Reason::NotYetDue,
    Reason::FasterSoon,
    Reason::NothingOnTheWay,
    Reason::SoonestDelivery,
    Reason::ShortestQueue,
    Reason::AcrossTheGap,
    Reason::QueuedElsewhere,
    Reason::WouldBlock,
    Reason::Hedged,
    Reason::Custom,
];

#[cfg(test)]
mod tests {
    use ropewalk_base::{PathId, Time};

    use super::*;

    fn record(action: Action, reason: Reason) -> DecisionRecord {
        let path = |id: u8, usable, forward_nanos| PathSnapshot {
            id: PathId(id),
            usable,
            window: 4_500,
            in_flight: 3_000,
            srtt_nanos: 40_000_000,
            forward_nanos,
        };
        let paths = vec![path(0, true, 15_000_000), path(1, true, 0), path(2, false, 0)];
        DecisionRecord {
            at: Time::from_millis(5),
            chunk: Some(17),
            action,
            reason,
            sendable: 3,
            paths,
        }
    }

    #[test]
    fn a_decision_reads_as_a_sentence_with_what_was_known() {
        let names = ["wifi", "lte", "satellite"];
        let seen = "wifi: 3.0 of 4.5 kB in flight, 15.0 ms there; \
                     lte: 3.0 of 4.5 kB in flight, RTT 40.0 ms; satellite: not usable";
        let on = |path: u8, position| Action::Send { path: PathId(path), position };
        for (action, reason, told) in [
            (
                on(1, 4),
                Reason::OnSchedule,
                "chunk 17, 4 chunks behind the head of the queue, goes on lte: the schedule puts this chunk on it, so that it arrives in order",
            ),
            (on(0, 0), Reason::NextInTurn, "chunk 17 goes on wifi: it is its turn"),
            (
                on(0, 0),
                Reason::RetransmissionPolicy,
                "chunk 17 again goes on wifi: the chunk was lost, and this is where the retransmission policy sends it",
            ),
            (
                Action::Wait { until: Time::from_millis(1500) },
                Reason::FasterSoon,
                "nothing is sent until 1.5 s: a faster path will have room soon and deliver it sooner",
            ),
            (
                Action::Blocked,
                Reason::WindowBlocked,
                "nothing is sent: the receive window has no room for the next data",
            ),
        ] {
            let record = record(action, reason);
            assert_eq!(
                (sentence(&names, &record).as_str(), known(&names, &record).as_str()),
                (told, seen)
            );
        }
    }

    #[test]
    fn every_reason_has_a_word_and_a_meaning_of_its_own() {
        for (i, one) in ALL.into_iter().enumerate() {
            for other in &ALL[i + 1..] {
                assert_ne!(word(one), word(*other));
                assert_ne!(meaning(one), meaning(*other));
            }
        }
    }
}
