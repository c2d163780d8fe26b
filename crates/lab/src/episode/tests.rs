use ropewalk_engine::scheduler::{CustomScheduler, Decision, PathView, Reason, Schedule, View};

use super::*;
use crate::run::run;

const TEXT: &str = "[transfer]\nduration = '10 s'\nreceive_buffer = '60 kB'\nPROTOCOL\n\
    [[path]]\nname = 'wifi'\nrate = '4 Mbit/s'\nrtt = '20 ms'\nqueue = '30 packets'\n\
    [[path]]\nname = 'lte'\nrate = '8 Mbit/s'\nrtt = '90 ms'\nqueue = '50 packets'\nloss = 0.005\n";

fn scenario(more: &str) -> Scenario {
    Scenario::parse(&TEXT.replace("PROTOCOL", more), "test.toml").expect("a valid scenario")
}

/// The rule of both schedulers in this test: least smoothed RTT.
fn least<'a>(open: impl Iterator<Item = &'a PathView>) -> Option<&'a PathView> {
    open.min_by_key(|path| (path.srtt, path.id))
}

#[derive(Clone)]
struct Inside;

impl Schedule for Inside {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        match least(view.open_for_head()) {
            Some(path) => Decision::send(path.id, 0, Reason::Custom),
            None => view.nobody(),
        }
    }
}

impl CustomScheduler for Inside {
    fn name(&self) -> &str {
        "inside"
    }

    fn clone_box(&self) -> Box<dyn CustomScheduler> {
        Box::new(self.clone())
    }
}

const PATIENCE: Duration = Duration::from_millis(10);

fn from_outside(scenario: &Scenario) -> (Episode, u64) {
    let mut episode = Episode::new(scenario, PATIENCE).expect("a decision");
    let mut decisions = 0;
    while episode.state() == EpisodeState::AwaitsDecision {
        let choice = episode.observe(|ask| {
            let open = ask.paths.iter().filter(|path| ask.may_send(path.id.index()));
            Choice::Path(least(open).expect("asked only if a path is open").id.index())
        });
        episode.decide(choice);
        decisions += 1;
    }
    (episode, decisions)
}

#[test]
fn decisions_from_outside_give_the_run_of_a_scheduler_that_decides_likewise() {
    for more in ["protocol = 'cmt-sctp'", "protocol = 'mptcp'", "bytes = '3 MB'"] {
        let scenario = scenario(more);
        let (episode, decisions) = from_outside(&scenario);
        let scheduler = Some(Scheduler::Custom(Box::new(Inside)));
        let options = RunOptions { scheduler, ..RunOptions::default() };
        let result = run(&scenario, &options).expect("it runs").result;
        let score = episode.score();
        assert!(decisions > 1000, "{more}: {decisions}");
        assert_eq!(score.delivered_bytes, result.delivered_bytes, "{more}");
        let mean = score.delay_byte_s / score.delivered_bytes as f64;
        assert!((mean - result.app_delay_s.mean).abs() < 1e-6 + mean * 1e-3, "{more}: {mean}");
        let ended =
            if more.starts_with("bytes") { EpisodeState::Ended } else { EpisodeState::TimeLimit };
        assert_eq!(episode.state(), ended, "{more}");
    }
}

#[test]
fn waiting_lets_time_pass_and_a_closed_path_means_to_wait() {
    for choice in [Choice::Wait, Choice::Path(7)] {
        let mut episode = Episode::new(&scenario(""), PATIENCE).expect("a decision");
        let begun = episode.now();
        for _ in 0..20 {
            assert_eq!(episode.decide(choice), EpisodeState::AwaitsDecision);
        }
        let waited = episode.now().since(begun);
        assert!(waited > Duration::ZERO && waited <= PATIENCE * 20, "{waited}");
        assert_eq!(episode.score(), Score::default());
        while episode.decide(choice) == EpisodeState::AwaitsDecision {}
        assert_eq!(
            (episode.state(), episode.now()),
            (EpisodeState::TimeLimit, Time::from_secs(10))
        );
        assert_eq!(episode.decide(choice), EpisodeState::TimeLimit, "it stays over");
    }
}

#[test]
fn features_have_their_places_and_their_range() {
    let (episode, _) = from_outside(&scenario(""));
    let mut row = vec![-1.0; feature_count(2)];
    episode.observe(|ask| features(ask, &mut row));
    assert!(row.iter().all(|x| (0.0..=FEATURE_MOST).contains(x)), "{row:?}");
    let at = |path: usize, name: &str| {
        let place = PATH_FEATURES.iter().position(|(known, _)| *known == name);
        row[path * PATH_FEATURES.len() + place.expect("a feature")]
    };
    // Acknowledgements may return over either path: 45 ms forward, 10 ms back.
    assert!(at(0, "srtt") > 0.02 && at(1, "srtt") > 0.055, "{row:?}");
    let delivered_in_a_round = 4e6 / 8.0 * f64::from(at(0, "srtt")) / 60e3;
    assert!((f64::from(at(0, "rate")) / delivered_in_a_round - 1.0).abs() < 0.2, "{row:?}");
    assert!(at(1, "loss") > 0.0, "{row:?}");
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let many = scenario("[world]\nassociations = 2");
    let error = Episode::new(&many, PATIENCE).err().expect("two associations").to_string();
    assert!(error.contains("world.associations = 2"), "{error}");
}
