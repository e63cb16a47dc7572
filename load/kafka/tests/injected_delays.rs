//! What a broker takes its time for is told as it was: to within 1 % or 100 µs.

#[path = "null_broker/load.rs"]
mod load;
mod null_broker;

use std::sync::Arc;
use std::time::Duration;

use load::{Load, carry_out, quantile};

/// Nothing is answered from `from` until `from + stall` after the broker began.
fn stalled(from: Duration, stall: Duration) -> null_broker::Delay {
    Arc::new(move |since| if since < from { Duration::ZERO } else { (from + stall).saturating_sub(since) })
}

fn assert_close(told: Duration, injected: Duration, slack: Duration) {
    let allowed = injected.mul_f64(0.01).max(Duration::from_micros(100)) + slack;
    let difference = told.abs_diff(injected);
    assert!(difference <= allowed, "{injected:?} is told as {told:?}");
}

#[test]
fn a_constant_delay_is_told_as_it_was() {
    for milliseconds in [5, 200] {
        let injected = Duration::from_millis(milliseconds);
        let (broker, held) = null_broker::start(1, false, Arc::new(move |_| injected));
        let told = carry_out(broker, &Load { rate: 500.0, seconds: 2.0, consumes: false });
        // On processors that others use too, threads wait their turn: what is least disturbed shows what is told, and
        // the rest that nothing is cut off. The benchmark looks at all of it, where it is quiet.
        assert_close(told.publish(0.1), quantile(&held, 0.1), Duration::ZERO);
        for at in [0.001, 0.99, 0.999] {
            assert!(told.publish(at) >= injected - injected.mul_f64(0.001));
        }
    }
}

#[test]
fn a_stall_counts_for_everything_that_was_due_in_it() {
    let (from, stall) = (Duration::from_secs(3), Duration::from_secs(3));
    let (broker, _) = null_broker::start(1, false, stalled(from, stall));
    let told = carry_out(broker, &Load { rate: 1000.0, seconds: 8.0, consumes: false });
    assert_eq!(told.count(), 8000);
    let longest = told.publish(1.0);
    assert_close(longest, stall, Duration::from_millis(20));
    // Waits are spread evenly from nothing to all of it: of 8 s, 3 s stalled, so half of a stall is at 1 - 1.5 / 8.
    assert_close(told.publish(1.0 - 1.5 / 8.0), stall / 2, Duration::from_millis(30));
}
