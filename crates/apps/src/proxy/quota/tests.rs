use proptest::prelude::*;

use super::*;

/// Takes single units until none is granted.
fn take_all(quota: &FairQuota<u8>, user: u8) -> Vec<Permit<u8>> {
    std::iter::from_fn(|| quota.try_one(&user)).collect()
}

#[test]
fn what_greedy_users_hold_never_includes_the_part_of_another_one() {
    let quota = FairQuota::new(4096, 1);
    quota.expect_users(4);
    // The reserved part, 512, and half of the free part of the shared 2048.
    let held: Vec<_> = (1..=3).map(|user| take_all(&quota, user)).collect();
    assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [1536, 1024, 768]);
    assert_eq!(take_all(&quota, 4).len(), 512 + 128);
    // Returned units do not go to users who hold more than their share.
    let [first, second, third] = held.try_into().unwrap();
    drop(third);
    assert!(quota.try_one(&1).is_none(), "user 1 already holds more than what is free");
    assert_eq!(take_all(&quota, 3).len(), 768);
    drop((first, second));
    quota.expect_users(0);
    assert_eq!(take_all(&quota, 1).len(), 2048, "nothing is reserved: half");
}

#[test]
fn a_weight_says_how_much_one_user_alone_may_hold() {
    for (total, weight, alone) in [(900, 8, 800), (1, 1, 1), (2, 1, 1), (100, 1, 50), (9, 2, 6)] {
        assert_eq!(take_all(&FairQuota::new(total, weight), 1).len(), alone, "{total} {weight}");
    }
    let bytes = FairQuota::new(256, 1);
    let held = bytes.try_up_to(&1, 64).unwrap();
    let more = bytes.try_up_to(&1, 1000).unwrap();
    assert_eq!((held.amount(), more.amount(), bytes.used()), (64, 64, 128));
    drop((held, more));
    assert_eq!(bytes.used(), 0);
}

#[tokio::test]
async fn a_total_may_change_while_units_are_held_and_waited_for() {
    let quota = FairQuota::new(8, 1);
    quota.expect_users(2);
    let held = take_all(&quota, 1);
    assert_eq!(held.len(), 4);
    quota.set_total(2);
    assert!(quota.try_one(&2).is_none(), "four of two are held");
    let waits = {
        let quota = quota.clone();
        tokio::spawn(async move { quota.one(&2).await })
    };
    tokio::task::yield_now().await;
    assert!(!waits.is_finished());
    quota.set_total(100);
    let limit = std::time::Duration::from_secs(5);
    let granted = tokio::time::timeout(limit, waits).await.expect("there is room now");
    assert_eq!(
        take_all(&quota, 1).len(),
        21 + 25,
        "the rest of its part, and half of the shared part"
    );
    drop((held, granted));
}

#[tokio::test]
async fn a_waiting_user_who_holds_less_is_served_first_and_who_gives_up_is_forgotten() {
    let quota = FairQuota::new(8, 1);
    let [held, mut second, third] = [1, 2, 3].map(|user| take_all(&quota, user));
    assert_eq!([held.len(), second.len(), third.len()], [4, 2, 1]);
    let wait = |user: u8| {
        let quota = quota.clone();
        tokio::spawn(async move { quota.one(&user).await })
    };
    let [given_up, first_waits, third_waits] = [1, 1, 3].map(wait);
    tokio::task::yield_now().await;
    given_up.abort();
    tokio::task::yield_now().await;
    second.clear();
    let limit = std::time::Duration::from_secs(5);
    let granted = tokio::time::timeout(limit, third_waits).await.expect("user 3 is served");
    assert!(!first_waits.is_finished(), "user 1 holds four of eight");
    drop((held, third, granted));
    let last = tokio::time::timeout(limit, first_waits).await.expect("served at last");
    drop(last);
    assert_eq!(quota.used(), 0);
    assert!(quota.shared.state.lock().users.is_empty(), "nobody is remembered");
}

proptest! {
    #[test]
    fn the_total_holds_and_everybody_can_have_the_reserved_part_at_any_time(
        operations in prop::collection::vec((0..6u8, any::<bool>(), 1..400u64), 1..300)
    ) {
        let quota = FairQuota::new(1200, 1);
        quota.expect_users(6);
        let mut held: Vec<Permit<u8>> = Vec::new();
        for (user, take, amount) in operations {
            if take {
                held.extend(quota.try_up_to(&user, amount));
            } else if !held.is_empty() {
                held.swap_remove(amount as usize % held.len());
            }
            let sum: u64 = held.iter().map(Permit::amount).sum();
            prop_assert_eq!(quota.used(), sum);
            prop_assert!(sum <= 1200);
            let parts: Vec<_> = (0..6u8)
                .map(|user| {
                    let own = held.iter().filter(|permit| permit.user == user);
                    let own: u64 = own.map(Permit::amount).sum();
                    let rest = 100u64.saturating_sub(own);
                    (rest, quota.try_up_to(&user, rest.max(1)).map_or(0, |permit| permit.amount()))
                })
                .collect();
            prop_assert!(parts.iter().all(|(rest, got)| got >= rest), "{parts:?}");
        }
    }
}
