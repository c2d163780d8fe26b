//! Opportunistic retransmission and penalisation while a slow path keeps the window closed.

use ropewalk_base::Time;
use ropewalk_engine::Payload;
use ropewalk_engine::scheduler::BlockingMitigation;
use ropewalk_engine::sctp::Config;

use crate::driver::{FULL, LEFT, Pair, config, ms};

const SLOW: usize = 1;

/// The result for 400 chunks over 10 and 200 ms, through a buffer of 20 chunks.
struct Told {
    took: Time,
    unblocked: u64,
    penalised: u64,
    slow_window: u64,
}

fn transfer(mitigation: BlockingMitigation) -> Told {
    let settings = Config { mitigation, ..config(2, 20 * u64::from(FULL)) };
    let mut pair = Pair::up(&settings, &[10, 200]);
    let began = pair.now;
    let mut left = 400;
    while left > 0 || !pair.ends[LEFT].is_flushed() {
        while left > 0 && pair.ends[LEFT].send_room() > 0 {
            pair.queue(LEFT, 0, Payload::Length(FULL), false);
            left -= 1;
        }
        pair.drain(LEFT);
        pair.run_for(ms(5));
        assert!(pair.now.since(began) < ms(120_000), "it stalls with {mitigation:?}");
    }
    let stats = pair.ends[LEFT].sender_stats();
    Told {
        took: Time::ZERO + pair.now.since(began),
        unblocked: stats.unblocked,
        penalised: stats.penalised,
        slow_window: pair.view(LEFT, SLOW).cwnd,
    }
}

#[test]
fn each_helper_does_what_it_is_for_and_both_shorten_the_transfer() {
    let none = transfer(BlockingMitigation::default());
    assert_eq!((none.unblocked, none.penalised), (0, 0), "nobody asked for help");
    let resending = transfer(BlockingMitigation { opportunistic: true, penalise: false });
    assert!(resending.unblocked > 0 && resending.penalised == 0);
    assert!(resending.took < none.took, "{} against {}", resending.took, none.took);
    let penalising = transfer(BlockingMitigation { opportunistic: false, penalise: true });
    assert!(penalising.unblocked == 0 && penalising.penalised > 0);
    assert!(penalising.slow_window < none.slow_window, "{}", penalising.slow_window);
    let rounds = penalising.took.since(Time::ZERO).as_nanos() / ms(20).as_nanos();
    assert!(penalising.penalised <= rounds, "{} in {rounds}", penalising.penalised);
    let both = transfer(BlockingMitigation { opportunistic: true, penalise: true });
    assert!(both.unblocked > 0 && both.penalised > 0);
    assert!(both.took < none.took, "{} against {}", both.took, none.took);
}
