//! Translates a scenario into the engine's configuration of TCP and Multipath TCP.

use ropewalk_engine::mptcp::{
    self, AckBurstLoss, BufferSize, Config, Preset, ReceiveRules, Reordering, SubflowAck,
};
use ropewalk_engine::path::RtoFormula;
use ropewalk_scenario as file;

use crate::engine_config;

/// The engine's configuration.
pub fn config(scenario: &file::Scenario) -> Config {
    let transfer = &scenario.transfer;
    let paths = scenario.paths.iter().map(|p| engine_config::path(scenario, p)).collect();
    let multipath = transfer.protocol == file::Protocol::Mptcp;
    let preset = match transfer.preset {
        file::Preset::Chihani2011 => Preset::Chihani2011,
        file::Preset::Linux6 => Preset::Linux6,
        _ => Preset::Rfc8684,
    };
    let mut config = Config::preset(preset, paths, transfer.receive_buffer);
    config.multipath = multipath;
    config.mitigation = engine_config::mitigation(scenario);
    config.pacing = engine_config::pacing(transfer.pacing, config.pacing);
    // Scenario and engine use the same names; a test checks that.
    config.use_congestion(transfer.congestion.as_str()).expect("the engine knows it");
    config.congestion_variants =
        engine_config::congestion_variants(transfer, config.congestion_variants);
    config.prr = transfer.prr;
    config.record_decisions = scenario.record.decisions;
    if let Some(quirks) = &mut config.quirks {
        let fixed = AckBurstLoss::Fixed(scenario.tcp.ack_burst_loss.unwrap_or(0.0));
        let drawn = scenario.tcp.ack_burst_loss_max.map(|max| AckBurstLoss::Drawn { max });
        quirks.ack_burst_loss = drawn.unwrap_or(fixed);
        quirks.data_waits = scenario.tcp.data_waits.unwrap_or(false);
        // The model uses timestamps for Eifel only.
        config.timestamps = scenario.tcp.recovery == Some(file::Reordering::Eifel);
    }
    config.delay_source = engine_config::delay_source(scenario.scheduler.forward_delay);
    // Other schedulers keep no data for a subflow after a segment, so Nagle's algorithm would treat each short
    // segment as the last one.
    config.nagle &= scenario.scheduler.label() == file::SchedulerName::Linux.as_str();
    apply(&mut config, &scenario.tcp);
    if let Some(rules) = scenario.tcp.receive_rules {
        receive_rules(&mut config, rules, transfer.receive_buffer);
    }
    if let Some(most) = scenario.tcp.receive_buffer_max {
        let first = transfer.receive_buffer;
        let most = most.max(first);
        config.receive_buffer = Some(most);
        config.receive_rules = ReceiveRules::Linux(BufferSize::Growing { first, most });
    }
    config.window_manager = engine_config::window_manager(scenario, config.segment_limit() as u64);
    config
}

fn apply(config: &mut Config, tcp: &file::TcpOptions) {
    use engine_config::set;
    set(&mut config.ack_every, tcp.ack_every);
    set(&mut config.ack_delay, tcp.ack_delay);
    set(&mut config.quick_acks, tcp.quick_acks);
    set(&mut config.subflow_ack, tcp.subflow_ack.map(subflow_ack));
    set(&mut config.rto_rule.formula, tcp.rto_formula.map(rto_formula));
    config.fragment = tcp.fragment.or(config.fragment);
    set(&mut config.nagle, tcp.nagle);
    set(&mut config.whole_packets, tcp.whole_packets);
    let variants = &mut config.congestion_variants;
    set(&mut variants.window_use, tcp.window_use.map(engine_config::rules));
    set(&mut variants.hystart_rules, tcp.hystart_rules.map(engine_config::rules));
    set(&mut variants.cubic_rules, tcp.cubic_rules.map(engine_config::rules));
    set(&mut config.timestamps, tcp.timestamps);
    set(&mut config.sack, tcp.sack);
    set(&mut config.reordering, tcp.recovery.map(reordering));
    set(&mut config.duplicate_threshold, tcp.duplicate_threshold);
    set(&mut config.reinjection, tcp.reinjection.map(reinjection));
    set(&mut config.rto.initial, tcp.rto_initial);
    set(&mut config.rto.min, tcp.rto_min);
    set(&mut config.rto.max, tcp.rto_max);
    set(&mut config.probe_interval, tcp.probe_interval);
    let segment = config.segment_limit() as u64;
    match tcp.initial_window {
        None | Some(file::InitialWindow::Auto) => {}
        Some(file::InitialWindow::Bytes(bytes)) => config.initial_window = Some(bytes),
        Some(file::InitialWindow::Packets(n)) => config.initial_window = Some(n as u64 * segment),
    }
    config.initial_ssthresh = tcp.initial_ssthresh.or(config.initial_ssthresh);
}

/// The rules of the receive window, for a buffer of `asked` bytes.
fn receive_rules(config: &mut Config, rules: file::ReceiveRules, asked: u64) {
    (config.receive_buffer, config.receive_rules) = match rules {
        file::ReceiveRules::Payload => (Some(asked), ReceiveRules::Payload),
        file::ReceiveRules::Linux => {
            (Some(2 * asked), ReceiveRules::Linux(BufferSize::Fixed(asked)))
        }
    };
}

/// Scenario and engine use the same names.
fn reordering(name: file::Reordering) -> Reordering {
    Reordering::from_name(name.as_str()).expect("the engine knows it; a test checks that")
}

engine_config::translations! {
    subflow_ack: SubflowAck => SubflowAck { Independent => Independent, DataGated => DataGated }
    rto_formula: RtoFormula => RtoFormula { Rfc6298 => Rfc6298, Linux => Linux, Ns3 => Ns3 }
    reinjection: Reinjection => mptcp::Reinjection {
        Never => Never, OnTimeout => OnTimeout, OnLoss => OnLoss,
    }
}

#[cfg(test)]
mod tests {
    use file::Named;

    use super::*;

    #[test]
    fn scenario_and_engine_name_the_same_recoveries_in_the_same_order() {
        let named: Vec<_> = file::Reordering::ALL.iter().map(|name| reordering(*name)).collect();
        assert_eq!(named, Reordering::ALL);
    }
}
