//! The flow-control bound of a scenario: its paths and its receive buffer as input of the model.

use ropewalk_models::PathNumbers;
use ropewalk_models::bound::{BoundInput, FlowControlBound, flow_control_bound};
use ropewalk_scenario::Scenario;

use crate::lossy::Formulas;
use crate::machine::EngineSettings;
use crate::packet_log::Way;

/// The paths as input of the models. `None` if a path uses shared links or Wi-Fi, because its share is
/// unknown.
pub fn path_numbers(scenario: &Scenario) -> Option<Vec<PathNumbers>> {
    numbers(scenario, Way::Up)
}

/// The same for data in a direction.
fn numbers(scenario: &Scenario, way: Way) -> Option<Vec<PathNumbers>> {
    let one = |path: &ropewalk_scenario::Path| {
        if !path.via.is_empty() || path.wifi.is_some() {
            return None;
        }
        let (there, returning) = way.of(((&path.up, &path.down), (&path.down, &path.up)));
        let rtt = (path.up.delay + path.down.delay).as_secs_f64();
        let rate = there.capacity.mean_rate().as_bps() as f64;
        let back = returning.capacity.mean_rate().as_bps() as f64;
        let numbers = PathNumbers::new(rate, rtt).ok()?.with_reverse_rate_bps(back).ok()?;
        numbers.with_forward_delay_s(there.delay.as_secs_f64()).ok()
    };
    scenario.paths.iter().map(one).collect()
}

/// The flow-control bound of the scenario in a direction, bit/s on the wire; plain SCTP uses one path at a time.
pub fn flow_control_bound_bps(scenario: &Scenario, way: Way) -> Option<f64> {
    let mut paths = numbers(scenario, way)?;
    if scenario.transfer.protocol.is_single_path() {
        paths.truncate(1);
    }
    bound_by(Formulas::OnTheWire, scenario, &paths).map(|bound| bound.bound_bps)
}

/// The flow-control bound of these paths by the given formulas, and its shares.
pub fn bound_by(
    formulas: Formulas,
    scenario: &Scenario,
    numbers: &[PathNumbers],
) -> Option<FlowControlBound> {
    let buffer_bytes = window_bytes(formulas, scenario);
    let input = BoundInput {
        sack_bytes: formulas.sack_bytes(),
        ..BoundInput::new(buffer_bytes, f64::from(scenario.transfer.packet))
    };
    flow_control_bound(numbers, &input).ok()
}

/// The receive buffer as the bound counts it, bytes.
pub fn window_bytes(formulas: Formulas, scenario: &Scenario) -> f64 {
    match formulas {
        Formulas::OnTheWire => window_on_the_wire(scenario),
        Formulas::AsPrinted => scenario.transfer.receive_buffer as f64,
    }
}

/// The window that the protocol grants: a number of chunks, each counted as its packet on the wire.
fn window_on_the_wire(scenario: &Scenario) -> f64 {
    let packet = scenario.transfer.packet as f64;
    match EngineSettings::of(scenario) {
        EngineSettings::Sctp(config) => {
            config.receive_capacity() as f64 * packet / config.chunk_limit() as f64
        }
        EngineSettings::Tcp(config) => {
            let window = config.window_limit().unwrap_or(scenario.transfer.receive_buffer);
            window as f64 * packet / config.segment_limit() as f64
        }
    }
}
