//! Random parameters of one path.

use ropewalk_base::Rng;

use super::{log_uniform, trace};

/// Kind of link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A constant rate and delay.
    Steady,
    /// A rate that varies on a scale of tens of milliseconds.
    Cellular,
    /// A satellite in low Earth orbit, with a handover every 15 s.
    LowOrbit,
}

/// Random loss, in addition to queue overflows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    None,
    /// Independent loss of each packet with this probability.
    Bernoulli(f64),
    /// Bursts with a mean length of `length` packets, which comprise this share of all packets.
    Bursts {
        share: f64,
        length: f64,
    },
    /// A first loss with this probability, then loss of the rest of the round.
    Round(f64),
}

/// Properties of the return path, which carries acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Return {
    /// The same as the forward direction.
    Alike,
    /// A rate of this share of the forward rate, and a queue of this many bytes.
    Thin { share: f64, queue: u64 },
    /// Loss of this share of the acknowledgements.
    Lossy(f64),
    /// A rate of `rate` times the forward rate. Cross traffic takes the share `load` of it.
    Congested { rate: f64, load: f64, queue: u64 },
}

/// Cross traffic in the forward direction.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cross {
    None,
    /// Packets at exponential intervals, this share of the rate on average.
    Poisson(f64),
    /// On and off periods of half a second on average; this share of the rate while on.
    OnOff(f64),
    /// This many long transfers that fill queues as TCP does.
    Greedy(u64),
}

/// Parameters of one path.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub kind: Kind,
    /// Rate, bit/s; of a cellular link, the mean.
    pub rate_bps: f64,
    /// Round-trip time without queueing, s.
    pub rtt_s: f64,
    queue_bdp: f64,
    loss: Loss,
    back: Return,
    cross: Cross,
}

impl Path {
    pub fn draw(rng: &mut Rng) -> Self {
        let kind = match rng.unit() {
            u if u < 0.70 => Kind::Steady,
            u if u < 0.88 => Kind::Cellular,
            _ => Kind::LowOrbit,
        };
        let (rate_bps, rtt_s) = match kind {
            Kind::Steady => (log_uniform(rng, 0.5e6, 200e6), log_uniform(rng, 0.002, 0.7)),
            Kind::Cellular => (log_uniform(rng, 1e6, 50e6), log_uniform(rng, 0.02, 0.12)),
            Kind::LowOrbit => (log_uniform(rng, 10e6, 150e6), log_uniform(rng, 0.025, 0.07)),
        };
        let queue_bdp = log_uniform(rng, 0.1, 8.0);
        Self {
            kind,
            rate_bps,
            rtt_s,
            queue_bdp,
            loss: Loss::draw(rng),
            back: Return::draw(rng),
            cross: Cross::draw(rng),
        }
    }

    /// The `[[path]]` table; the caller may append keys to it.
    pub fn text(&self, number: usize, duration_s: f64, rng: &mut Rng) -> String {
        let Self { rate_bps, rtt_s, .. } = *self;
        let rtt_us = (rtt_s * 1e6) as u64;
        // A queue holds at least two packets.
        let queue = (self.queue_bdp * rate_bps * rtt_s / 8.0).max(3000.0) as u64;
        let mut text = format!(
            "[[path]]\nname = \"p{number}\"\nrate = \"{} bit/s\"\nrtt = \"{rtt_us} us\"\nqueue = \"{queue} B\"\n",
            rate_bps as u64
        );
        text += &match self.loss {
            Loss::None => String::new(),
            Loss::Bernoulli(rate) => format!("loss = {rate:.7}\n"),
            Loss::Bursts { share, length } => {
                let r = 1.0 / length;
                let p = r * share / (1.0 - share);
                format!("loss = {{ model = \"gilbert-elliott\", p = {p:.9}, r = {r:.7} }}\n")
            }
            Loss::Round(rate) => format!("loss = {{ model = \"round\", rate = {rate:.7} }}\n"),
        };
        text += &match self.back {
            Return::Alike => String::new(),
            Return::Lossy(share) => format!("loss_down = {share:.5}\n"),
            Return::Thin { share, queue } | Return::Congested { rate: share, queue, .. } => {
                let down = self.down_bps(share);
                format!("rate_down = \"{down} bit/s\"\nqueue_down = \"{queue} B\"\n")
            }
        };
        if self.kind == Kind::LowOrbit {
            text += &trace::low_orbit(rate_bps, rtt_s, duration_s, rng);
        }
        text
    }

    /// The `[[cross]]` table of this path, if it has cross traffic.
    pub fn cross_text(&self, number: usize) -> String {
        let flow = |kind: &str, more: &str| {
            format!("[[cross]]\nkind = \"{kind}\"\non = \"p{number}\"\n{more}")
        };
        let share = |share: f64| format!("rate = \"{} bit/s\"\n", (share * self.rate_bps) as u64);
        let mut text = match self.cross {
            Cross::None => String::new(),
            Cross::Poisson(of) => flow("poisson", &share(of)),
            Cross::OnOff(of) => flow("on-off", &share(of)),
            Cross::Greedy(flows) => flow(
                "greedy",
                &format!("flows = {flows}\nrtt = \"{} us\"\n", (self.rtt_s * 1e6) as u64),
            ),
        };
        if let Return::Congested { rate, load, .. } = self.back {
            let load_bps = (self.down_bps(rate) as f64 * load) as u64;
            let more = format!("direction = \"down\"\nrate = \"{load_bps} bit/s\"\n");
            text += &flow("poisson", &more);
        }
        text
    }

    /// Rate of the return path, at least 64 kbit/s.
    fn down_bps(&self, share: f64) -> u64 {
        (self.rate_bps * share).max(64e3) as u64
    }
}

impl Loss {
    fn draw(rng: &mut Rng) -> Self {
        match rng.unit() {
            u if u < 0.5 => Self::None,
            u if u < 0.7 => Self::Bernoulli(log_uniform(rng, 1e-5, 2e-2)),
            u if u < 0.85 => {
                let share = log_uniform(rng, 1e-4, 2e-2);
                Self::Bursts { share, length: log_uniform(rng, 2.0, 20.0) }
            }
            _ => Self::Round(log_uniform(rng, 1e-5, 5e-3)),
        }
    }
}

impl Return {
    fn draw(rng: &mut Rng) -> Self {
        let queue = |rng: &mut Rng| log_uniform(rng, 4e3, 100e3) as u64;
        match rng.unit() {
            u if u < 0.6 => Self::Alike,
            u if u < 0.75 => Self::Thin { share: log_uniform(rng, 0.01, 0.5), queue: queue(rng) },
            u if u < 0.87 => Self::Lossy(log_uniform(rng, 1e-3, 0.1)),
            _ => {
                let rate = log_uniform(rng, 0.05, 1.0);
                Self::Congested { rate, load: 0.3 + 0.6 * rng.unit(), queue: queue(rng) }
            }
        }
    }
}

impl Cross {
    fn draw(rng: &mut Rng) -> Self {
        match rng.unit() {
            u if u < 0.75 => Self::None,
            u if u < 0.85 => Self::Poisson(0.1 + 0.5 * rng.unit()),
            u if u < 0.93 => Self::OnOff(0.1 + 0.7 * rng.unit()),
            _ => Self::Greedy(1 + rng.below(3)),
        }
    }
}
