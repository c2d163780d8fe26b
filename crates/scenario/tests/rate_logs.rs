//! Logs of rates: known rates are written in each format, read, and compared. Files that are not logs are refused.

use std::fmt::Write;

use proptest::prelude::*;
use ropewalk_base::{Duration, Rate, Time};
use ropewalk_scenario::Scenario;
use ropewalk_scenario::rates::{
    Interval, LoggedPath, RateLog, RateLogError, Rates, ReadOptions, scenario,
};

fn read(text: &str) -> Result<RateLog, RateLogError> {
    RateLog::read(text.as_bytes(), &ReadOptions::default())
}

fn with(column: Option<&str>, unit: Option<&str>, filter: &[(&str, &str)]) -> ReadOptions {
    ReadOptions {
        column: column.map(str::to_owned),
        unit: unit.map(|unit| unit.parse().expect("a unit")),
        filter: filter.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
    }
}

fn intervals(log: &RateLog) -> &[Interval] {
    match &log.rates {
        Rates::Intervals(intervals) => intervals,
        Rates::Mahimahi(_) => panic!("a trace of opportunities"),
    }
}

/// Rates of consecutive seconds, kbit/s.
type Truth = Vec<u32>;

fn truth() -> impl Strategy<Value = Truth> {
    prop::collection::vec(prop_oneof![1 => Just(0), 6 => 1u32..900_000], 2..60)
        .prop_filter("a link that carries something", |rates| rates.iter().any(|rate| *rate > 0))
}

/// Writes rates in a format.
struct Format {
    name: &'static str,
    write: fn(&Truth) -> String,
}

fn rows(rates: &Truth, head: &str, row: impl Fn(usize, u32) -> String) -> String {
    let mut text = format!("{head}\n");
    for (second, kbps) in rates.iter().enumerate() {
        let _ = writeln!(text, "{}", row(second, *kbps));
    }
    text
}

/// The time of day `seconds` after 13:40:04.
fn clock(seconds: usize) -> (usize, usize, usize) {
    let all = 13 * 3600 + 40 * 60 + 4 + seconds;
    (all / 3600, all / 60 % 60, all % 60)
}

const FORMATS: &[Format] = &[
    Format {
        name: "CSV with columns of time and rate",
        write: |t| rows(t, "time_s,throughput_mbps", |s, k| format!("{s},{}", f64::from(k) / 1e3)),
    },
    Format {
        name: "CSV with columns of time and rate",
        write: |t| {
            rows(t, "sep;Timestamp;Rate (kbit/s);x", |s, k| {
                let (h, m, s) = clock(s);
                format!("a;2024-05-31T{h}:{m:02}:{s:02},000;{k},0;-").replace(",000", ".250")
            })
        },
    },
    Format {
        name: "CSV with columns of time and rate",
        write: |t| {
            let head = "\u{feff}timestamp (ms)\tuplink_throughput_bps\tdownlink_throughput_bps\r";
            rows(t, head, |s, k| {
                format!("{}\t12\t{}\r", 1_700_000_000_000 + s * 1000, u64::from(k) * 1000)
            })
        },
    },
    Format {
        name: "HSDPA bandwidth log (Riiser et al. 2013)",
        write: |t| {
            rows(t, "", |s, k| {
                let at = 549_692 + (s + 1) * 1000;
                format!("{} {at} 59.85  10.78 {} 1000", 1_289_406_399 + s, k * 125)
            })
        },
    },
    Format {
        name: "4G/LTE bandwidth log (van der Hooft et al. 2016)",
        write: |t| {
            rows(t, "", |s, k| {
                let at = (s + 1) * 1000;
                format!("{} {at} 51.03 3.73 {} 1000", 1_453_121_790_686 + s * 1000, k * 125)
            })
        },
    },
    Format {
        name: "4G or 5G production data set (Raca et al.)",
        write: |t| {
            rows(t, "Timestamp,Longitude,Latitude,Speed,State,DL_bitrate,UL_bitrate", |s, k| {
                let (h, m, s) = clock(s);
                format!("2019.12.16_{h}.{m:02}.{s:02},-8.3,51.9,0,D,{k},88")
            })
        },
    },
    Format {
        name: "Lumos5G (Narayanan et al. 2020)",
        write: |t| {
            rows(t, "run_num,seq_num,movingSpeed,Throughput,tower_id", |s, k| {
                format!("1,{},1.5,{},4", s + 1, f64::from(k) / 1e3)
            })
        },
    },
    Format {
        name: "FCC Measuring Broadband America",
        write: |t| {
            let head = "unit_id,dtime,target,address,fetch_time,bytes_total,bytes_sec,bytes_sec_interval,warmup_time,sequence";
            rows(t, head, |s, k| {
                let (h, m, _) = clock(60 * (s / 6));
                let (bytes, until) = (k * 125, (s % 6 + 1) * 1_000_000);
                format!(
                    "390,2020-09-01 {h}:{m:02}:12,sp1.example,192.0.2.1,{until},1,2,{bytes},9,{}",
                    s % 6
                )
            })
        },
    },
    Format {
        name: "two columns of time and rate",
        write: |t| rows(t, "", |s, k| format!("{s}.0 {}", f64::from(k) / 1e3)),
    },
];

