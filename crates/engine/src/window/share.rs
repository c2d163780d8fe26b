//! Sharing of the receive window among paths for unordered data. Unordered data does not wait at the receiver
//! for earlier data, so a byte occupies the window only from its transmission to its acknowledgement.
//!
//! The flow-control bound is then reached by filling the BDPs of the paths, the shortest round trip first,
//! without queues: a queued byte occupies the window as long as a byte in transit, and adds no throughput.

/// Growth factor of the data in flight per round while there is no queue.
const GROWTH: f64 = 1.25;
/// Allowance above the BDP, in chunks: the receiver acknowledges every second packet, and one packet is being
/// sent.
const SLACK_CHUNKS: f64 = 3.0;
/// Share of the round trip above which queueing shows that the BDP is reached.
const QUEUED: f64 = 1.0 / 16.0;
/// Paths whose round trips differ by at most this factor have equal rank and share evenly: smaller
/// differences are noise.
const ONE_RANK: f64 = 1.25;

/// Request of a path for a part of the window.
#[derive(Clone, Copy, Debug)]
pub struct ShareRequest {
    /// Index of the path.
    pub index: usize,
    /// Measured delivery rate, bytes per nanosecond.
    pub rate: f64,
    /// Round trip without queueing, nanoseconds.
    pub pipe_time: f64,
    /// The same with queueing.
    pub round_trip: f64,
}

impl ShareRequest {
    fn bytes(&self, chunk: f64) -> f64 {
        let queued = self.round_trip - self.pipe_time > QUEUED * self.round_trip;
        let gain = if queued { 1.0 } else { GROWTH };
        gain * self.rate * self.pipe_time + SLACK_CHUNKS * chunk
    }
}

/// Shares `buffer` bytes, and calls `give` with the index of each path and the bytes that it may have in
/// flight. `chunk` is the size of a full chunk.
pub fn share(
    buffer: u64,
    chunk: u64,
    claims: &mut [ShareRequest],
    mut give: impl FnMut(usize, u64),
) {
    claims.sort_by(|a, b| a.pipe_time.total_cmp(&b.pipe_time));
    let (mut left, mut rest) = (buffer as f64, &*claims);
    while let Some(first) = rest.first() {
        let rank = rest.partition_point(|c| c.pipe_time <= ONE_RANK * first.pipe_time);
        let (equals, others) = rest.split_at(rank);
        let wanted: f64 = equals.iter().map(|c| c.bytes(chunk as f64)).sum();
        let part = (left / wanted).min(1.0);
        for claim in equals {
            give(claim.index, (part * claim.bytes(chunk as f64)) as u64);
        }
        left -= part * wanted;
        rest = others;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: u64 = 1000;

    /// A path of `rate` bytes per microsecond, with its round trip and queueing in milliseconds.
    fn claim(index: usize, rate: f64, pipe_ms: f64, queueing_ms: f64) -> ShareRequest {
        let pipe_time = pipe_ms * 1e6;
        let round_trip = pipe_time + queueing_ms * 1e6;
        ShareRequest { index, rate: rate * 1e-3, pipe_time, round_trip }
    }

    fn shared(buffer: u64, mut claims: Vec<ShareRequest>) -> Vec<u64> {
        let mut parts = vec![0; claims.len()];
        share(buffer, CHUNK, &mut claims, |index, part| parts[index] = part);
        parts
    }

    #[test]
    fn short_pipes_come_first_and_long_ones_get_what_is_left() {
        // BDPs of 20 kB and 200 kB.
        let paths = |queued| vec![claim(0, 1.0, 200.0, 0.0), claim(1, 1.0, 20.0, queued)];
        for (buffer, queued, expected) in [
            (20_000, 0.0, [0, 20_000]),
            (100_000, 0.0, [72_000, 28_000]),
            (100_000, 10.0, [77_000, 23_000]),
            (1_000_000, 10.0, [253_000, 23_000]),
        ] {
            assert_eq!(shared(buffer, paths(queued)), expected, "{buffer} B, {queued} ms queued");
        }
    }

    #[test]
    fn paths_of_one_rank_share_evenly_whichever_is_shorter_at_the_moment() {
        for (a, b) in [(20.0, 21.0), (21.0, 20.0)] {
            let parts = shared(30_000, vec![claim(0, 1.0, a, 0.0), claim(1, 1.0, b, 0.0)]);
            assert!(parts.iter().all(|p| (14_000..=16_000).contains(p)), "{parts:?}");
        }
    }

    #[test]
    fn no_more_is_given_than_there_is() {
        for buffer in [0, 1, 1_500, 40_000, 90_000] {
            let claims = (0..5).map(|i| claim(i, 1.0 + i as f64, 10.0 * (1 + i) as f64, 0.0));
            assert!(shared(buffer, claims.collect()).iter().sum::<u64>() <= buffer);
        }
    }
}
