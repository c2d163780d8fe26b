//! Compares limits of scenarios with known values.

use super::*;
use crate::custom_schedulers::CustomSchedulers;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}"))
}

/// Two lossy paths; `keys` go into `[transfer]`.
fn two(keys: &str, first: &str, second: &str) -> Scenario {
    scenario(&format!(
        "[transfer]\npacket = '1500 B'\n{keys}\n\
         [[path]]\nname = 'a'\nrate = '21 Mbit/s'\nrtt = '40 ms'\n{first}\n\
         [[path]]\nname = 'b'\nrate = '21 Mbit/s'\nrtt = '40 ms'\n{second}\n"
    ))
}

#[test]
fn a_lossy_path_leaves_the_buffer_to_a_clean_one() {
    let scenario = two("receive_buffer = '126 kB'", "loss = 1e-4", "loss = 3e-3");
    let tuning = tune(&scenario, None).expect("two paths");
    let [a, b] = tuning.limits_packets[..] else { panic!("{:?}", tuning.limits_packets) };
    assert!(a > 4 * b && b >= 1 && a + b <= tuning.buffer_packets, "{a} and {b}");
    assert!(a + 3 > tuning.paths[0].useful_packets, "nearly all that is of use: {a}");
    assert!(tuning.predicted_bps > 1.02 * tuning.equal_split.predicted_bps, "{tuning:?}");
    assert!(tuning.predicted_bps <= tuning.unlimited_bps * (1.0 + 1e-12));
    assert!(tuning.unlimited_bps < tuning.rates_bps);
    let sum: f64 = tuning.paths.iter().map(|path| path.predicted_bps).sum();
    assert!((sum / tuning.predicted_bps - 1.0).abs() < 1e-12);
}

#[test]
fn without_loss_the_prediction_is_the_flow_control_bound_up_to_whole_packets() {
    let scenario = two("receive_buffer = '90 kB'", "", "");
    let tuning = tune(&scenario, Some(1.0)).expect("two paths");
    let limit = crate::predict::predict(&scenario).flow_control_bound_bps.expect("a limit");
    assert!(tuning.predicted_bps <= limit * (1.0 + 1e-9), "{} {limit}", tuning.predicted_bps);
    assert!(tuning.predicted_bps > 0.97 * limit, "{} {limit}", tuning.predicted_bps);
    // Nothing is lost, so the full rates are possible: each path holds 70 packets and, for the time of a SACK,
    // part of another one.
    let least = tuning.reach.expect("asked for").least.expect("enough exists");
    assert_eq!((least.packets, least.limits_packets), (142, vec![71, 71]));
}

#[test]
fn a_path_that_does_not_pay_is_named_and_leaving_it_out_promises_more() {
    let scenario = scenario(
        "[transfer]\nreceive_buffer = '30 kB'\n\
         [[path]]\nname = 'near'\nrate = '20 Mbit/s'\nrtt = '40 ms'\n\
         [[path]]\nname = 'moon'\nrate = '20 Mbit/s'\nrtt = '2600 ms'\n",
    );
    let tuning = tune(&scenario, None).expect("two paths");
    assert_eq!(tuning.limits_packets[1], 1, "no path is left out of the limits");
    assert_eq!(tuning.paying.limits_packets[1], 0);
    assert_eq!([tuning.paths[0].pays, tuning.paths[1].pays], [true, false]);
    assert!(tuning.paying.predicted_bps > tuning.predicted_bps);
}

#[test]
fn the_least_buffer_is_enough_and_a_packet_less_is_not() {
    let mut scenario = two("receive_buffer = '126 kB'", "loss = 1e-4", "loss = 1e-3");
    let reach = tune(&scenario, Some(0.6)).expect("two paths").reach.expect("asked for");
    let least = reach.least.expect("60 % can be had");
    let target = 0.6 * 42e6;
    for (bytes, enough) in
        [(least.receive_buffer_bytes, true), (least.receive_buffer_bytes - 1, false)]
    {
        scenario.transfer.receive_buffer = bytes;
        let tuning = tune(&scenario, None).expect("two paths");
        assert_eq!(tuning.predicted_bps >= target * (1.0 - 1e-9), enough, "{bytes} bytes");
    }
    let reach = tune(&scenario, Some(0.99)).expect("two paths").reach.expect("asked for");
    assert!(reach.least.is_none() && reach.most_share < 0.99, "{reach:?}");
}

#[test]
fn what_cannot_be_tuned_is_said_with_a_hint() {
    let path = "rate = '1 Mbit/s'\nrtt = '20 ms'\n";
    let shared = "via = ['bell']\n[[link]]\nname = 'bell'\nrate = '1 Mbit/s'\n";
    let tiny = "[transfer]\nreceive_buffer = '1 packets'\n";
    for (text, said) in [
        (format!("[[path]]\n{path}"), "only path"),
        (
            format!("[[path]]\nname = 'x'\n{path}[[path]]\nname = 'y'\n{shared}"),
            "cannot be tuned (y)",
        ),
        (
            format!("[transfer]\nprotocol = 'sctp'\n[[path]]\n{path}[[path]]\n{path}"),
            "one path at a time",
        ),
        (format!("[world]\nassociations = 3\n[[path]]\n{path}[[path]]\n{path}"), "3 associations"),
        (
            format!(
                "[[path]]\n{path}[[path]]\nname = 'y'\n{path}loss = {{ model = 'trace', losses = [1] }}"
            ),
            "`y` loses a list",
        ),
        (format!("[[path]]\n{path}[[path]]\nname = 'y'\n{path}loss = 1.0"), "path `y`: loss"),
        (format!("{tiny}[[path]]\n{path}[[path]]\n{path}"), "too small"),
    ] {
        let error = tune(&scenario(&text), None).expect_err(said);
        assert!(error.to_string().contains(said), "{error}");
        assert!(!error.help().is_empty());
    }
}

#[test]
fn the_check_simulates_what_was_promised_within_reason() {
    let mut scenario = two(
        "receive_buffer = '126 kB'\nduration = '30 s'\nwarmup = '5 s'",
        "loss = 1e-4",
        "loss = 3e-3",
    );
    scenario.transfer.seed = 11;
    let tuning = tune(&scenario, None).expect("two paths");
    let options =
        CheckOptions { seeds: 2, threads: 2, custom_schedulers: CustomSchedulers::default() };
    let check = check(&scenario, &tuning, &options, &|_| {});
    let names: Vec<_> = check.managers.iter().map(|m| m.window_manager).collect();
    assert_eq!(names, ["none", "dynamic", "adaptive", "static"]);
    let plain = check.managers[0].gain.expect("a gain");
    assert_eq!((plain.mean, plain.half_width), (1.0, Some(0.0)), "it is its own measure");
    let tuned = check.simulated_bps.expect("runs");
    assert!(tuned.half_width.is_some_and(|half| half > 0.0), "two seeds differ");
    let ratio = tuned.mean / check.predicted_goodput_bps;
    assert!((0.6..1.3).contains(&ratio), "simulated over promised is {ratio}");
}
