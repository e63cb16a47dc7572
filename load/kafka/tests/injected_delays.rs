//! Latency accuracy: the reported latency is never below the broker's delay, and within 1 % or 100 µs, whichever is
//! more, of the delay plus the transfer time.

// A test may panic: that fails it.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use cliffwatch_kafka_testkit::load::{Load, Reported, execute, quantile};
use cliffwatch_kafka_testkit::null_broker::{self, HoldTimes};
use cliffwatch_kafka_testkit::reference_client;

/// Load on a broker with constant delay: requests per second, and duration in seconds.
const RATE: f64 = 500.0;
const SECONDS: f64 = 1.0;

/// Latencies that the client reports for a broker that delays each response by `injected`, and the broker's hold times.
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

    /// Serializes the tests, so that each load has the processors for itself.
    static ALONE: Mutex<()> = Mutex::new(());

    /// Undisturbed measurements whose median is taken; odd, so that there is a middle one.
    const MEASUREMENTS: usize = 3;
    /// Maximum number of measurements to get `MEASUREMENTS` undisturbed ones.
    const ATTEMPTS: usize = 5;
    /// Steal time above this share of processor time marks a measurement as disturbed by the hypervisor.
    const STOLEN_LIMIT: f64 = 0.01;

    /// Locks out the other tests and sets real-time priority (SCHED_FIFO) for this thread and those it starts, so that
    /// other processes hardly disturb the comparison; returns the lock and whether the priority was permitted.
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

    /// Total and steal time of all processors since boot, in ticks, from the first line of /proc/stat.
    fn processor_ticks() -> (u64, u64) {
        let text = std::fs::read_to_string("/proc/stat").unwrap();
        let ticks: Vec<u64> =
            text.lines().next().unwrap().split_whitespace().skip(1).map(|each| each.parse().unwrap()).collect();
        (ticks[..8].iter().sum(), ticks[7])
    }

    /// Median of the undisturbed measurements, so that a client that is wrong more often than not fails.
    ///
    /// A hypervisor takes processors away from threads of any priority: measurements with more than 1 % steal time are
    /// not counted. If too few are left, the smallest value is returned, and only a client that is always wrong fails.
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
        // Without real-time priority, a low quantile is the least disturbed. The tail depends on other processes: it is
        // tested below, by a stall longer than their disturbances, and on a quiet machine by the benchmark.
        let compared = if comes_first { 0.5 } else { 0.1 };
        for milliseconds in [0, 5, 200] {
            let injected = Duration::from_millis(milliseconds);
            // The time for two thread wake-ups and the loopback transfer varies with the machine's state and with the
            // sleep before: a client that does nothing else measures it right before each comparison.
            let difference = judged(|| {
                let way = way(injected, compared);
                (added(injected, compared) - way).abs()
            });
            assert!(difference <= allowed(injected).as_secs_f64(), "{injected:?} is reported {difference} s off");
        }
    }

    /// Latency of the reference client less the broker's hold time, in seconds: wake-ups and transfer.
    fn way(injected: Duration, compared: f64) -> f64 {
        let (broker, held) = null_broker::start(1, false, Arc::new(move |_| injected));
        let seen = Duration::from_nanos(reference_client::latency(broker, RATE, SECONDS).value_at_quantile(compared));
        seen.as_secs_f64() - quantile(&held, compared).as_secs_f64()
    }

    /// Latency that the client under test reports less the broker's hold time, in seconds.
    fn added(injected: Duration, compared: f64) -> f64 {
        let (reported, held) = reported_and_held(injected);
        reported.publish(compared).as_secs_f64() - quantile(&held, compared).as_secs_f64()
    }

    #[test]
    fn a_stall_counts_for_everything_that_was_due_in_it() {
        let (_alone, _) = come_first();
        let (from, stall) = (Duration::from_secs(3), Duration::from_secs(3));
        // Responses stall from 3 s to 6 s after the broker's start.
        let stalled = move |since| if since < from { Duration::ZERO } else { (from + stall).saturating_sub(since) };
        let (broker, held) = null_broker::start(1, false, Arc::new(stalled));
        let reported = execute(broker, &Load { rate: 1000.0, seconds: 8.0, consumes: false });
        assert_eq!(reported.count(), 8000);
        for at in [0.99, 0.999, 1.0] {
            assert_close(reported.publish(at), quantile(&held, at), allowed(stall));
        }
        assert_close(reported.publish(1.0), stall, allowed(stall));
        // Waits are spread evenly from 0 to the whole stall: 3 s of 8 s stalled, so half of it is at 1 - 1.5 / 8.
        assert_close(reported.publish(1.0 - 1.5 / 8.0), stall / 2, allowed(stall));
    }
}
