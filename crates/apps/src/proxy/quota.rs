//! Shares a resource fairly among several users.
//!
//! ```text
//!   total
//!   |<------- reserved ------->|<-------------- shared -------------->|
//!   | user 1 | user 2 | user 3 | user 1's | user 3's |      free      |
//! ```
//!
//! Half of the total is reserved in equal parts for the expected users, so that other users cannot take a user's
//! part. The rest is shared: each user may hold at most `weight` times the part of it that is still free (dynamic
//! thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998). When units are returned, they go
//! to the waiting user who holds the least.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A resource of limited amount, shared by users of type `K`.
#[derive(Debug)]
pub struct FairQuota<K: Ord + Clone> {
    shared: Arc<Shared<K>>,
}

impl<K: Ord + Clone> Clone for FairQuota<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

#[derive(Debug)]
struct Shared<K: Ord + Clone> {
    weight: u64,
    state: Mutex<State<K>>,
}

#[derive(Debug)]
struct State<K: Ord + Clone> {
    total: u64,
    used: u64,
    /// The part reserved for each of `expected` users.
    part: u64,
    expected: u64,
    /// How much of the reserved parts is in use.
    used_of_parts: u64,
    /// Users with units or requests.
    users: BTreeMap<K, Usage<K>>,
}

/// Units and requests of one user.
#[derive(Debug)]
struct Usage<K: Ord + Clone> {
    used: u64,
    waiting: VecDeque<oneshot::Sender<Permit<K>>>,
}

impl<K: Ord + Clone> Default for Usage<K> {
    fn default() -> Self {
        Self { used: 0, waiting: VecDeque::new() }
    }
}

/// A part of the resource. Dropping it returns the part.
#[derive(Debug)]
pub struct Permit<K: Ord + Clone> {
    shared: Arc<Shared<K>>,
    user: K,
    amount: u64,
}

impl<K: Ord + Clone> Permit<K> {
    /// The amount.
    pub fn amount(&self) -> u64 {
        self.amount
    }
}

impl<K: Ord + Clone> FairQuota<K> {
    /// A resource of this total amount. Nothing is reserved at first, so a single user may hold `weight` / (`weight`
    /// + 1) of it.
    ///
    /// # Panics
    /// If the total or the weight is 0.
    pub fn new(total: u64, weight: u64) -> Self {
        assert!(total > 0 && weight > 0, "a quota of nothing");
        let state = State {
            total,
            used: 0,
            part: 0,
            expected: 0,
            used_of_parts: 0,
            users: BTreeMap::new(),
        };
        Self { shared: Arc::new(Shared { weight, state: Mutex::new(state) }) }
    }

    /// Reserves half of the total, in equal parts, for this number of users.
    pub fn expect_users(&self, expected: u64) {
        self.shared.state.lock().reserve(expected);
    }

    /// Changes the total. Users keep what they hold, even if that is more than a lower total.
    ///
    /// # Panics
    /// If the total is 0.
    pub fn set_total(&self, total: u64) {
        assert!(total > 0, "a quota of nothing");
        let mut state = self.shared.state.lock();
        state.total = total;
        let expected = state.expected;
        state.reserve(expected);
        drop(state);
        self.shared.grant_waiting();
    }

    /// One unit, if the user may have it now.
    pub fn try_one(&self, user: &K) -> Option<Permit<K>> {
        self.try_up_to(user, 1)
    }

    /// As much as the user may have now, at most `wanted`. `None` if nothing.
    pub fn try_up_to(&self, user: &K, wanted: u64) -> Option<Permit<K>> {
        let mut state = self.shared.state.lock();
        let amount = wanted.min(self.shared.grantable(&state, user));
        (amount > 0).then(|| self.shared.grant(&mut state, user, amount))
    }

    /// Waits until the user may have one unit. A user's requests are served in order.
    pub async fn one(&self, user: &K) -> Permit<K> {
        let granted = {
            let mut state = self.shared.state.lock();
            let queued = state.users.get(user).is_some_and(|usage| !usage.waiting.is_empty());
            if !queued && self.shared.grantable(&state, user) > 0 {
                return self.shared.grant(&mut state, user, 1);
            }
            let (sender, granted) = oneshot::channel();
            state.users.entry(user.clone()).or_default().waiting.push_back(sender);
            granted
        };
        let _forget = WaiterGuard { shared: &self.shared, user };
        // The sender is dropped only after a grant, or by `WaiterGuard` for a closed request.
        match granted.await {
            Ok(permit) => permit,
            Err(_) => std::future::pending().await,
        }
    }

