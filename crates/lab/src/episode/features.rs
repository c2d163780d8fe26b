//! Encodes a decision as a feature vector for machine learning.

use ropewalk_base::Duration;
use ropewalk_engine::scheduler::PathView;

use super::Observation;

/// Features of each path, in this order: name and meaning.
pub const PATH_FEATURES: [(&str, &str); 12] = [
    ("open", "1 if it may take a chunk now, else 0"),
    ("usable", "1 if it has not failed, else 0"),
    ("srtt", "smoothed round trip, s; 0 before the first sample"),
    ("rttvar", "mean deviation of the round trip, s"),
    ("forward_delay", "one-way delay of a packet, s; 0 if not known"),
    ("queueing", "queueing part of the delay, s"),
    ("rtt_age", "time since the last round-trip sample, s"),
    ("filled", "bytes in flight over the window"),
    ("window", "window over the receive buffer"),
    ("rate", "delivery rate times srtt, over the receive buffer; 0 before it is measured"),
    ("rate_confidence", "confidence in that rate, 0 to 1"),
    ("loss", "estimated loss, 0 to 1"),
];

/// Features that follow those of all paths: name and meaning.
pub const SHARED_FEATURES: [(&str, &str); 3] = [
    ("window_room", "bytes of the receive buffer that nothing claims, over that buffer"),
    ("takeable", "bytes that may be sent now, over the receive buffer"),
    ("backlog", "bytes not yet assigned to a path, over the receive buffer"),
];

/// Upper limit of every feature; the lower limit is 0.
pub const FEATURE_MOST: f32 = 10.0;

/// Length of the feature vector.
pub const fn feature_count(paths: usize) -> usize {
    paths * PATH_FEATURES.len() + SHARED_FEATURES.len()
}

/// Writes the features of a decision to `out`, whose length is [`feature_count`].
///
/// # Panics
/// If `out` has another length.
pub fn features(ask: &Observation, out: &mut [f32]) {
    assert_eq!(out.len(), feature_count(ask.paths.len()), "one place for each number");
    let (paths, shared) = out.split_at_mut(ask.paths.len() * PATH_FEATURES.len());
    let buffer = ask.receive_buffer.max(1) as f64;
    for (at, row) in paths.chunks_exact_mut(PATH_FEATURES.len()).enumerate() {
        fill(row, &of_path(ask, at, buffer));
    }
    let takeable = ask.takeable as f64 * ask.chunk_bytes as f64;
    let all = [ask.window_room as f64, takeable, ask.backlog_bytes as f64];
    fill(shared, &all.map(|bytes| bytes / buffer));
}

fn of_path(ask: &Observation, at: usize, buffer: f64) -> [f64; PATH_FEATURES.len()] {
    let path: &PathView = &ask.paths[at];
    let seconds = |time: Option<Duration>| time.map_or(0.0, Duration::as_secs_f64);
    [
        f64::from(u8::from(ask.may_send(at))),
        f64::from(u8::from(path.usable)),
        seconds(path.srtt),
        path.rttvar.as_secs_f64(),
        seconds(path.forward_delay),
        path.queueing.as_secs_f64(),
        path.rtt_age.as_secs_f64(),
        path.in_flight as f64 / path.window.max(1) as f64,
        path.window as f64 / buffer,
        path.rate.map_or(0.0, |rate| rate.as_bps() as f64 / 8.0 * seconds(path.srtt) / buffer),
        path.rate_confidence,
        path.loss,
    ]
}

fn fill(out: &mut [f32], values: &[f64]) {
    for (place, value) in out.iter_mut().zip(values) {
        *place = (*value as f32).clamp(0.0, FEATURE_MOST);
    }
}
