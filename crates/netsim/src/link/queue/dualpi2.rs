//! DualPI2: the coupled dual-queue AQM for L4S (RFC 9332, Appendix A).
//!
//! ```text
//!                    +-- L queue: ECT(1), CE --> ramp ---+
//!                    |                             max --+--> mark --+
//!   packets --> ECN -+             k p' (coupling) ------+           +-- WRR --> link
//!                    |                  |                            |
//!                    +-- C queue: others --> PI (p') --> p'^2 --> drop or mark
//! ```
//!
//! A scalable sender's rate is inversely proportional to its marking probability, a classic sender's to the square
//! root of its loss probability. The classic probability is therefore the square of what the L queue gets, and flows
//! of both kinds get similar rates, while only the classic ones wait in a long queue.

use ropewalk_base::{Duration, Ecn, Time};

use super::Limit;
use super::fifo::{Dequeued, Fifo};
use crate::packet::Packet;

/// Parameters of DualPI2. The defaults are those of RFC 9332, Appendix A.1, Figure 2, and Appendix A.2 (weight).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2 {
    /// Target delay of the PI controller in the C queue: 15 ms.
    pub target: Duration,
    /// Longest round-trip time for which the controller is stable: 100 ms. It determines the gains and the interval
    /// between two updates.
    pub longest_rtt: Duration,
    /// Coupling factor k: 2. A larger value gives L4S flows less of the link.
    pub coupling: f64,
    /// Delay in the L queue above which packets are marked: 0.8 ms.
    pub ramp_from: Duration,
    /// Width of the range in which the marking probability of the L queue rises from 0 to 1: 0.4 ms. Zero for a
    /// step.
    pub ramp: Duration,
    /// Minimum share of the link for the C queue while both queues hold packets: 1/16.
    pub classic_weight: f64,
    /// Size of a full packet, bytes. A limit in bytes always leaves room for one, even when a small packet arrives.
    pub mtu: u32,
    /// Capacity of both queues together.
    pub limit: Limit,
}

impl Default for DualPi2 {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            longest_rtt: Duration::from_millis(100),
            coupling: 2.0,
            ramp_from: Duration::from_micros(800),
            ramp: Duration::from_micros(400),
            classic_weight: 1.0 / 16.0,
            mtu: 1500,
            limit: Limit::Unlimited,
        }
    }
}

impl DualPi2 {
    /// Name and value of the first parameter that is out of range.
    pub(in crate::link) fn misfit(&self) -> Option<(&'static str, f64)> {
        let share = 0.0..1.0;
        [
            ("target", self.target.as_secs_f64(), !self.target.is_zero()),
            ("longest_rtt", self.longest_rtt.as_secs_f64(), self.interval() > Duration::ZERO),
            ("coupling", self.coupling, (0.0..=1000.0).contains(&self.coupling)),
            ("classic_weight", self.classic_weight, share.contains(&self.classic_weight)),
        ]
        .into_iter()
        .find_map(|(name, value, fits)| (!fits).then_some((name, value)))
    }

    /// Base probability at which the link counts as overloaded: the classic probability is p_Cmax = min(1/k^2, 1), and
    /// all L packets are marked (Figure 2, line 11).
    fn overload(&self) -> f64 {
        self.coupling.recip().min(1.0)
    }

    /// Time between two updates of the base probability (Figure 2, line 12).
    fn interval(&self) -> Duration {
        self.target.min(Duration::from_nanos(self.longest_rtt.as_nanos() / 3))
    }
}

/// The PI controller of the base probability p'.
#[derive(Clone, Copy, Debug)]
struct Controller {
    target_s: f64,
    interval: Duration,
    /// Integral gain, 1/s.
    alpha: f64,
    /// Proportional gain, 1/s.
    beta: f64,
    probability: f64,
    previous_s: f64,
    next: Time,
}

impl Controller {
    fn new(settings: &DualPi2) -> Self {
        let (interval, rtt) = (settings.interval(), settings.longest_rtt.as_secs_f64());
        Self {
            target_s: settings.target.as_secs_f64(),
            interval,
            alpha: 0.1 * interval.as_secs_f64() / (rtt * rtt),
            beta: 0.3 / rtt,
            probability: 0.0,
            previous_s: 0.0,
            next: Time::ZERO + interval,
        }
    }

    fn update(&mut self, delay: Duration) {
        let delay_s = delay.as_secs_f64();
        let change =
            self.alpha * (delay_s - self.target_s) + self.beta * (delay_s - self.previous_s);
        self.probability = (self.probability + change).clamp(0.0, 1.0);
        self.previous_s = delay_s;
        self.next += self.interval;
    }

