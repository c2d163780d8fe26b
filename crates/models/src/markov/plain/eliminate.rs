//! Stationary distribution by elimination of states, without a subtraction.
//!
//! Grassmann, Taksar and Heyman 1985: take a state out and send whoever led there on to where it led. What remains is
//! the same chain, watched only while it is in the remaining states. Only positive numbers are
//! added, multiplied and divided, so that every entry is right to nearly all its digits, however
//! small it is.

use std::collections::BTreeMap;

use super::chain::Transition;

/// Shares of the visits of each state; they add up to 1.
pub(super) fn stationary(transitions: &[Vec<Transition>], order: &[usize]) -> Vec<f64> {
    let states = transitions.len();
    let mut rows: Vec<BTreeMap<usize, f64>> = vec![BTreeMap::new(); states];
    let mut sources: Vec<Vec<usize>> = vec![Vec::new(); states];
    for (from, row) in transitions.iter().enumerate() {
        for transition in row {
            lead(&mut rows[from], &mut sources, from, transition.to, transition.probability);
        }
    }
    let mut eliminated = vec![false; states];
    // What led into a state when it was taken out, divided by the chance to leave it.
    let mut inflows = Vec::with_capacity(states);
    let (&root, others) = order.split_last().expect("a chain has a state");
    for &state in others {
        eliminated[state] = true;
        let out = core::mem::take(&mut rows[state]);
        let out = out.into_iter().filter(|(to, _)| *to != state).collect::<Vec<_>>();
        let leaves: f64 = out.iter().map(|(_, chance)| chance).sum();
        let mut inflow = Vec::new();
        for source in core::mem::take(&mut sources[state]) {
            if eliminated[source] {
                continue;
            }
            let Some(chance) = rows[source].remove(&state) else { continue };
            for &(to, share) in &out {
                lead(&mut rows[source], &mut sources, source, to, chance * share / leaves);
            }
            inflow.push((source, chance / leaves));
        }
        inflows.push((state, inflow));
    }
    visits(states, root, &inflows)
}

/// Adds a way, and remembers where it comes from.
fn lead(
    row: &mut BTreeMap<usize, f64>,
    sources: &mut [Vec<usize>],
    from: usize,
    to: usize,
    probability: f64,
) {
    let entry = row.entry(to).or_insert_with(|| {
        sources[to].push(from);
        0.0
    });
    *entry += probability;
}

/// Puts the states back in the reverse order: each is visited as often as those that were still
/// there lead to it.
fn visits(states: usize, root: usize, inflows: &[(usize, Vec<(usize, f64)>)]) -> Vec<f64> {
    let mut visits = vec![0.0; states];
    visits[root] = 1.0;
    for (state, inflow) in inflows.iter().rev() {
        visits[*state] = inflow.iter().map(|(source, chance)| visits[*source] * chance).sum();
    }
    let all: f64 = visits.iter().sum();
    visits.iter().map(|visits| visits / all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_three_by_hand_in_every_order() {
        let way = |to, probability| Transition { to, probability, duration_s: 1.0 };
        // Balance: b = a / 2 + b / 4, c = a / 2 + b / 4 and a = b / 2 + c.
        let chain = [
            vec![way(1, 0.5), way(2, 0.5)],
            vec![way(1, 0.25), way(2, 0.25), way(0, 0.5)],
            vec![way(0, 1.0)],
        ];
        let expected = [3.0 / 7.0, 2.0 / 7.0, 2.0 / 7.0];
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
            for (found, expected) in stationary(&chain, &order).iter().zip(expected) {
                assert!((found - expected).abs() < 1e-15, "{order:?}: {found} for {expected}");
            }
        }
    }
}
