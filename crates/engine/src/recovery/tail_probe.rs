//! Tail loss probes: a probe after two round trips without an acknowledgement (RFC 8985, 7), per path.
//!
//! No later packets reveal the loss of the last packets of a flight. Instead of waiting for the
//! retransmission timer, which takes at least a second (RFC 9260, 6.3.1), the newest packet is
//! retransmitted. Its acknowledgement reveals which packets before it are missing.

use ropewalk_base::{Duration, Time};

/// A probe that was sent.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// Number of its transmission.
    number: u64,
    /// Whether the probe, or the packet that it repeats, has been acknowledged.
    answered: bool,
    /// Whether the peer has since reported a duplicate.
    needless: bool,
}

/// State of the tail loss probe of one path.
#[derive(Clone, Copy, Debug, Default)]
pub struct TailProbe {
    /// When data was last sent or acknowledged.
    active_at: Time,
    /// The last probe, until its result is known.
    last: Option<Probe>,
}

impl TailProbe {
    /// Records that data was sent or acknowledged.
    #[inline]
    pub const fn on_activity(&mut self, now: Time) {
        self.active_at = now;
    }

    /// When the probe is due while data is in flight (7.2). `None` while a probe is outstanding, or if
    /// `srtt` is not known. `ack_delay`: maximum delay of the peer's acknowledgement of the newest
    /// transmission.
    #[inline]
    pub fn deadline(&self, srtt: Option<Duration>, ack_delay: Duration) -> Option<Time> {
        if self.last.is_some_and(|probe| !probe.answered) {
            return None;
        }
        Some(self.active_at + srtt? * 2 + ack_delay)
    }

    /// Records that the probe is sent as transmission `number`.
    pub const fn on_probe(&mut self, number: u64) {
        self.last = Some(Probe { number, answered: false, needless: false });
    }

    /// Records that the peer reports a duplicate.
    #[inline]
    pub const fn on_duplicate(&mut self) {
        if let Some(probe) = &mut self.last {
            probe.needless = true;
        }
    }

    /// Records that transmissions below `acked_to` have been acknowledged, or overtaken by acknowledged
    /// ones. Returns true if the probe is now known to have repaired a loss. An acknowledgement of the
    /// probe itself proves nothing, because it may acknowledge the late original. Once a transmission
    /// after the probe has arrived, a spurious probe would have been reported (RFC 8985, 7.4.2).
    #[inline]
    pub fn on_acked(&mut self, acked_to: u64) -> bool {
        let Some(probe) = &mut self.last else { return false };
        probe.answered |= acked_to > probe.number;
        if acked_to <= probe.number + 1 {
            return false;
        }
        let needless = probe.needless;
        self.last = None;
        !needless
    }

    /// Records a timeout: a new flight begins.
    pub const fn on_timeout(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_probe_goes_two_round_trips_after_the_last_sign_of_life() {
        let millis = Duration::from_millis;
        let due = |probe: &TailProbe, delay| probe.deadline(Some(millis(30)), millis(delay));
        let mut probe = TailProbe::default();
        probe.on_activity(Time::from_millis(1000));
        assert_eq!(due(&probe, 0), Some(Time::from_millis(1060)));
        assert_eq!(due(&probe, 200), Some(Time::from_millis(1260)), "a SACK may be delayed");
        assert_eq!(probe.deadline(None, millis(200)), None, "no round trip is known");
        probe.on_probe(17);
        assert_eq!(due(&probe, 0), None, "one at a time");
        assert!(!probe.on_acked(17), "17 itself is not below 17");
        assert!(!probe.on_acked(18), "the answer may be that of the original");
        assert_eq!(due(&probe, 0), Some(Time::from_millis(1060)), "the next may go");
        assert!(
            probe.on_acked(19) && !probe.on_acked(19),
            "what left after it arrived, not it twice"
        );
        probe.on_probe(20);
        probe.on_duplicate();
        assert!(!probe.on_acked(25), "it was not needed");
        probe.on_probe(30);
        probe.on_timeout();
        assert!(due(&probe, 0).is_some());
    }
}