    /// The amount that a user holds.
    pub fn used_by(&self, user: &K) -> u64 {
        self.shared.state.lock().users.get(user).map_or(0, |usage| usage.used)
    }

    /// The amount in use.
    #[cfg(test)]
    pub fn used(&self) -> u64 {
        self.shared.state.lock().used
    }
}

/// Removes abandoned requests from the queue.
struct WaiterGuard<'a, K: Ord + Clone> {
    shared: &'a Arc<Shared<K>>,
    user: &'a K,
}

impl<K: Ord + Clone> Drop for WaiterGuard<'_, K> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        let Some(usage) = state.users.get_mut(self.user) else { return };
        usage.waiting.retain(|sender| !sender.is_closed());
        if usage.used == 0 && usage.waiting.is_empty() {
            state.users.remove(self.user);
        }
    }
}

impl<K: Ord + Clone> State<K> {
    /// Reserves half of the total, in equal parts, for this number of users.
    fn reserve(&mut self, expected: u64) {
        let part = (self.total / 2).checked_div(expected).unwrap_or(0);
        (self.expected, self.part) = (expected, part);
        self.used_of_parts = self.users.values().map(|usage| usage.used.min(part)).sum();
    }

    /// Changes the amount that a user holds, and the sums.
    fn change(&mut self, user: &K, change: impl FnOnce(u64) -> u64) {
        let usage = self.users.entry(user.clone()).or_default();
        let before = usage.used;
        usage.used = change(before);
        let after = usage.used;
        self.used = self.used - before + after;
        self.used_of_parts = self.used_of_parts - before.min(self.part) + after.min(self.part);
        if after == 0 && usage.waiting.is_empty() {
            self.users.remove(user);
        }
    }
}

impl<K: Ord + Clone> Shared<K> {
    /// The unused rest of the user's own part, plus the largest n of the shared rest with `shared in use by the user`
    /// + n <= weight x (free - n).
    fn grantable(&self, state: &State<K>, user: &K) -> u64 {
        let own = state.users.get(user).map_or(0, |usage| usage.used);
        let free = state.total.saturating_sub(state.used);
        let own_part = state.part.saturating_sub(own);
        let parts = (state.part * state.expected).saturating_sub(state.used_of_parts);
        let shared_free = free.saturating_sub(parts.max(own_part));
        let beyond = own.saturating_sub(state.part);
        let shared =
            shared_free.saturating_mul(self.weight).saturating_sub(beyond) / (self.weight + 1);
        // A user without units gets one whenever one is free, because the total may be small.
        let least = u64::from(own == 0);
        (own_part + shared).max(least).min(free)
    }

    fn grant(self: &Arc<Self>, state: &mut State<K>, user: &K, amount: u64) -> Permit<K> {
        state.change(user, |used| used + amount);
        assert!(state.used <= state.total, "{} of {} in use", state.used, state.total);
        Permit { shared: self.clone(), user: user.clone(), amount }
    }

    /// Grants units to waiting users while possible.
    fn grant_waiting(self: &Arc<Self>) {
        let next = || self.grant_next(&mut self.state.lock());
        while let Some((sender, permit)) = next() {
            // If the request was abandoned, dropping its permit releases the unit.
            drop(sender.send(permit));
        }
    }

    /// Grants one unit to the waiting user who holds the least, if that user may have one.
    fn grant_next(
        self: &Arc<Self>,
        state: &mut State<K>,
    ) -> Option<(oneshot::Sender<Permit<K>>, Permit<K>)> {
        let waiting = state.users.iter().filter(|(_, usage)| !usage.waiting.is_empty());
        let eligible = waiting.filter(|(user, _)| self.grantable(state, user) > 0);
        let user = eligible.min_by_key(|(_, usage)| usage.used)?.0.clone();
        let sender = state.users.get_mut(&user)?.waiting.pop_front()?;
        Some((sender, self.grant(state, &user, 1)))
    }
}

impl<K: Ord + Clone> Drop for Permit<K> {
    fn drop(&mut self) {
        self.shared.state.lock().change(&self.user, |used| used - self.amount);
        self.shared.grant_waiting();
    }
}

#[cfg(test)]
mod tests;