    /// Skips the updates until `now`. They have no effect while the queues are empty and the probability is 0.
    fn skip_to(&mut self, now: Time) {
        let missed = now.since(self.next).as_nanos() / self.interval.as_nanos() + 1;
        self.next += self.interval * missed;
    }
}

/// Lets an event occur with a given likelihood, at regular distances (`recur` in Figure 4). RFC 9332 prefers this
/// to random marks, because a sender need not smooth out their randomness. Unlike in the figure, an event of
/// likelihood 1 occurs every time, including the first.
#[derive(Clone, Copy, Debug, Default)]
struct Recurrence {
    count: f64,
}

impl Recurrence {
    fn occurs(&mut self, likelihood: f64) -> bool {
        self.count += likelihood.min(1.0);
        let occurs = self.count >= 1.0;
        if occurs {
            self.count -= 1.0;
        }
        occurs
    }
}

#[derive(Clone, Debug)]
pub(in crate::link) struct DualPi2Queue<P> {
    settings: DualPi2,
    low_latency: Fifo<P>,
    classic: Fifo<P>,
    controller: Controller,
    /// Marks and drops of the L queue, and of the C queue.
    low_latency_signals: Recurrence,
    classic_signals: Recurrence,
    /// Bytes that the C queue may send before the L queue, because the L queue has exceeded its share.
    owed: f64,
}

impl<P> DualPi2Queue<P> {
    pub(in crate::link) fn new(settings: DualPi2) -> Self {
        Self {
            controller: Controller::new(&settings),
            settings,
            low_latency: Fifo::new(),
            classic: Fifo::new(),
            low_latency_signals: Recurrence::default(),
            classic_signals: Recurrence::default(),
            owed: 0.0,
        }
    }

    pub(super) fn has_room(&self, size: u32) -> bool {
        // Appendix A.1, Figure 3, line 2: room for a full packet is required, so that large packets are not dropped first.
        self.settings.limit.admits(self.packets(), self.bytes(), size.max(self.settings.mtu))
    }

    pub(super) fn push(&mut self, now: Time, packet: Packet<P>) {
        self.update_until(now);
        let queue =
            if packet.ecn.is_low_latency() { &mut self.low_latency } else { &mut self.classic };
        queue.push(now, packet);
    }

    pub(super) fn fifos(&self) -> [&Fifo<P>; 2] {
        [&self.low_latency, &self.classic]
    }

    pub(super) fn packets(&self) -> usize {
        self.low_latency.packets() + self.classic.packets()
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.low_latency.bytes() + self.classic.bytes()
    }

    /// The time at which the older of both heads joined its queue.
    pub(super) fn head_since(&self) -> Option<Time> {
        let heads = [self.low_latency.head_since(), self.classic.head_since()];
        heads.into_iter().flatten().min()
    }

    pub(super) fn waited(&self, now: Time) -> (u128, u128) {
        let [low_latency, classic] = self.fifos().map(|fifo| fifo.waited(now));
        (low_latency.0 + classic.0, low_latency.1 + classic.1)
    }

    /// The next packet to send at `now`.
    pub(super) fn pop(&mut self, now: Time) -> Dequeued<P> {
        self.update_until(now);
        let mut out = Dequeued { packet: None, dropped: 0, marked: false };
        while out.packet.is_none() && self.packets() > 0 {
            let sent = if self.is_turn_of_low_latency() {
                self.pop_low_latency(now, &mut out.marked)
            } else {
                self.pop_classic(now, &mut out.marked)
            };
            match sent {
                Some(packet) => out.packet = Some(packet),
                None => out.dropped += 1,
            }
        }
        out
    }

    /// Weighted round robin: the L queue goes first, unless the C queue would fall below its weight.
    fn is_turn_of_low_latency(&mut self) -> bool {
        if self.classic.is_empty() {
            self.owed = 0.0;
            return true;
        }
        if self.low_latency.is_empty() {
            return false;
        }
        let head = f64::from(self.classic.head_size());
        if self.owed >= head {
            self.owed -= head;
            return false;
        }
        let weight = self.settings.classic_weight;
        self.owed += f64::from(self.low_latency.head_size()) * weight / (1.0 - weight);
        true
    }

