//! Complete scenarios: parsing, writing, and overrides.

use std::path::PathBuf;

use ropewalk_base::{Duration, Rate, Time};
use ropewalk_scenario::{
    Application, Capacity, Cross, CrossKind, Discipline, End, Jitter, JitterShape, Limit, Loss,
    Override, Protocol, Queue, Radio, Reorder, Scenario, SchedulerName, Side, Step, Target, Wifi,
    WifiStandard,
};

fn ready_scenarios() -> Vec<PathBuf> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    files
}

const MINIMAL: &str = "[[path]]\n";

/// Uses every key, except for alternatives that exclude each other.
const FULL: &str = include_str!("full.toml");

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn parse_with(text: &str, sets: &[&str]) -> Scenario {
    Scenario::parse_with(text, "test.toml", sets).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(text: &str, sets: &[&str]) -> String {
    match Scenario::parse_with(text, "test.toml", sets) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{sets:?} was accepted"),
    }
}

#[test]
fn every_ready_scenario_is_valid_and_says_what_to_look_for() {
    let files = ready_scenarios();
    assert!(files.len() >= 10, "{files:?}");
    for file in files {
        let scenario = Scenario::load(&file).unwrap_or_else(|error| panic!("{error}"));
        assert!(scenario.transfer.warmup < scenario.transfer.duration);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("# ") && text.contains("# Look at"), "{}", file.display());
    }
}

#[test]
fn what_is_written_reads_back_to_an_equal_scenario() {
    let ready = ready_scenarios().into_iter().map(|file| {
        let name = file.display().to_string();
        (std::fs::read_to_string(file).unwrap(), name)
    });
    let others = [MINIMAL, FULL].map(|text| (text.to_owned(), "test.toml".to_owned()));
    for (text, name) in ready.chain(others) {
        let scenario = Scenario::parse(&text, &name).unwrap_or_else(|error| panic!("{error}"));
        let written = scenario.to_toml();
        let again = Scenario::parse(&written, &name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again, scenario, "{name}");
        assert_eq!(again.to_toml(), written, "{name}");
    }
}

#[test]
fn the_canonical_text_is_pinned() {
    insta::assert_snapshot!("canonical_minimal", parse(MINIMAL).to_toml());
    insta::assert_snapshot!("canonical_full", parse(FULL).to_toml());
}

#[test]
fn different_words_for_the_same_thing_have_the_same_canonical_text() {
    let one = "[transfer]\nreceive_buffer = \"30 packets\"\nscheduler = \"min-rtt\"\n\
               [[path]]\nrate = \"1 Mbit/s\"\nrtt = \"200 ms\"\nqueue = \"2 BDP\"\nloss = 0.01\n";
    let other = "path = [{ rate_down = \"125 kB/s\", queue = \"50 kB\", rate = \"1000 kbit/s\", \
                 delay = \"0.1 s\", loss = { model = \"bernoulli\", rate = 1e-2 } }]\n\
                 [scheduler]\nname = \"min-rtt\"\n[transfer]\nreceive_buffer = \"45 kB\"\n";
    assert_eq!(parse(one).to_toml(), parse(other).to_toml());
}

#[test]
fn an_empty_path_has_every_default() {
    let scenario = parse(MINIMAL);
    let transfer = &scenario.transfer;
    assert_eq!(transfer.protocol, Protocol::CmtSctp);
    assert_eq!(transfer.duration, Duration::from_secs(60));
    assert_eq!((transfer.receive_buffer, transfer.packet), (131_072, 1500));
    assert_eq!(transfer.application, Application::Bulk);
    assert_eq!(scenario.scheduler.name, SchedulerName::Lay);
    let path = &scenario.paths[0];
    assert_eq!(path.name, "path1");
    assert_eq!(path.up.capacity, Capacity::Rate(Rate::from_bps(10_000_000)));
    assert_eq!(path.up.delay, Duration::from_millis(20));
    assert_eq!(path.up.queue.limit, Limit::Packets(100));
    assert_eq!(path.down.queue.limit, Limit::Unlimited);
}

#[test]
fn defaults_that_depend_on_other_keys_follow_them() {
    let by_size = parse("[transfer]\nbytes = \"20 MB\"\n[[path]]\n");
    assert_eq!(by_size.transfer.bytes, Some(20_000_000));
    assert_eq!(by_size.transfer.duration, Duration::from_secs(3600));
    let errors = parse("[scheduler]\ndelay_error = 0.5\n[[path]]\n[[path]]\ndelay_error = 0.1\n");
    let errors: Vec<_> = errors.paths.iter().map(|p| p.delay_error).collect();
    assert_eq!(errors, [0.5, 0.1]);
}

#[test]
fn an_odd_round_trip_is_split_without_losing_a_nanosecond() {
    let path = &parse("[[path]]\nrtt = \"7 ns\"\n").paths[0];
    assert_eq!((path.up.delay.as_nanos(), path.down.delay.as_nanos()), (3, 4));
}

