//! Losses: rate, interval, and pattern.
//!
//! Three models compete, each the previous one with one more parameter: independent losses (Bernoulli); losses in
//! bursts (Gilbert, "Capacity of a Burst-Noise Channel", BSTJ 39, 1960, with a bad state that loses every packet);
//! and bursts with gaps (the same with a bad state that loses a share of the packets, as in Elliott, BSTJ 42, 1963).
//! The parameters are those of maximum likelihood, for the last model by the EM algorithm (Baum et al., 1970). The
//! Bayesian information criterion (Schwarz, 1978) decides: a parameter must increase the log-likelihood by more than
//! ln(n) / 2.

/// Quantile of the normal distribution for a two-sided interval of 99 %.
const NORMAL_99: f64 = 2.576;
/// Number of losses below which a pattern cannot be distinguished from chance.
const PATTERN_MIN: usize = 8;
/// Widening of the interval below that number of losses, which is that of bursts of two: such losses do not show
/// whether they come in bursts. Yajnik et al. ("Measurement and Modelling of the Temporal Dependence in Packet Loss",
/// INFOCOM 1999) found most bursts to be of one or two.
const UNKNOWN_INFLATION: f64 = 3.0;
/// Iterations of EM; the likelihood has long converged.
const ITERATIONS: usize = 60;
/// Bounds of EM's probabilities: a probability of 0 or 1 would never change again.
const PROBABILITY_MIN: f64 = 1e-6;

/// A model of losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossModel {
    /// Independent losses.
    Bernoulli {
        /// Probability that a packet is lost.
        rate: f64,
    },
    /// A good state without losses and a bad state; one step per packet.
    GilbertElliott {
        /// Probability of a transition from good to bad.
        p: f64,
        /// Probability of a transition from bad to good.
        r: f64,
        /// Loss in the bad state.
        bad: f64,
    },
}

/// What losses show about a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossFit {
    /// Probes that were sent.
    pub sent: usize,
    /// Probes that were lost.
    pub lost: usize,
    /// Share of the lost probes.
    pub rate: f64,
    /// 99 % interval of the rate (Wilson, 1927), widened by the correlation of the losses.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Observed mean number of consecutive losses; 0 without losses.
    pub burst_mean: f64,
    /// The same of the model.
    pub model_burst_mean: f64,
    /// The best model.
    pub model: LossModel,
    /// How much larger its log-likelihood is than that of independent losses.
    pub log_likelihood_gain: f64,
}

impl LossModel {
    fn burst_mean(self) -> f64 {
        match self {
            Self::Bernoulli { rate } => 1.0 / (1.0 - rate).max(PROBABILITY_MIN),
            // A burst continues if the state stays bad and the next packet is lost too.
            Self::GilbertElliott { r, bad, .. } => {
                1.0 / (1.0 - (1.0 - r) * bad).max(PROBABILITY_MIN)
            }
        }
    }

    /// Factor between the variance of the loss rate and that of independent losses.
    fn inflation(self) -> f64 {
        let Self::GilbertElliott { p, r, bad } = self else { return 1.0 };
        let (share, decay) = (p / (p + r), 1.0 - p - r);
        let rate = share * bad;
        // The covariance of packets k apart is bad^2 share (1 - share) decay^k.
        let sum = bad * bad * share * (1.0 - share) * decay / (1.0 - decay);
        (1.0 + 2.0 * sum / (rate * (1.0 - rate))).max(1.0)
    }
}

/// Fits the losses of successive packets; true: lost. `None` without packets.
pub fn fit(lost: &[bool]) -> Option<LossFit> {
    let (sent, count) = (lost.len(), lost.iter().filter(|lost| **lost).count());
    if sent == 0 {
        return None;
    }
    let rate = count as f64 / sent as f64;
    let independent = LossModel::Bernoulli { rate };
    let base = bernoulli_likelihood(count, sent - count);
    let (mut model, mut gain) = (independent, 0.0);
    if count >= PATTERN_MIN && count < sent {
        let price = (sent as f64).ln() / 2.0;
        let (gilbert, likelihood) = gilbert(lost);
        if likelihood - base > price {
            (model, gain) = (gilbert, likelihood - base);
        }
        let (elliott, likelihood) = elliott(lost);
        if likelihood - base - price > gain.max(price) {
            (model, gain) = (elliott, likelihood - base);
        }
    }
    let inflation = if count < PATTERN_MIN { UNKNOWN_INFLATION } else { model.inflation() };
    let (low, high) = wilson(rate, sent as f64 / inflation);
    let bursts = lost
        .iter()
        .zip(std::iter::once(&false).chain(lost))
        .filter(|(now, before)| **now && !**before);
    let bursts = bursts.count();
    Some(LossFit {
        sent,
        lost: count,
        rate,
        low,
        high,
        burst_mean: if bursts > 0 { count as f64 / bursts as f64 } else { 0.0 },
        model_burst_mean: model.burst_mean(),
        model,
        log_likelihood_gain: gain,
    })
}