    /// The head of the L queue. `None` if it was dropped.
    fn pop_low_latency(&mut self, now: Time, marked: &mut bool) -> Option<Packet<P>> {
        // Appendix A.2: a queue of one packet is not marked by the ramp, because on a slow link its transmission
        // alone takes longer.
        let alone = self.low_latency.packets() == 1;
        let (mut packet, sojourn) = self.low_latency.pop(now)?;
        let base = self.controller.probability;
        let signalled = if base >= self.settings.overload() {
            // Overload: marks alone no longer control the queue. Both queues drop with the same probability, so
            // traffic gains nothing by ECT(1). All remaining packets are marked.
            if self.low_latency_signals.occurs(base * base) {
                return None;
            }
            true
        } else {
            let native = if alone { 0.0 } else { self.ramp(sojourn) };
            self.low_latency_signals.occurs(native.max(base * self.settings.coupling))
        };
        if signalled && packet.ecn.may_be_marked() {
            packet.ecn = Ecn::Ce;
            *marked = true;
        }
        Some(packet)
    }

    /// The head of the C queue. `None` if it was dropped.
    fn pop_classic(&mut self, now: Time, marked: &mut bool) -> Option<Packet<P>> {
        let (mut packet, _) = self.classic.pop(now)?;
        let base = self.controller.probability;
        if !self.classic_signals.occurs(base * base) {
            return Some(packet);
        }
        if base >= self.settings.overload() || !packet.ecn.may_be_marked() {
            return None;
        }
        packet.ecn = Ecn::Ce;
        *marked = true;
        Some(packet)
    }

    /// Native marking probability of the L queue, without coupling, after a wait of `sojourn`.
    fn ramp(&self, sojourn: Duration) -> f64 {
        let DualPi2 { ramp_from, ramp, .. } = self.settings;
        if sojourn <= ramp_from {
            return 0.0;
        }
        let above = sojourn - ramp_from;
        if above >= ramp { 1.0 } else { above.as_nanos() as f64 / ramp.as_nanos() as f64 }
    }

