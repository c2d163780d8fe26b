//! Stationary distribution by elimination of states, without subtraction.
//!
//! Grassmann, Taksar and Heyman 1985: eliminate a state by replacing each pair of transitions through it by a
//! direct one. The result is the same chain, observed only in the remaining states. The method only adds,
//! multiplies and divides positive numbers, so every entry is accurate to nearly all digits, however small it
//! is.

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
    // Inflow of a state when it was eliminated, divided by the probability of leaving it.
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

/// Adds a transition and records its origin.
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

/// Restores the states in reverse order. The visits of each state are the inflow from those that remained after
/// it was eliminated.
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