#[test]
fn a_bandwidth_delay_product_counts_shared_links_too() {
    // 10 Mbit/s x (20 + 2 x 10) ms = 50 kB. The BDP of the shared link uses the longest path over
    // it.
    let text = "[[path]]\nrtt = \"20 ms\"\nqueue = \"1 BDP\"\nvia = [\"core\"]\n\
                [[path]]\nrtt = \"180 ms\"\nvia = [\"core\"]\n\
                [[link]]\nname = \"core\"\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
                queue = \"0.5 BDP\"\n";
    let scenario = parse(text);
    assert_eq!(scenario.paths[0].up.queue.limit, Limit::Bytes(50_000));
    assert_eq!(scenario.links[0].up.queue.limit, Limit::Bytes(125_000));
    assert_eq!(scenario.paths[1].via, [0]);
}

#[test]
fn the_full_file_becomes_the_types_it_says() {
    let scenario = parse(FULL);
    let path = &scenario.paths[0];
    let red = Discipline::Red { min: 0.1, max: 0.5, probability: 0.05, weight: 0.002, ecn: false };
    assert_eq!(path.up.queue, Queue { discipline: red, limit: Limit::Packets(80) });
    let normal =
        JitterShape::Normal { mean: Duration::from_millis(3), deviation: Duration::from_millis(1) };
    assert_eq!(path.up.jitter, Some(Jitter { shape: normal, keep_order: false }));
    let reorder = Reorder { probability: 0.01, delay: Duration::from_millis(10) };
    assert_eq!((path.up.reorder, path.down.reorder), (Some(reorder), None));
    assert!(matches!(path.up.loss, Loss::Markov { .. }));
    let at = Time::from_secs(10);
    let rate = Some(Rate::from_bps(500_000));
    let delay = Some(Duration::from_millis(80));
    let up = Step { at, rate, delay, loss: Some(0.02) };
    assert_eq!(path.up.steps[0], up);
    // The path has its own rate_down, so a new `rate` does not affect the return direction.
    assert_eq!(path.down.steps[0], Step { rate: None, loss: None, ..up });
    let kind = CrossKind::OnOff {
        rate: Rate::from_bps(500_000),
        on_time: Duration::from_millis(250),
        off_time: Duration::from_millis(750),
    };
    let cross = Cross {
        kind,
        on: Target::Link(0),
        direction: Side::Down,
        packet: 1000,
        flows: 10,
        start: Time::from_secs(1),
        stop: Some(Time::from_secs(30)),
    };
    assert_eq!(scenario.cross[0], cross);
}

#[test]
fn overrides_reach_every_kind_of_place() {
    let text = "[[path]]\nname = \"wifi\"\ndelay = \"5 ms\"\nloss = 0.01\n\
                [[path]]\nname = \"lte\"\ntrace = \"gone.mahi\"\n";
    let scenario = parse_with(
        text,
        &[
            "transfer.scheduler=round-robin",
            "transfer.seed = 7",
            "path.wifi.rtt=40ms",
            "path[1].rate=3 Mbit/s",
            "path[1].loss=0.01",
            "path.wifi.loss.model=round",
            "path.wifi.loss.rate=0.5",
            "path.lte.queue={ discipline = \"codel\", target = \"7 ms\" }",
            "path.lte.outages=[{ from = \"1 s\", to = \"2 s\" }]",
            "path.lte.outages[0].to=3 s",
            "sctp.sack_every=1",
        ],
    );
    assert_eq!(scenario.scheduler.name, SchedulerName::RoundRobin);
    assert_eq!(scenario.transfer.seed, 7);
    let (wifi, lte) = (&scenario.paths[0], &scenario.paths[1]);
    assert_eq!(wifi.up.delay, Duration::from_millis(20), "rtt takes delay away");
    assert_eq!(wifi.up.loss, Loss::Round { rate: 0.5 });
    assert_eq!(lte.up.capacity, Capacity::Rate(Rate::from_bps(3_000_000)));
    assert_eq!(lte.up.loss, Loss::Bernoulli { rate: 0.01 });
    assert!(matches!(lte.up.queue.discipline, Discipline::CoDel { target, .. }
        if target == Duration::from_millis(7)));
    assert_eq!(lte.outages[0].to, Time::from_secs(3));
    assert_eq!(scenario.sctp.sack_every, Some(1));
}

#[test]
fn the_last_override_wins_and_the_scheduler_has_one_name() {
    let text = "[scheduler]\nname = \"daps\"\n[[path]]\n";
    let sets = ["transfer.scheduler=weighted", "transfer.scheduler=backup"];
    assert_eq!(parse_with(text, &sets).scheduler.name, SchedulerName::Backup);
    let text = "[transfer]\nscheduler = \"daps\"\n[[path]]\n";
    assert_eq!(parse_with(text, &["scheduler.name=min-rtt"]).scheduler.name, SchedulerName::MinRtt);
}