fn written(log: RateLog) -> Scenario {
    let path = LoggedPath { file: "log".into(), name: "log".into(), log };
    let text = scenario(&[path]);
    Scenario::parse(&text, "written").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_format_gives_the_rates_that_were_written(truth in truth(), choice in 0..FORMATS.len()) {
        let format = &FORMATS[choice];
        let text = (format.write)(&truth);
        let log = read(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(log.format, format.name);
        prop_assert_eq!(intervals(&log).len(), truth.len());
        for (interval, kbps) in intervals(&log).iter().zip(&truth) {
            prop_assert!((interval.seconds - 1.0).abs() < 1e-6, "{interval:?}");
            prop_assert!((interval.bps - f64::from(*kbps) * 1e3).abs() < 1.0, "{interval:?}, {kbps}");
        }
        let mean = truth.iter().map(|kbps| f64::from(*kbps) * 1e3).sum::<f64>() / truth.len() as f64;
        prop_assert!((log.mean_bps() / mean - 1.0).abs() < 1e-9);

        // Compares the steps of the scenario: the rate in the middle of each second.
        let scenario = written(log);
        let path = &scenario.paths[0];
        prop_assert_eq!(scenario.transfer.duration, Duration::from_secs(truth.len() as u64));
        for (second, kbps) in truth.iter().enumerate() {
            let middle = Time::from_millis(second as u64 * 1000 + 500);
            let last = path.up.steps.iter().take_while(|step| step.at <= middle).last();
            let rate = last.map_or_else(|| initial(path), |step| step.rate.expect("a step of rates"));
            let expected = (u64::from(*kbps) * 1000).max(1);
            prop_assert!(rate.as_bps().abs_diff(expected) <= 1, "{rate:?} at {second} s, {expected}");
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = RateLog::read(&bytes, &ReadOptions::default());
    }

    /// Logs with replaced fields give an error or a scenario, never a panic.
    #[test]
    fn garbled_logs_are_refused_or_make_a_scenario(
        truth in truth(),
        choice in 0..FORMATS.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0..DAMAGE.len()), 1..6),
    ) {
        let mut text = (FORMATS[choice].write)(&truth);
        for (place, kind) in damage {
            let places: Vec<usize> = text
                .char_indices()
                .filter(|(_, c)| matches!(c, ',' | ';' | ' ' | '\t' | '\n'))
                .map(|(place, _)| place + 1)
                .collect();
            let at = places[place.index(places.len())];
            let end = text[at..].find([',', ';', ' ', '\t', '\n']).map_or(text.len(), |length| at + length);
            text.replace_range(at..end, DAMAGE[kind]);
        }
        if let Ok(log) = read(&text) {
            prop_assert!(log.mean_bps() > 0.0 && log.mean_bps() <= 1e12, "{text}");
            written(log);
        }
    }
}

const DAMAGE: &[&str] = &[
    "",
    "NaN",
    "inf",
    "-1",
    "-inf",
    "1e308",
    "1e-300",
    "0",
    "99999999999999999999",
    "\"",
    "\"\"",
    "\u{0}",
    "ä",
    "=1+1",
    "1,5",
    "2024-02-30 25:61:61",
    "#",
    "-",
    ";;;;",
    "\r\n",
    "0x10",
    "\u{feff}",
];

fn initial(path: &ropewalk_scenario::Path) -> Rate {
    path.up.capacity.mean_rate()
}