/// Wilson's interval for a share among `n` independent draws.
fn wilson(share: f64, n: f64) -> (f64, f64) {
    let z2 = NORMAL_99 * NORMAL_99;
    let centre = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = NORMAL_99 * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt() / (1.0 + z2 / n);
    let low = if share == 0.0 { 0.0 } else { (centre - half).max(0.0) };
    (low, (centre + half).min(1.0))
}

/// Log-likelihood of these numbers of successes and failures at their own rate.
fn bernoulli_likelihood(yes: usize, no: usize) -> f64 {
    let (yes, no) = (yes as f64, no as f64);
    let part = |n: f64| if n > 0.0 { n * (n / (yes + no)).ln() } else { 0.0 };
    part(yes) + part(no)
}

/// The model whose bad state loses every packet: a Markov chain, whose likelihood is maximal at the observed shares.
fn gilbert(lost: &[bool]) -> (LossModel, f64) {
    let mut steps = [[0usize; 2]; 2];
    for pair in lost.windows(2) {
        steps[usize::from(pair[0])][usize::from(pair[1])] += 1;
    }
    let share = |row: [usize; 2], to: usize| {
        let share = row[to] as f64 / (row[0] + row[1]).max(1) as f64;
        share.clamp(PROBABILITY_MIN, 1.0)
    };
    let model =
        LossModel::GilbertElliott { p: share(steps[0], 1), r: share(steps[1], 0), bad: 1.0 };
    let likelihood = bernoulli_likelihood(steps[0][0], steps[0][1])
        + bernoulli_likelihood(steps[1][0], steps[1][1]);
    (model, likelihood)
}

/// The model whose bad state loses a share of the packets, by EM.
fn elliott(lost: &[bool]) -> (LossModel, f64) {
    let rate = lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64;
    let (mut p, mut r, mut bad) = (rate.min(0.5) / 4.0, 0.1, 0.6);
    let mut likelihood = f64::NEG_INFINITY;
    for _ in 0..ITERATIONS {
        let step = expectation(lost, p, r, bad);
        likelihood = step.likelihood;
        let bound = |value: f64| value.clamp(PROBABILITY_MIN, 1.0 - PROBABILITY_MIN);
        (p, r, bad) = (bound(step.p), bound(step.r), bound(step.bad));
    }
    (LossModel::GilbertElliott { p, r, bad }, likelihood)
}

/// The result of one step of EM.
struct Expectation {
    p: f64,
    r: f64,
    bad: f64,
    likelihood: f64,
}

