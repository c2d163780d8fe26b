//! The shared receive window among paths where order does not matter: nothing waits at the peer for what
//! lies before it, so a byte holds its place from its departure to its acknowledgement, and that is all.
//!
//! Then the flow-control bound is reached by filling pipes, the shortest first, and no queues: a byte that
//! queues holds its place as long as one that travels, and brings nothing.

/// Growth of what is in flight per round while nothing queues.
const GROWTH: f64 = 1.25;
/// So many chunks above the pipe: acknowledgements come for every second one, and one is on its way out.
const SLACK_CHUNKS: f64 = 3.0;
/// Queueing by more than this share of the round trip shows that the pipe is full.
const QUEUED: f64 = 1.0 / 16.0;
/// Paths whose round trips differ by no more than this are of one rank, and share what is left evenly:
/// which of them comes first is noise.
const ONE_RANK: f64 = 1.25;

/// A path that wants a part of the window.
#[derive(Clone, Copy, Debug)]
pub struct ShareRequest {
    /// Index of the path.
    pub index: usize,
    /// What it was seen to deliver, bytes per nanosecond.
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

/// Shares `buffer` bytes out and tells what each path may have in flight; `chunk` is the size of a full
/// one.
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
        // 20 kB and 200 kB of pipe.
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