#[test]
fn a_trace_of_mahimahi_stays_one() {
    let log = read("1\n1\n3\n10\n").expect("read");
    assert!((log.mean_bps() - 4.0 * 1504.0 * 8.0 / 0.010).abs() < 1.0);
    let path = LoggedPath { file: "drive.mahi".into(), name: "drive".into(), log };
    let text = scenario(&[path]);
    assert!(text.contains("trace = \"drive.mahi\"\n") && !text.contains("rate "), "{text}");
}

#[test]
fn columns_and_rows_can_be_chosen() {
    let text = "run,t_ms,up_mbps,a_mbps,b_mbps\n1,0,1,2,3\n1,500,1,4,3\n2,0,1,8,3\n2,500,1,8,3\n";
    let refused = read(text).expect_err("two columns");
    assert!(
        refused.message.contains("`a_mbps`") && refused.help.contains("--column"),
        "{refused:?}"
    );
    let back = RateLog::read(text.as_bytes(), &with(Some("A_mbps"), None, &[])).expect_err("runs");
    assert!(back.line == 4 && back.help.contains("--where"), "{back:?}");
    let read = |run| {
        let options = with(Some("a_mbps"), None, &[("run", run)]);
        RateLog::read(text.as_bytes(), &options).expect("read")
    };
    assert_eq!((read("1").mean_bps(), read("1").seconds()), (3e6, 1.0));
    assert_eq!(read("2").mean_bps(), 8e6);
    let none = RateLog::read(text.as_bytes(), &with(Some("a_mbps"), None, &[("run", "9")]));
    assert!(none.expect_err("no row").message.contains("no two rows"));
    let absent = RateLog::read(text.as_bytes(), &with(Some("c"), None, &[]));
    assert!(absent.expect_err("no column").help.contains("`b_mbps`"));
}

#[test]
fn a_unit_that_the_name_lacks_is_asked_for() {
    for text in ["time,throughput\n0,5\n1,7\n", "0,5\n1,7\n"] {
        let refused = read(text).expect_err(text);
        assert!(refused.help.contains("--unit Mbit/s"), "{refused:?}");
        let options = with(None, Some("kB/s"), &[]);
        assert_eq!(RateLog::read(text.as_bytes(), &options).expect(text).mean_bps(), 48e3);
    }
}

#[test]
fn gaps_empty_rows_and_equal_times_are_reported() {
    let text = "time,rate_mbps\n0,1\n1,\n2,3\n2,5\n3,nan\n100,7\n101,7\n102,7\n103,7\n104,7\n";
    let log = read(text).expect("read");
    assert_eq!((log.empty_rows, log.gaps.0), (2, 1));
    let rates: Vec<f64> = intervals(&log).iter().map(|one| one.bps / 1e6).collect();
    assert_eq!(rates, [1.0, 4.0, 7.0, 7.0, 7.0, 7.0, 7.0]);
    assert_eq!(log.gaps.1, 97.0);
    let said = log.summary();
    assert!(
        said.contains("1 time without rows, 97 s") && said.contains("2 rows without"),
        "{said}"
    );
}

#[test]
fn several_units_of_the_fcc_are_not_mixed() {
    let text = "unit_id,dtime,target,fetch_time,bytes_sec\n1,a,t,5000000,100\n2,a,t,5000000,900\n";
    let refused = read(text).expect_err("two units");
    assert!(refused.help.contains("--where unit_id"), "{refused:?}");
    let one = RateLog::read(text.as_bytes(), &with(None, None, &[("unit_id", "2")])).expect("one");
    assert_eq!((one.mean_bps(), one.seconds()), (7200.0, 5.0));
}

/// FCC's `bytes_sec` counts from the start of the test; `bytes_sec_interval` is the rate of an interval.
#[test]
fn the_running_mean_of_the_fcc_gives_the_rates_of_the_intervals() {
    let rates = [1000.0, 3000.0, 0.0, 8000.0];
    let (mut means, mut both) = (String::new(), String::new());
    let mut bytes = 0.0;
    for (row, rate) in rates.iter().enumerate() {
        bytes += rate * 5.0;
        let seconds = 5.0 * (row + 1) as f64;
        means += &format!("1,a,t,{},{}\n", seconds * 1e6, bytes / seconds);
        both += &format!("1,a,t,{},{},{rate}\n", seconds * 1e6, bytes / seconds);
    }
    let early = read(&format!("unit_id,dtime,target,fetch_time,bytes_sec\n{means}")).expect("read");
    let now = format!("unit_id,dtime,target,fetch_time,bytes_sec,bytes_sec_interval\n{both}");
    let now = read(&now).expect("read");
    let of = |log| intervals(log).iter().map(|one| one.bps.round()).collect::<Vec<f64>>();
    assert_eq!(of(&early), rates.map(|rate| 8.0 * rate));
    assert_eq!(of(&early), of(&now));
    assert_eq!((early.seconds(), now.seconds()), (20.0, 20.0));
}

