//! The time that a broker takes is reported as it was: never as less, and to within 1 % or 100 µs of it and the way to it.

// What a test cannot do fails it.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use cliffwatch_kafka_testkit::load::{Load, Reported, execute, quantile};
use cliffwatch_kafka_testkit::null_broker::{self, HoldTimes};
use cliffwatch_kafka_testkit::reference_client;

/// How often a second and for how long, in seconds, a broker of a constant delay is asked.
const RATE: f64 = 500.0;
const SECONDS: f64 = 1.0;

/// What the client reports of a broker that holds each request for so long, and for how long the broker did.
fn reported_and_held(injected: Duration) -> (Reported, HoldTimes) {
    let (broker, held) = null_broker::start(1, false, Arc::new(move |_| injected));
    let reported = execute(broker, &Load { rate: RATE, seconds: SECONDS, consumes: false });
    assert_eq!(reported.count(), 500);
    (reported, held)
}

#[test]
fn nothing_is_reported_as_less_than_the_broker_took() {
    for milliseconds in [5, 200] {
        let injected = Duration::from_millis(milliseconds);
        let (reported, held) = reported_and_held(injected);
        let (least, held) = (reported.publish(0.001), quantile(&held, 0.001));
        assert!(held >= injected, "the broker answered after {held:?} where {injected:?} were asked for");
        assert!(least >= injected - injected.mul_f64(0.001), "{injected:?} is reported as {least:?}");
    }
}

mod wall_clock {
    use super::*;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// One load at a time: each has the processors for itself.
    static ALONE: Mutex<()> = Mutex::new(());

    /// Odd, so that there is a median.
    const MEASUREMENTS: usize = 3;
    /// So many are made at most, until `MEASUREMENTS` of them are undisturbed.
    const ATTEMPTS: usize = 5;
    /// A measurement during which a hypervisor took more of the processors than this is of the hypervisor.
    const STOLEN_LIMIT: f64 = 0.01;

    /// Where it may, has this thread and those that it starts run before all others, so that what others do on the same
    /// processors is in little of what is compared. Also whether it may.
    fn come_first() -> (MutexGuard<'static, ()>, bool) {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let first = libc::sched_param { sched_priority: 1 };
        // SAFETY: the kernel reads `first`, which outlives the call.
        let status = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const first) };
        (alone, status == 0)
    }

    fn assert_close(reported: Duration, truth: Duration, allowed: Duration) {
        assert!(reported.abs_diff(truth) <= allowed, "{truth:?} is reported as {reported:?}");
    }

    fn allowed(injected: Duration) -> Duration {
        injected.mul_f64(0.01).max(Duration::from_micros(100))
    }

    /// All processors' time so far and how much of it a hypervisor took, in ticks: the first line of proc(5)'s stat.
    fn processor_ticks() -> (u64, u64) {
        let text = std::fs::read_to_string("/proc/stat").unwrap();
        let ticks: Vec<u64> =
            text.lines().next().unwrap().split_whitespace().skip(1).map(|each| each.parse().unwrap()).collect();
        (ticks[..8].iter().sum(), ticks[7])
    }

    /// The median of undisturbed measurements: a client that is wrong more often than not fails, however well it does once.
    ///
    /// A hypervisor takes processors away from threads of any priority. What was measured meanwhile does not count;
    /// where it never stops, the least difference is judged, and a client that is always wrong fails.
    fn judged(mut measure: impl FnMut() -> f64) -> f64 {
        let (mut undisturbed, mut all) = (Vec::new(), Vec::new());
        while undisturbed.len() < MEASUREMENTS && all.len() < ATTEMPTS {
            let (before, stolen_before) = processor_ticks();
            let measured = measure();
            let (after, stolen_after) = processor_ticks();
            all.push(measured);
            if (stolen_after - stolen_before) as f64 <= STOLEN_LIMIT * (after - before) as f64 {
                undisturbed.push(measured);
            }
        }
        undisturbed.sort_by(f64::total_cmp);
        if undisturbed.len() == MEASUREMENTS {
            undisturbed[MEASUREMENTS / 2]
        } else {
            all.into_iter().fold(f64::INFINITY, f64::min)
        }
    }

    #[test]
    fn a_constant_delay_is_reported_as_it_was() {
        let (_alone, comes_first) = come_first();
        // Where others come first, what is least disturbed shows what is reported. The tail is what others make of it: it is
        // proven below, by a stall that is longer than they can be, and where it is quiet by the benchmark.
        let compared = if comes_first { 0.5 } else { 0.1 };
        for milliseconds in [0, 5, 200] {
            let injected = Duration::from_millis(milliseconds);
            // What two threads take to wake up, and loopback to carry, is the machine's, and differs with its mood and with
            // for how long it slept: it is measured each time just before, by a client that does nothing else.
            let difference = judged(|| {
                let way = way(injected, compared);
                (added(injected, compared) - way).abs()
            });
            assert!(difference <= allowed(injected).as_secs_f64(), "{injected:?} is reported {difference} s off");
        }
    }

    /// Seconds from a record's due time until its answer that the broker did not hold it for, of a client that only waits.
    fn way(injected: Duration, compared: f64) -> f64 {
        let (broker, held) = null_broker::start(1, false, Arc::new(move |_| injected));
        let seen = Duration::from_nanos(reference_client::latency(broker, RATE, SECONDS).value_at_quantile(compared));
        seen.as_secs_f64() - quantile(&held, compared).as_secs_f64()
    }

    /// Seconds that are reported beyond those that the broker held a record for.
    fn added(injected: Duration, compared: f64) -> f64 {
        let (reported, held) = reported_and_held(injected);
        reported.publish(compared).as_secs_f64() - quantile(&held, compared).as_secs_f64()
    }

    #[test]
    fn a_stall_counts_for_everything_that_was_due_in_it() {
        let (_alone, _) = come_first();
        let (from, stall) = (Duration::from_secs(3), Duration::from_secs(3));
        // Nothing is answered from then on for so long.
        let stalled = move |since| if since < from { Duration::ZERO } else { (from + stall).saturating_sub(since) };
        let (broker, held) = null_broker::start(1, false, Arc::new(stalled));
        let reported = execute(broker, &Load { rate: 1000.0, seconds: 8.0, consumes: false });
        assert_eq!(reported.count(), 8000);
        for at in [0.99, 0.999, 1.0] {
            assert_close(reported.publish(at), quantile(&held, at), allowed(stall));
        }
        assert_close(reported.publish(1.0), stall, allowed(stall));
        // Waits are spread evenly from nothing to all of it: of 8 s, 3 s stalled, so half of a stall is at 1 - 1.5 / 8.
        assert_close(reported.publish(1.0 - 1.5 / 8.0), stall / 2, allowed(stall));
    }
}