#[test]
fn wrong_overrides_are_refused_like_wrong_files() {
    let text = "[[path]]\nname = \"wifi\"\n[[path]]\nname = \"lte\"\n";
    for (set, phrase) in [
        ("transfer.seed", "is not of the form key=value"),
        ("=1", "has an empty name"),
        ("transfer..seed=1", "has an empty name"),
        ("path[x].rtt=1ms", "has no position in its brackets"),
        ("path[2].rtt=1ms", "the file has path[0] (wifi), path[1] (lte)"),
        ("path.let.rtt=1ms", "there is no `path.let`"),
        ("link.core.rate=1 Mbit/s", "the file has no [[link]]"),
        ("path.lte.rtd=1ms", "did you mean `rtt`?"),
        ("path.lte.rtt=40", "has no unit"),
        ("transfer.sheduler=daps", "did you mean `scheduler`?"),
        ("transfer.scheduler=dap", "did you mean `daps`?"),
        ("tranfser.seed=1", "did you mean `transfer`?"),
        ("transfer.seed.x=1", "`seed` is a value"),
        ("scheduler=daps", "it takes a table with `name`"),
        ("transfer.warmup=100 s", "not shorter than"),
    ] {
        let error = refusal(text, &[set]);
        assert!(error.contains(phrase), "no {phrase:?} in:\n{error}");
        assert!(error.contains(&format!("--set {set}:1:")), "it names the override:\n{error}");
    }
}

#[test]
fn a_message_about_an_override_names_the_key_as_it_was_typed() {
    let text = "[[path]]\nname = 'wifi'\n[[path]]\nname = 'lte'\n";
    for (set, named) in [
        ("path.lte.rtt=60", "`path.lte.rtt` = 60"),
        ("path[1].rtt=60", "`path[1].rtt` = 60"),
        ("path.lte.loss={ model = 'bernoulli', rate = 2 }", "`path.lte.loss.rate` = 2"),
    ] {
        let error = refusal(text, &[set]);
        assert!(error.contains(named), "no {named} in:\n{error}");
    }
}

#[test]
fn a_message_says_which_option_an_override_came_from() {
    let file = std::env::temp_dir().join(format!("ropewalk-overrides-{}.toml", std::process::id()));
    std::fs::write(&file, "[[path]]\n").expect("a file");
    let change = Override { option: "--vary", change: "transfer.seed=x" };
    let error = Scenario::load_overridden(&file, &[change]).expect_err("no number").to_string();
    std::fs::remove_file(&file).expect("it was there");
    assert!(error.contains("--> --vary transfer.seed=x:1:"), "{error}");
}

#[test]
fn an_override_mends_what_is_wrong_in_the_file() {
    let text = "[[path]]\nrtt = 20\n";
    assert!(Scenario::parse(text, "test.toml").is_err());
    assert_eq!(
        parse_with(text, &["path[0].rtt=20ms"]).paths[0].up.delay,
        Duration::from_millis(10)
    );
}

#[test]
fn text_with_a_byte_order_mark_and_windows_line_ends_is_read() {
    let scenario = parse("\u{feff}[transfer]\r\nseed = 9\r\n[[path]]\r\n");
    assert_eq!(scenario.transfer.seed, 9);
    let error = refusal("\u{feff}[transfer]\r\nsed = 9\r\n[[path]]\r\n", &[]);
    assert!(error.contains("2 | sed = 9\n"), "{error}");
}

#[test]
fn names_of_schedulers_are_read_outside_of_files_too() {
    assert_eq!("daps-lcm".parse(), Ok(SchedulerName::DapsLcm));
    let error = "dasp".parse::<SchedulerName>().unwrap_err().to_string();
    assert!(error.contains("did you mean `daps`?"), "{error}");
    assert_eq!(ropewalk_scenario::parse_duration("1.5 ms"), Ok(Duration::from_micros(1500)));
    assert!(ropewalk_scenario::parse_duration("2.5").unwrap_err().contains("`2.5` has no unit"));
    assert!(ropewalk_scenario::parse_rate("2 Mb/s").unwrap_err().contains("Mbit/s"));
    assert!(ropewalk_scenario::parse_size("-1 kB").unwrap_err().contains("negative"));
}

#[test]
fn what_is_left_out_of_a_hop_over_the_air_is_a_54_mbit_station_of_the_sender() {
    let scenario = parse("[[path]]\nwifi = {}\n[[path]]\n[[station]]\n");
    let hop = scenario.paths[0].wifi.expect("a hop");
    let radio = Radio {
        standard: WifiStandard::Dot11g,
        rate: Rate::from_bps(54_000_000),
        channel: 1,
        queue: Limit::Packets(400),
        frame_error: 0.0,
    };
    assert_eq!(hop, Wifi { radio, end: End::Sender });
    assert_eq!(scenario.paths[1].wifi, None);
    assert_eq!((scenario.stations[0].radio, scenario.stations[0].load), (radio, None));
    let changed = parse_with("[[path]]\nwifi = {}\n", &["path[0].wifi.rate=6 Mbit/s"]);
    assert_eq!(changed.paths[0].wifi.map(|w| w.radio.rate), Some(Rate::from_bps(6_000_000)));
}