#[test]
fn long_logs_keep_their_mean_rate_and_fit_into_a_scenario() {
    let mut text = String::from("time_ms,rate_kbps\n");
    for at in 0..250_000 {
        let _ = writeln!(text, "{},{}", at * 10, at % 977 + 1);
    }
    let log = read(&text).expect("read");
    let mean = log.mean_bps();
    let scenario = written(log);
    let steps = &scenario.paths[0].up.steps;
    assert!(steps.len() < 100_000, "{}", steps.len());
    let ends =
        steps.iter().skip(1).map(|step| step.at).chain([Time::ZERO + scenario.transfer.duration]);
    let bits = steps.iter().zip(ends).map(|(step, end)| {
        step.rate.expect("a rate").as_bps() as f64 * end.since(step.at).as_secs_f64()
    });
    let first =
        initial(&scenario.paths[0]).as_bps() as f64 * steps[0].at.since(Time::ZERO).as_secs_f64();
    let kept = (bits.sum::<f64>() + first) / scenario.transfer.duration.as_secs_f64();
    assert!((kept / mean - 1.0).abs() < 1e-3, "{kept} for {mean}");
}

#[test]
fn names_of_paths_are_valid_and_differ() {
    let log = read("0 1\n1 2\n").expect("read");
    let names = ["bus", "bus", "B us/ü.x", "", "---", "x".repeat(200).as_str()].map(|name| {
        LoggedPath { file: format!("{name}\n[[path]]"), name: name.into(), log: log.clone() }
    });
    let text = scenario(&names);
    let scenario =
        Scenario::parse(&text, "written").unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(scenario.paths.len(), names.len());
}

#[test]
fn files_of_other_kinds_name_their_reader() {
    for (bytes, said) in [
        (&b""[..], "it is empty"),
        (b"\xff\xfea\0,\0", "UTF-16"),
        (b"\xd4\xc3\xb2\xa1\x02\0", "packet capture"),
        (b"\x1f\x8b\x08", "compressed"),
        (b"abc\0def", "binary"),
        (b"a,b\n1,\xff\n", "line 2: this line is not UTF-8"),
        (b"{\"start\": {}}", "JSON"),
        (b"64 bytes from 192.0.2.7: icmp_seq=1 ttl=57 time=11.5 ms\n", "output of ping"),
        (b"[[path]]\nname = \"x\"\n", "a scenario"),
        (b"hello world\n", "no column of times"),
        (b"timestamp,rtt_ms\n1,2\n2,3\n", "no column of rates"),
        (b"1 2 3\n4 5 6\n", "3 columns of numbers without names"),
        (b"time,rate_mbps\n0,1\n", "no two rows"),
        (b"time,rate_mbps\n0,0\n1,0\n", "all rates are 0"),
        (b"time,rate_mbps\n0,1\n1,inf\n", "line 3: column 2: `inf` is not a number"),
        (b"time,rate_mbps\n0,1\n1,-3\n", "line 3: a rate of -3000000 bit/s"),
        (b"time,rate_mbps\n0,1\n1,9e9\n", "line 3: a rate of 9000000000000000 bit/s"),
        (b"time,rate_mbps\n5,1\n4,2\n", "line 3: the time is 1 s before"),
        (b"date,rate_mbps\n31/05/2024 12:00,1\n", "line 2: column `date`"),
        (b"time,rate_mbps\n0,1\n9e99,2\n", "possible are 1 ms to"),
        (b"3\n2\n1\n", "line 2: a single column of numbers would be a trace of Mahimahi"),
        (b"1 2 3 4 5 -6\n", "-6 ms in column 6"),
    ] {
        let refused = RateLog::read(bytes, &ReadOptions::default()).expect_err(said);
        assert!(refused.to_string().contains(said), "{refused} / {said}");
        assert!(!refused.help.is_empty());
    }
}