    /// Performs the updates of the base probability that are due by `now`. The queues have not changed since the last
    /// event, so their delays at the time of each update are known.
    fn update_until(&mut self, now: Time) {
        while self.controller.next <= now {
            if self.packets() == 0 && self.controller.probability == 0.0 {
                self.controller.previous_s = 0.0;
                self.controller.skip_to(now);
                return;
            }
            // The greater of both delays; otherwise L traffic alone could never overload the link.
            let at = self.controller.next;
            let delay = self.low_latency.head_wait(at).max(self.classic.head_wait(at));
            self.controller.update(delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(settings: DualPi2) -> DualPi2Queue<u32> {
        DualPi2Queue::new(settings)
    }

    fn push(queue: &mut DualPi2Queue<u32>, micros: u64, ecn: Ecn, payload: u32) {
        let packet = Packet { ecn, ..Packet::new(1500, 0, payload) };
        queue.push(Time::ZERO + Duration::from_micros(micros), packet);
    }

    #[test]
    fn packets_are_classified_by_their_codepoint_and_low_latency_goes_first() {
        let mut queue = queue(DualPi2::default());
        for (payload, ecn) in (0..).zip([Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]) {
            push(&mut queue, 0, ecn, payload);
        }
        assert_eq!(queue.fifos().map(Fifo::packets), [2, 2]);
        let order: Vec<u32> =
            std::iter::from_fn(|| queue.pop(Time::ZERO).packet.map(|packet| packet.payload))
                .collect();
        assert_eq!(order, [2, 3, 0, 1]);
    }

    #[test]
    fn the_classic_queue_gets_its_weight_beside_a_full_low_latency_queue() {
        let mut queue = queue(DualPi2 { classic_weight: 0.25, ..DualPi2::default() });
        for payload in 0..100 {
            push(&mut queue, 0, Ecn::Ect1, payload);
            push(&mut queue, 0, Ecn::NotEct, 1000 + payload);
        }
        let sent = (0..100).filter_map(|_| queue.pop(Time::ZERO).packet);
        let classic = sent.filter(|packet| packet.payload >= 1000).count();
        assert!((24..=26).contains(&classic), "{classic} of 100");
    }

    #[test]
    fn the_ramp_marks_by_delay_and_spares_a_single_packet() {
        // Wait in microseconds, packets behind it, share of marks.
        let settings = DualPi2::default();
        for (wait, behind, share) in
            [(800, 1, 0.0), (900, 1, 0.25), (1000, 1, 0.5), (1200, 1, 1.0), (5000, 0, 0.0)]
        {
            let mut queue = fixed(0.0);
            let marks = (0..2000).filter(|burst| {
                let at = burst * 20_000;
                // The second packet is small: packets count here, not bytes.
                for (payload, size) in (0..=behind).zip([1500, 100]) {
                    let packet = Packet { ecn: Ecn::Ect1, ..Packet::new(size, 0, payload) };
                    queue.push(Time::ZERO + Duration::from_micros(at), packet);
                }
                let marked = queue.pop(Time::ZERO + Duration::from_micros(at + wait)).marked;
                while queue.packets() > 0 {
                    queue.pop(Time::ZERO + Duration::from_micros(at + wait));
                }
                marked
            });
            let found = marks.count() as f64 / 2000.0;
            assert!((found - share).abs() < 0.001, "{wait} us, {behind} behind: {found}");
        }
        let step = DualPi2 { ramp: Duration::ZERO, ..settings };
        assert_eq!(queue(step).ramp(Duration::from_micros(801)), 1.0);
    }

    /// A queue whose base probability stays at `base`.
    fn fixed(base: f64) -> DualPi2Queue<u32> {
        let mut queue = queue(DualPi2::default());
        queue.controller.probability = base;
        queue.controller.next = Time::FAR_FUTURE;
        queue
    }

    #[test]
    fn the_classic_probability_is_the_square_and_the_low_latency_one_the_multiple() {
        const PACKETS: u32 = 20_000;
        // Base probability; ECN; shares marked and dropped. From 0.5 = 1/k on, the link is overloaded.
        for (base, ecn, marked, dropped) in [
            (0.2, Ecn::Ect1, 0.4, 0.0),
            (0.2, Ecn::Ect0, 0.04, 0.0),
            (0.2, Ecn::NotEct, 0.0, 0.04),
            (0.6, Ecn::Ect1, 0.64, 0.36),
            (0.6, Ecn::Ect0, 0.0, 0.36),
            (0.6, Ecn::NotEct, 0.0, 0.36),
        ] {
            let mut queue = fixed(base);
            (0..PACKETS).for_each(|payload| push(&mut queue, 0, ecn, payload));
            let (mut marks, mut drops) = (0, 0);
            while queue.packets() > 0 {
                let out = queue.pop(Time::ZERO);
                drops += out.dropped;
                marks += u64::from(out.packet.is_some_and(|packet| packet.ecn == Ecn::Ce));
            }
            let share = |count: u64| count as f64 / f64::from(PACKETS);
            assert!((share(marks) - marked).abs() < 1e-3, "{base} {ecn:?}: {marks} marked");
            assert!((share(drops) - dropped).abs() < 1e-3, "{base} {ecn:?}: {drops} dropped");
        }
    }

    #[test]
    fn signals_recur_at_regular_distances() {
        let mut quarter = Recurrence::default();
        let found: Vec<bool> = (0..8).map(|_| quarter.occurs(0.25)).collect();
        assert_eq!(found, [false, false, false, true, false, false, false, true]);
        let mut always = Recurrence::default();
        assert!((0..8).all(|_| always.occurs(2.0)));
        assert!(!always.occurs(0.0));
    }

    #[test]
    fn the_link_is_overloaded_from_the_probability_on_at_which_all_l_packets_are_marked() {
        // k, p': p_Cmax = min(1/k^2, 1) is p'^2.
        for (coupling, base) in [(2.0, 0.5), (4.0, 0.25), (1.0, 1.0), (0.5, 1.0), (0.0, 1.0)] {
            let settings = DualPi2 { coupling, ..DualPi2::default() };
            assert_eq!(settings.overload(), base, "{coupling}");
        }
    }

    #[test]
    fn a_limit_in_bytes_leaves_room_for_a_full_packet() {
        let mut queue = queue(DualPi2 { limit: Limit::Bytes(3000), ..DualPi2::default() });
        push(&mut queue, 0, Ecn::Ect1, 0);
        assert!(queue.has_room(100) && queue.has_room(1500));
        queue.push(Time::ZERO, Packet::new(100, 0, 1));
        assert!(!queue.has_room(100) && !queue.has_room(1500));
    }

    #[test]
    fn the_controller_integrates_the_delay_above_its_target_and_forgets_it_when_idle() {
        let mut queue = queue(DualPi2::default());
        push(&mut queue, 0, Ecn::NotEct, 0);
        // The gains for 100 ms: alpha = 0.1 * 0.015 / 0.01 and beta = 0.3 / 0.1. Delays of 15 and 30 ms at the updates.
        queue.update_until(Time::from_millis(30));
        let expected = 0.15 * 0.0 + 3.0 * 0.015 + 0.15 * 0.015 + 3.0 * 0.015;
        assert!((queue.controller.probability - expected).abs() < 1e-12);
        queue.controller.probability = 0.0;
        assert!(queue.pop(Time::from_millis(31)).packet.is_some());
        queue.update_until(Time::from_secs(3600));
        assert_eq!(queue.controller.probability, 0.0);
        let next = queue.controller.next;
        assert!(
            next > Time::from_secs(3600)
                && next.since(Time::ZERO).as_nanos().is_multiple_of(15_000_000)
        );
    }
}