/// Forward-backward algorithm over the states good (0) and bad (1), scaled at each packet.
fn expectation(lost: &[bool], p: f64, r: f64, bad: f64) -> Expectation {
    let step = [[1.0 - p, p], [r, 1.0 - r]];
    let emit = |lost: bool| if lost { [0.0, bad] } else { [1.0, 1.0 - bad] };
    let mut forward: Vec<[f64; 2]> = Vec::with_capacity(lost.len());
    let mut scales = Vec::with_capacity(lost.len());
    let mut state = [r / (p + r), p / (p + r)];
    for (i, lost) in lost.iter().enumerate() {
        if i > 0 {
            let [good, worse] = state;
            state =
                [good * step[0][0] + worse * step[1][0], good * step[0][1] + worse * step[1][1]];
        }
        let seen = emit(*lost);
        state = [state[0] * seen[0], state[1] * seen[1]];
        let scale = (state[0] + state[1]).max(f64::MIN_POSITIVE);
        state = [state[0] / scale, state[1] / scale];
        forward.push(state);
        scales.push(scale);
    }
    // Expected numbers: of steps out of each state, of changes, and of lost packets in the bad state.
    let (mut out, mut changes, mut in_bad, mut lost_in_bad) = ([0.0; 2], [0.0; 2], 0.0, 0.0);
    let mut backward = [1.0, 1.0];
    for i in (0..lost.len()).rev() {
        let is_bad = forward[i][1] * backward[1];
        in_bad += is_bad;
        lost_in_bad += if lost[i] { is_bad } else { 0.0 };
        if i == 0 {
            break;
        }
        let seen = emit(lost[i]);
        let ahead = [seen[0] * backward[0] / scales[i], seen[1] * backward[1] / scales[i]];
        for from in 0..2 {
            let to: [f64; 2] = [0, 1].map(|to| forward[i - 1][from] * step[from][to] * ahead[to]);
            out[from] += to[0] + to[1];
            changes[from] += to[1 - from];
        }
        backward = [
            step[0][0] * ahead[0] + step[0][1] * ahead[1],
            step[1][0] * ahead[0] + step[1][1] * ahead[1],
        ];
    }
    let share = |part: f64, whole: f64| part / whole.max(f64::MIN_POSITIVE);
    Expectation {
        p: share(changes[0], out[0]),
        r: share(changes[1], out[1]),
        bad: share(lost_in_bad, in_bad),
        likelihood: scales.iter().map(|scale| scale.ln()).sum(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ropewalk_base::Seed;

    use super::*;

    /// Losses of the model, as the simulator draws them.
    fn draw(seed: u64, n: usize, p: f64, r: f64, bad: f64) -> Vec<bool> {
        let mut rng = Seed::root(seed).rng();
        let mut is_bad = false;
        (0..n)
            .map(|_| {
                is_bad ^= rng.chance(if is_bad { r } else { p });
                is_bad && rng.chance(bad)
            })
            .collect()
    }

    fn independent(seed: u64, n: usize, rate: f64) -> Vec<bool> {
        let mut rng = Seed::root(seed).rng();
        (0..n).map(|_| rng.chance(rate)).collect()
    }

    #[test]
    fn independent_losses_are_not_taken_for_bursts() {
        let found = (0..100).map(|seed| fit(&independent(seed, 4000, 0.01)).expect("packets"));
        let wrong = found.filter(|fit| !matches!(fit.model, LossModel::Bernoulli { .. })).count();
        // The criterion errs with probability P(chi2 > ln 4000) = 0.4 %.
        assert!(wrong <= 4, "{wrong} of 100");
    }

    #[test]
    fn bursts_are_found_with_their_parameters() {
        let fit = fit(&draw(3, 20_000, 0.01, 0.3, 1.0)).expect("packets");
        let LossModel::GilbertElliott { p, r, bad } = fit.model else { panic!("{fit:?}") };
        assert!((p / 0.01 - 1.0).abs() < 0.25 && (r / 0.3 - 1.0).abs() < 0.2, "{fit:?}");
        assert!(bad > 0.9 && fit.log_likelihood_gain > 50.0, "{fit:?}");
        assert!((fit.burst_mean / fit.model_burst_mean - 1.0).abs() < 0.1, "{fit:?}");
    }

    #[test]
    fn bursts_with_gaps_are_found() {
        let fit = fit(&draw(5, 40_000, 0.005, 0.05, 0.4)).expect("packets");
        let LossModel::GilbertElliott { p, r, bad } = fit.model else { panic!("{fit:?}") };
        assert!((bad - 0.4).abs() < 0.1, "{fit:?}");
        assert!((p / (p + r) - 0.0909).abs() < 0.03, "{fit:?}");
    }

    #[test]
    fn the_interval_contains_the_rate_of_the_model() {
        for (p, r, bad) in [(0.005, 0.25, 1.0), (0.01, 0.5, 1.0), (0.004, 0.2, 0.5)] {
            let truth = p / (p + r) * bad;
            let found = (0..100).map(|seed| fit(&draw(seed, 3000, p, r, bad)).expect("packets"));
            let misses = found.filter(|fit| !(fit.low..=fit.high).contains(&truth)).count();
            // 99 % nominal; the parameters of the widening are estimated too.
            assert!(misses <= 6, "{misses} of 100 for {p} {r} {bad}");
        }
        for rate in [0.0, 0.001, 0.02] {
            let found = (0..100).map(|seed| fit(&independent(seed, 2000, rate)).expect("packets"));
            let misses = found.filter(|fit| !(fit.low..=fit.high).contains(&rate)).count();
            assert!(misses <= 4, "{misses} of 100 for {rate}");
        }
    }

    #[test]
    fn without_a_loss_the_interval_says_how_rare_losses_are() {
        let fit = fit(&[false; 1000]).expect("packets");
        assert_eq!((fit.low, fit.lost, fit.burst_mean), (0.0, 0, 0.0));
        // Three times the bound for independent losses, z^2 / n.
        assert!(fit.high > 0.015 && fit.high < 0.025, "{fit:?}");
        assert_eq!(super::fit(&[]), None);
    }

    proptest! {
        #[test]
        fn any_losses_give_probabilities(lost in prop::collection::vec(any::<bool>(), 1..300)) {
            let fit = fit(&lost).expect("packets");
            prop_assert!(fit.low <= fit.rate && fit.rate <= fit.high && fit.high <= 1.0, "{fit:?}");
            if let LossModel::GilbertElliott { p, r, bad } = fit.model {
                for probability in [p, r, bad] {
                    prop_assert!((0.0..=1.0).contains(&probability), "{fit:?}");
                }
            }
        }
    }
}
