//! Limits the rate of logged events: a flood of events must not fill the disk or hide the events of other
//! peers.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use ropewalk_runtime::seal::PublicKey;
use tokio::time::Instant;

/// Events per kind and peer that are logged without delay.
const BURST: u32 = 50;
/// Minimum interval between further events.
const INTERVAL: Duration = Duration::from_millis(200);
/// Pairs of kind and peer that are counted separately. Other peers share one bucket per kind.
const BUCKETS: usize = 1024;

/// Token buckets per kind of event and peer.
#[derive(Debug, Default)]
pub struct RateLimit {
    buckets: Mutex<BTreeMap<(&'static str, Option<PublicKey>), Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    tokens: u32,
    refilled: Instant,
    suppressed: u64,
}

impl RateLimit {
    /// Whether an event may be logged now, with the number of events omitted before it.
    pub fn admit(&self, kind: &'static str, peer: Option<PublicKey>, now: Instant) -> Option<u64> {
        let mut buckets = self.buckets.lock();
        if buckets.len() >= BUCKETS {
            // A full bucket without omitted events is equivalent to a new one.
            buckets.retain(|_, bucket| {
                bucket.refill(now);
                bucket.tokens < BURST || bucket.suppressed > 0
            });
        }
        let full = buckets.len() >= BUCKETS && !buckets.contains_key(&(kind, peer));
        let key = (kind, if full { None } else { peer });
        let fresh = || Bucket { tokens: BURST, refilled: now, suppressed: 0 };
        buckets.entry(key).or_insert_with(fresh).take(now)
    }
}

impl Bucket {
    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.refilled);
        let earned = (passed.as_nanos() / INTERVAL.as_nanos()).min(u128::from(BURST)) as u32;
        if earned > 0 {
            self.tokens = (self.tokens + earned).min(BURST);
            self.refilled = now;
        }
    }

    fn take(&mut self, now: Instant) -> Option<u64> {
        self.refill(now);
        if self.tokens == 0 {
            self.suppressed += 1;
            return None;
        }
        self.tokens -= 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_runtime::seal::SecretKey;

    use super::*;

    #[test]
    fn a_flood_of_one_peer_is_counted_and_hides_nothing_of_others() {
        let rate = RateLimit::default();
        let [loud, other] = [(); 2].map(|()| {
            let secret = SecretKey::generate().expect("random numbers");
            Some(secret.public())
        });
        let begin = Instant::now();
        let logged = (0..1000).filter(|_| rate.admit("target refused", loud, begin).is_some());
        assert_eq!(logged.count(), BURST as usize);
        assert_eq!(rate.admit("target refused", other, begin), Some(0), "another peer");
        assert_eq!(rate.admit("association closed", loud, begin), Some(0), "another kind");
        assert_eq!(rate.admit("target refused", loud, begin + INTERVAL), Some(950));
        assert_eq!(rate.admit("target refused", loud, begin + INTERVAL), None);
        let later = begin + 1000 * INTERVAL;
        assert_eq!(rate.admit("target refused", loud, later), Some(1));
    }

    #[test]
    fn the_memory_is_bounded_whatever_keys_come() {
        let rate = RateLimit::default();
        let now = Instant::now();
        for _ in 0..BUCKETS + 100 {
            let key = SecretKey::generate().expect("random numbers").public();
            rate.admit("association opened", Some(key), now);
        }
        let used = |rate: &RateLimit| rate.buckets.lock().len();
        assert!(used(&rate) <= BUCKETS + 1, "{}", used(&rate));
        rate.admit("association opened", None, now + 1000 * INTERVAL);
        assert!(used(&rate) <= 2, "old ones go");
    }
}
