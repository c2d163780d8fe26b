//! Quality of a voice call by the E-model (ITU-T G.107, 2015), reduced to the effects of a network: delay and
//! losses. All other parameters have the values of its table 3.

/// Rating without any impairment, R.
const BEST: f64 = 93.2;
/// Delay of packetisation at the sender, s.
const PACKET_TIME: f64 = 0.02;
/// Delay above which a conversation suffers more, ms (Cole and Rosenbluth 2001, equation 4).
const KNEE_MS: f64 = 177.3;
/// Robustness of G.711 with packet loss concealment against random losses, % (ITU-T G.113, appendix I).
const LOSS_ROBUSTNESS: f64 = 25.1;

/// The mean opinion score (1 to 4.5) of a call. `lost`: share of packets that are lost or arrive too late to be
/// played; `delay`: time from entering the network until playout, s.
pub(super) fn mean_opinion_score(lost: f64, delay: f64) -> f64 {
    opinion(rating(lost, delay))
}

/// The rating R, 0 to 93.2.
fn rating(lost: f64, delay: f64) -> f64 {
    let delay_ms = (delay + PACKET_TIME) * 1e3;
    let by_delay = 0.024 * delay_ms + 0.11 * (delay_ms - KNEE_MS).max(0.0);
    // G.107, equation 7-29, with Ie = 0 and BurstR = 1.
    let percent = lost * 100.0;
    let by_loss = 95.0 * percent / (percent + LOSS_ROBUSTNESS);
    (BEST - by_delay - by_loss).clamp(0.0, 100.0)
}

/// The mean opinion score of a rating (G.107, annex B).
fn opinion(rating: f64) -> f64 {
    let curve = rating * (rating - 60.0) * (100.0 - rating) * 7e-6;
    (1.0 + 0.035 * rating + curve).clamp(1.0, 4.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratings_have_the_scores_of_table_b_1_of_the_recommendation() {
        for (rating, score) in
            [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)]
        {
            assert!((opinion(rating) - score).abs() < 0.01, "{rating}: {}", opinion(rating));
        }
    }

    #[test]
    fn delay_and_loss_lower_the_rating() {
        for (lost, delay, expected) in [
            (0.0, 0.0, 93.2 - 0.48),
            (0.0, 0.1, 93.2 - 2.88),
            (0.0, 0.3, 93.2 - 7.68 - 15.697),
            (0.01, 0.0, 93.2 - 0.48 - 95.0 / 26.1),
            (0.05, 0.1, 93.2 - 2.88 - 475.0 / 30.1),
            (1.0, 2.0, 0.0),
        ] {
            let found = rating(lost, delay);
            assert!((found - expected).abs() < 1e-6, "{lost} {delay}: {found}");
        }
        assert!(mean_opinion_score(1.0, 2.0) <= 1.0);
    }
}
