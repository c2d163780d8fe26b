//! `weighted`: deficit round robin by a configured share or by the measured rate, like bonding tools.

use super::{Decision, PathView, Reason, Schedule, SentReport, View};

/// Basis of a path's share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WeightSource {
    /// The configured weight. For links whose rates are known and steady.
    #[default]
    Configured,
    /// The measured delivery rate. A path without one counts as the mean of the others. The shares follow
    /// the links, but a path that gets little data can show only a low rate.
    MeasuredRate,
}

/// The sum of all shares.
const WHOLE: f64 = 65_536.0;
/// Maximum number of bytes owed to a full path, so that an old deficit does not become a burst.
const DEBT_LIMIT: i64 = 65_536 * 128 * 1024;

/// Account of one path.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Bytes owed to the path, in units of 1 / `WHOLE` bytes. Negative if it got more than its share.
    deficit: i64,
    /// Its share of the total, as of the last decision.
    share: i64,
}

/// Sends each chunk on the open path with the largest deficit.
#[derive(Clone, Debug, Default)]
pub struct Weighted {
    source: WeightSource,
    /// By path identifier.
    accounts: Vec<Account>,
}

impl Weighted {
    /// Creates the scheduler with shares from the given source.
    pub const fn new(source: WeightSource) -> Self {
        Self { source, accounts: Vec::new() }
    }

    fn weigh(&mut self, view: &View<'_>) {
        let highest = view.paths.last().map_or(0, |p| p.id.index() + 1);
        if self.accounts.len() < highest {
            self.accounts.resize(highest, Account::default());
        }
        for account in &mut self.accounts {
            account.share = 0;
        }
        let unmeasured = mean_rate(view);
        let usable = || view.paths.iter().filter(|p| p.usable);
        let total: f64 = usable().map(|p| self.weight(p, unmeasured)).sum();
        for path in usable() {
            // If the weights are all zero, or too large to add up, all shares are equal.
            let part = if total > 0.0 && total.is_finite() {
                self.weight(path, unmeasured) / total
            } else {
                1.0 / view.paths.len() as f64
            };
            self.accounts[path.id.index()].share = (part * WHOLE) as i64;
        }
    }

    fn weight(&self, path: &PathView, unmeasured: f64) -> f64 {
        let weight = match self.source {
            WeightSource::Configured => path.weight,
            WeightSource::MeasuredRate => path.rate.map_or(unmeasured, |r| r.as_bps() as f64),
        };
        if weight > 0.0 { weight } else { 0.0 }
    }
}

/// Mean of the measured rates in bit/s, or 1 without any, so that all paths are equal.
fn mean_rate(view: &View<'_>) -> f64 {
    let measured = || view.paths.iter().filter(|p| p.usable).filter_map(|p| p.rate);
    let count = measured().count();
    if count == 0 {
        return 1.0;
    }
    measured().map(|r| r.as_bps() as f64).sum::<f64>() / count as f64
}

impl Schedule for Weighted {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        self.weigh(view);
        let accounts = &self.accounts;
        // Equal deficits go to the larger share, then to the lower identifier.
        let owed = |p: &PathView| {
            let account = accounts[p.id.index()];
            (account.deficit, account.share, u8::MAX - p.id.0)
        };
        match view.open_for_head().max_by_key(|p| owed(p)) {
            Some(path) => Decision::send(path.id, 0, Reason::LargestDeficit),
            None => view.nobody(),
        }
    }

    fn on_sent(&mut self, sent: &SentReport) {
        let bytes = i64::try_from(sent.bytes).unwrap_or(i64::MAX).min(1 << 40);
        let mut given = 0;
        for account in &mut self.accounts {
            let part = bytes.saturating_mul(account.share);
            given += part;
            account.deficit = account.deficit.saturating_add(part);
        }
        if let Some(account) = self.accounts.get_mut(sent.path.index()) {
            account.deficit = account.deficit.saturating_sub(given);
        }
        for account in &mut self.accounts {
            account.deficit = account.deficit.clamp(-DEBT_LIMIT, DEBT_LIMIT);
        }
    }

    #[cfg(test)]
    fn claims(&self) -> super::conformance::Claims {
        super::conformance::Claims { takes_the_head: true, ..Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::{PathId, Rate};

    use super::super::Action;
    use super::super::conformance::{CHUNK, path_view, view};
    use super::*;

    /// Number of chunks that each path gets of `chunks` if all paths are always open.
    fn shares(scheduler: &mut Weighted, paths: &[PathView], chunks: u64) -> Vec<u64> {
        let mut count = vec![0; paths.len()];
        for _ in 0..chunks {
            let Action::Send { path, position } = scheduler.decide(&view(paths)).action else {
                panic!("an open path was left idle");
            };
            scheduler.on_sent(&SentReport { path, position, sequence: 0, bytes: CHUNK });
            count[paths.iter().position(|p| p.id == path).unwrap()] += 1;
        }
        count
    }

    fn weighing(weights: &[f64]) -> Vec<PathView> {
        let paths = weights.iter().enumerate();
        paths.map(|(i, &weight)| PathView { weight, ..path_view(i as u8) }).collect()
    }

    #[test]
    fn chunks_divide_as_the_weights_do() {
        for (weights, expected) in [
            (&[1.0, 1.0][..], &[500, 500][..]),
            (&[3.0, 1.0], &[750, 250]),
            (&[0.7, 0.2, 0.1], &[700, 200, 100]),
            (&[1e-9, 4e-9], &[200, 800]),
            (&[0.0, 0.0], &[500, 500]),
            (&[f64::NAN, -1.0, 2.0], &[0, 0, 1000]),
        ] {
            let got = shares(&mut Weighted::default(), &weighing(weights), 1000);
            let near = got.iter().zip(expected).all(|(g, e): (&u64, &u64)| g.abs_diff(*e) <= 2);
            assert!(near, "{weights:?} give {got:?}");
        }
    }

    #[test]
    fn measured_rates_count_and_an_unmeasured_path_is_given_the_mean() {
        let mut paths = weighing(&[1.0; 3]);
        paths[0].rate = Some(Rate::from_bps(3_000_000));
        paths[1].rate = Some(Rate::from_bps(1_000_000));
        let mut scheduler = Weighted::new(WeightSource::MeasuredRate);
        let got = shares(&mut scheduler, &paths, 600);
        let near = got.iter().zip([300, 100, 200]).all(|(g, e): (&u64, u64)| g.abs_diff(e) <= 2);
        assert!(near, "{got:?}");
    }

    #[test]
    fn a_path_that_was_full_makes_good_its_share_but_not_without_end() {
        let paths = weighing(&[1.0, 1.0]);
        let mut closed = paths.clone();
        closed[0].in_flight = closed[0].window;
        let mut scheduler = Weighted::default();
        assert_eq!(shares(&mut scheduler, &closed, 10_000), [0, 10_000], "nobody waits");
        // At most 128 KiB are owed, and the other path is owed as much.
        let got = shares(&mut scheduler, &paths, 1000);
        assert!((620..640).contains(&got[0]), "{got:?}");
    }

    #[test]
    fn a_lone_path_with_a_gap_below_it_is_served() {
        let paths = [PathView { id: PathId(5), ..path_view(0) }];
        assert_eq!(shares(&mut Weighted::default(), &paths, 3), [3]);
    }
}
