//! Translates a scenario into the engine's configuration.

use ropewalk_base::Duration;
use ropewalk_engine::congestion::{
    BottleneckCoupling, CongestionFlavour, CongestionVariants, Rules, WindowRounding,
};
use ropewalk_engine::path::{Pacing, PathUse};
use ropewalk_engine::recovery::LossDetection;
use ropewalk_engine::scheduler::{
    BlestOptions, BlockingMitigation, Capacity, DapsOptions, DelaySource, LayOptions, LinuxOptions,
    LinuxTurns, OtiasForm, PlanOptions, Quota, RetransmissionPolicy, Scheduler, SchedulerOptions,
    StmsOptions, UnknownScheduler, WeightSource, WhenBlocked, Windows,
};
use ropewalk_engine::sctp::{
    self, Config, CwndUpdate, PathConfig, StreamScheduler, WindowCheck, WindowUnit,
};
use ropewalk_engine::window::{
    Adaptive, Dynamic, Splitting, SplittingOutstanding, Static, WindowManager,
};
use ropewalk_scenario as file;

use crate::advisor::ModelAdvisor;
use crate::sources;
use crate::tunnel;
use crate::wifi::{alone, rate_up};

/// Translates enums of the scenario into those of the engine, one line each.
macro_rules! translations {
    ($($(#[doc = $doc:literal])* $vis:vis $name:ident: $from:ident => $to:ty {
        $($variant:ident => $same:ident),+ $(,)?
    })+) => {$(
        $(#[doc = $doc])*
        $vis const fn $name(name: ropewalk_scenario::$from) -> $to {
            match name {
                $(ropewalk_scenario::$from::$variant => <$to>::$same,)+
            }
        }
    )+};
}
pub(crate) use translations;

/// Pacing as the scenario sets it, otherwise that of the preset.
pub(crate) fn pacing(set: Option<file::Pacing>, preset: Option<Pacing>) -> Option<Pacing> {
    match set {
        None => preset,
        Some(file::Pacing::Off) => None,
        Some(file::Pacing::On(None)) => Some(preset.unwrap_or_default()),
        Some(file::Pacing::On(Some(options))) => Some(Pacing {
            gain: options.gain,
            gain_in_slow_start: options.gain_in_slow_start,
            burst_packets: u64::from(options.burst),
            burst_time: options.burst_time,
        }),
    }
}

/// The engine's SCTP configuration.
pub fn config(scenario: &file::Scenario) -> Config {
    let transfer = &scenario.transfer;
    let preset = match transfer.preset {
        file::Preset::Live => sctp::Preset::Live,
        file::Preset::Paper2013 => sctp::Preset::Paper2013,
        // The others are for TCP.
        _ => sctp::Preset::Rfc9260,
    };
    let paths = scenario.paths.iter().map(|p| path(scenario, p)).collect();
    let mut config = Config::preset(preset, paths, transfer.receive_buffer);
    // A scenario states the packet size of its paths.
    config.mtu_discovery = None;
    config.cmt.concurrent =
        transfer.protocol == file::Protocol::CmtSctp && scenario.paths.len() > 1;
    config.pacing = pacing(transfer.pacing, config.pacing);
    config.mitigation = mitigation(scenario);
    config.window_manager = window_manager(scenario, config.chunk_limit() as u64);
    config.streams = transfer.streams.max(sources::stream_count(scenario));
    config.record_decisions = scenario.record.decisions;
    config.delay_source = delay_source(scenario.scheduler.forward_delay);
    // Scenario and engine use the same names; a test checks that.
    let flavour = CongestionFlavour::Published;
    config.use_congestion(transfer.congestion.as_str(), flavour).expect("the engine knows it");
    config.congestion_variants = congestion_variants(transfer, config.congestion_variants);
    config.prr = transfer.prr;
    apply_sctp(&mut config, &scenario.sctp);
    if !scenario.flows.is_empty() {
        tunnel::apply_to_carrier(&mut config);
    }
    config
}

/// The measures against blocking that accompany the scheduler.
pub const fn mitigation(scenario: &file::Scenario) -> BlockingMitigation {
    BlockingMitigation {
        opportunistic: scenario.scheduler.opportunistic,
        penalise: scenario.scheduler.penalise,
    }
}

/// Propagation delay plus serialisation of one packet, over all links of the path.
fn oracle_delay(scenario: &file::Scenario, path: &file::Path) -> Duration {
    let packet = scenario.transfer.packet as u64;
    let sides = path.via.iter().map(|i| &scenario.links[*i].up).chain([&path.up]);
    // Over Wi-Fi: the time of a packet at the throughput of a station that is alone.
    let air = alone(path, scenario.transfer.packet).map(|rate| rate.time_for(packet));
    sides
        .map(|s| s.delay + s.capacity.mean_rate().time_for(packet))
        .chain(air)
        .fold(Duration::ZERO, |a, b| a + b)
}

/// The configuration of one path.
pub fn path(scenario: &file::Scenario, path: &file::Path) -> PathConfig {
    // The window managers of the paper rank paths by a bandwidth that is known in advance.
    let manager = scenario.transfer.window_manager;
    let known = matches!(manager, file::WindowManager::Dynamic | file::WindowManager::Static);
    PathConfig {
        cost: path.cost,
        usage: path_use(path.r#use),
        weight: path.weight,
        mtu: path.mtu.min(scenario.transfer.packet),
        oracle_delay: Some(oracle_delay(scenario, path)),
        rate_hint: known.then(|| rate_up(path, scenario.transfer.packet)),
        delay_error: 1.0 + path.delay_error,
        ..PathConfig::default()
    }
}

/// Variants of congestion control algorithms: those of the scenario, otherwise those of the preset.
pub fn congestion_variants(
    transfer: &file::Transfer,
    preset: CongestionVariants,
) -> CongestionVariants {
    CongestionVariants {
        fast_convergence: transfer.fast_convergence,
        hystart: transfer.hystart,
        tolerated_loss_permille: (transfer.tolerated_loss * 1000.0).round() as u8,
        brief_probe_rtt: transfer.brief_probe_rtt,
        coupling: coupling(transfer.coupling),
        ..preset
    }
}

/// The window manager of the scenario; `chunk` is the unit of its limits, bytes.
pub fn window_manager(scenario: &file::Scenario, chunk: u64) -> WindowManager {
    let limit = |p: &file::Path| p.window_limit.map_or(u64::MAX, |packets| packets as u64 * chunk);
    match scenario.transfer.window_manager {
        file::WindowManager::None => WindowManager::None,
        file::WindowManager::BufferSplitting => WindowManager::Splitting(Splitting),
        file::WindowManager::BufferSplittingOutstanding => {
            WindowManager::SplittingOutstanding(SplittingOutstanding)
        }
        file::WindowManager::Dynamic => WindowManager::Dynamic(Dynamic),
        file::WindowManager::Static => {
            let limits = scenario.paths.iter().map(limit).collect();
            WindowManager::Static(Static { limits })
        }
        file::WindowManager::Adaptive => {
            let adaptive = Adaptive::new(Box::new(ModelAdvisor::default()));
            WindowManager::Adaptive(adaptive)
        }
    }
}

/// Assigns the value if one is given.
pub fn set<T>(target: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *target = value;
    }
}

fn apply_sctp(config: &mut Config, sctp: &file::SctpOptions) {
    // A scenario that says when SACKs are due selects the rules of the RFC, unless it says otherwise.
    let by_rule = sctp.sack_every.is_some() || sctp.sack_count.is_some();
    config.sack.on_request = sctp.sack_on_request.unwrap_or(config.sack.on_request && !by_rule);
    set(&mut config.sack.every_packets, sctp.sack_every);
    set(&mut config.sack.delay, sctp.sack_delay);
    set(&mut config.sack.count_per_path, sctp.sack_count.map(|c| c == file::SackCount::Path));
    set(&mut config.cmt.delayed_ack, sctp.delayed_ack_for_cmt);
    set(&mut config.min_ssthresh_chunks, sctp.min_ssthresh);
    set(&mut config.window_rounding, sctp.window_rounding.map(window_rounding));
    set(&mut config.byte_counting_limit, sctp.byte_counting_limit);
    set(&mut config.growth_when_full_only, sctp.cwnd_growth_when_full_only);
    set(&mut config.ecn, sctp.ecn);
    set(&mut config.accurate_ecn, sctp.accurate_ecn);
    set(&mut config.max_burst, sctp.max_burst);
    set(&mut config.rto.initial, sctp.rto_initial);
    set(&mut config.rto.min, sctp.rto_min);
    set(&mut config.rto.max, sctp.rto_max);
    if sctp.fast_retransmit_threshold.is_some() || sctp.split_fast_retransmit.is_some() {
        // A scenario that sets options of missing-report counting selects that loss detection.
        config.recovery = LossDetection::MissingReports;
    }
    set(&mut config.recovery, sctp.recovery.map(recovery));
    set(&mut config.fast_retransmit_threshold, sctp.fast_retransmit_threshold);
    set(&mut config.cmt.split_fast_retransmit, sctp.split_fast_retransmit);
    set(&mut config.cmt.hold_data_until_confirmed, sctp.hold_data_until_confirmed);
    set(&mut config.heartbeat_interval, sctp.heartbeat_interval);
    set(&mut config.probe_interval, sctp.probe_interval);
    set(&mut config.failure.path_max_retrans, sctp.path_max_retrans);
    set(&mut config.failure.potentially_failed, sctp.pf_threshold);
    set(&mut config.association_max_retrans, sctp.association_max_retrans);
    set(&mut config.cmt.cwnd_update, sctp.cwnd_update.map(cwnd_update));
    set(&mut config.retransmission, sctp.retransmission.map(retransmission));
    set(&mut config.interleaving, sctp.interleaving);
    set(&mut config.nr_sack, sctp.nr_sack);
    set(&mut config.send_buffer, sctp.send_buffer);
    let reserve = sctp.stream_reserve.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
    set(&mut config.stream_reserve, reserve);
    set(&mut config.stream_scheduler, sctp.stream_scheduler.map(stream_scheduler));
    set(&mut config.window_unit, sctp.window_counted_in.map(window_unit));
    set(&mut config.window_check, sctp.window_check.map(window_check));
    let chunk = config.chunk_limit() as u64;
    match sctp.initial_window {
        None | Some(file::InitialWindow::Auto) => {}
        Some(file::InitialWindow::Bytes(bytes)) => config.initial_window = Some(bytes),
        Some(file::InitialWindow::Packets(n)) => config.initial_window = Some(n as u64 * chunk),
    }
    match sctp.initial_ssthresh {
        None | Some(file::InitialSsthresh::ReceiveBuffer) => {}
        Some(file::InitialSsthresh::Unlimited) => config.initial_ssthresh = Some(u64::MAX / 4),
        Some(file::InitialSsthresh::Bytes(bytes)) => config.initial_ssthresh = Some(bytes),
    }
}

translations! {
    /// Source of forward delays.
    pub delay_source: ForwardDelay => DelaySource {
        Oracle => Oracle, HalfRtt => HalfRtt, Timestamp => Timestamp,
    }
    cwnd_update: CwndUpdate => CwndUpdate { Off => Off, Cuc => Cuc, Cucv2 => CucV2 }
    stream_scheduler: StreamScheduler => StreamScheduler {
        FirstCome => FirstCome, RoundRobin => RoundRobin,
        RoundRobinPerPacket => RoundRobinPerPacket, Priority => Priority,
        FairCapacity => FairCapacity, WeightedFair => WeightedFair,
    }
    recovery: Recovery => LossDetection { MissingReports => MissingReports, RackTlp => RackTlp }
    retransmission: Retransmission => RetransmissionPolicy {
        Same => Same, Ssthresh => Ssthresh, Cwnd => Cwnd, LossRate => LossRate, Asap => Asap,
        Fastest => Fastest,
    }
    window_rounding: WindowRounding => WindowRounding { Bytes => Bytes, Packets => Packets }
    window_unit: WindowUnit => WindowUnit { Bytes => Bytes, Packets => Packets }
    window_check: WindowCheck => WindowCheck { Span => Span, Unacknowledged => Unacknowledged }
    windows: ScheduleWindows => Windows { Frozen => Frozen, Smoothed => Smoothed }
    capacity: ScheduleCapacity => Capacity {
        WindowPerRoundTrip => WindowPerRoundTrip, Window => Window,
    }
    when_blocked: WhenBlocked => WhenBlocked { Nothing => Nothing, ResendOldest => ResendOldest }
    quota: Quota => Quota { Window => Window, Packet => Packet }
    weights: Weights => WeightSource { Configured => Configured, Measured => MeasuredRate }
    coupling: Coupling => BottleneckCoupling { None => None, Detected => Detected, All => All }
    /// Whether a part of congestion control follows the RFC or Linux.
    pub rules: Rules => Rules { Rfc => Rfc, Linux => Linux }
    /// When a path carries data.
    pub path_use: PathUse => PathUse {
        Always => Always, WhenNeeded => WhenNeeded, Backup => Backup, Never => Never,
    }
    linux_turns: LinuxTurns => LinuxTurns { Burst => Burst, Push => Push }
    otias_form: OtiasForm => OtiasForm { Ceil => Ceil, Floor => Floor, Real => Real }
}

/// The scheduler of the scenario.
///
/// # Errors
/// If the engine has no scheduler of this name.
pub fn scheduler(options: &file::SchedulerOptions) -> Result<Scheduler, UnknownScheduler> {
    let plan = PlanOptions {
        quantum: options.quantum,
        period_cap: options.period_cap as u64,
        windows: windows(options.windows),
        capacity: capacity(options.capacity),
    };
    let daps = DapsOptions {
        plan,
        when_blocked: when_blocked(options.when_blocked),
        in_slow_start: options.in_slow_start,
    };
    let known = SchedulerOptions {
        quota: quota(options.quota),
        weights: weights(options.weights),
        copies: options.copies as f64,
        daps,
        bas_with_delay: options.bas_with_delay,
        otias_form: otias_form(options.otias_form),
        blest: BlestOptions {
            lambda: options.blest_lambda,
            least: options.blest_lambda_min,
            most: options.blest_lambda_max,
            ..BlestOptions::default()
        },
        ecf_beta: options.ecf_beta,
        stms: StmsOptions { gain: options.stms_gain },
        linux: LinuxOptions { burst: options.linux_burst, turns: linux_turns(options.linux_turns) },
        lay: LayOptions {
            reorder_margin: options.reorder_margin,
            latency_budget: options.latency_budget,
        },
    };
    Scheduler::from_name(options.name.as_str(), &known)
}

#[cfg(test)]
mod tests {
    use ropewalk_engine::congestion::Congestion;
    use ropewalk_scenario::Named;

    use super::*;

    #[test]
    fn the_engine_has_every_congestion_control_that_a_scenario_can_name_and_no_other() {
        let names: Vec<_> = file::Congestion::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(names, Congestion::NAMES);
    }

    #[test]
    fn streams_are_scheduled_and_interleaved_as_the_file_says() {
        let names: Vec<_> = file::StreamScheduler::ALL.iter().map(|one| one.as_str()).collect();
        assert_eq!(names, StreamScheduler::ALL.map(|(name, _)| name));
        for (name, scheduler) in StreamScheduler::ALL {
            let text = format!(
                "[sctp]\ninterleaving = true\nstream_scheduler = \"{name}\"\n[[path]]\nname = 'a'\n"
            );
            let scenario = file::Scenario::parse(&text, "test.toml").expect("a valid scenario");
            let config = config(&scenario);
            assert_eq!((config.interleaving, config.stream_scheduler), (true, scheduler));
        }
    }

    #[test]
    fn the_send_buffer_and_nr_sacks_are_as_the_file_says() {
        let text = "[sctp]\nnr_sack = true\nsend_buffer = '50 kB'\nstream_reserve = '9 kB'\n[[path]]\nname = 'a'\n";
        let scenario = file::Scenario::parse(text, "test.toml").expect("a valid scenario");
        let found = config(&scenario);
        assert_eq!((found.nr_sack, found.send_buffer), (true, 50_000));
        assert_eq!(found.stream_reserve, 9000);
        let plain = file::Scenario::parse("[[path]]\nname = 'a'\n", "test.toml").expect("valid");
        let found = config(&plain);
        assert_eq!((found.nr_sack, found.send_buffer), (false, 4 << 17));
    }

    #[test]
    fn the_preset_live_has_the_congestion_control_of_live_transport() {
        let text = "[transfer]\npreset = 'live'\n[[path]]\nname = 'a'\n";
        let scenario = file::Scenario::parse(text, "test.toml").expect("a valid scenario");
        let (simulated, paths) = (config(&scenario), vec![PathConfig::default()]);
        let live = Config::preset(sctp::Preset::Live, paths, 1 << 20);
        assert_eq!(simulated.congestion, live.congestion);
        assert_eq!(simulated.congestion_variants, live.congestion_variants);
    }

    #[test]
    fn options_of_pacing_default_to_those_of_the_engine() {
        for (set, expected) in [("true", true), ("{}", true), ("false", false)] {
            let text = format!("[transfer]\npacing = {set}\n[[path]]\nname = 'a'\n");
            let scenario = file::Scenario::parse(&text, "test.toml").expect("a valid scenario");
            assert_eq!(config(&scenario).pacing, expected.then(Pacing::default), "{set}");
        }
    }

    #[test]
    fn tcps_algorithms_bring_tcps_values_and_the_file_has_the_last_word() {
        for (congestion, sctp, floor, counting) in [
            ("rfc9260", "", 4, 1),
            ("lia", "", 2, 2),
            ("cubic", "min_ssthresh = 3\nbyte_counting_limit = 1", 3, 1),
        ] {
            let text = format!(
                "[transfer]\ncongestion = \"{congestion}\"\n[sctp]\n{sctp}\n[[path]]\nname = 'a'\n"
            );
            let scenario = file::Scenario::parse(&text, "test.toml").expect("a valid scenario");
            let config = config(&scenario);
            assert_eq!(config.congestion, congestion);
            let found = (config.min_ssthresh_chunks, config.byte_counting_limit);
            assert_eq!(found, (floor, counting), "{congestion}");
        }
    }
}
