//! Benchmark of the latency that the client adds, and of the accuracy with which it reports the broker's delay.
//!
//! `added NAME MEDIAN P99`: latency in microseconds at 100,000 records per second on the null broker, without linger.
//! `reported NAME SHARE HELD_SHARE`: difference between reported latency and the broker's hold time, as a share of the
//! tolerance (1 % or 100 µs, whichever is more); the worst of median, p99 and p99.9 for a constant delay, the maximum
//! for a stall.
//! `HELD_SHARE`: likewise for the hold time against the delay that was set; a busy broker thread is late.
//! Lines that begin with # show the details.

use std::sync::Arc;
use std::time::Duration;

use cliffwatch_kafka_testkit::load::{Load, Reported, execute, quantile};
use cliffwatch_kafka_testkit::null_broker;

const STALL: Duration = Duration::from_secs(3);

fn main() {
    let (broker, held) = null_broker::start(24, true, Arc::new(|_| Duration::ZERO));
    let reported = execute(broker, &Load { rate: 100_000.0, seconds: 10.0, consumes: true });
    let show = |name: &str, quantile: fn(&Reported, f64) -> Duration| {
        println!(
            "added {name} {:.1} {:.1}",
            microseconds(quantile(&reported, 0.5)),
            microseconds(quantile(&reported, 0.99))
        );
    };
    show("publish", Reported::publish);
    show("end_to_end", Reported::end_to_end);
    let [publish, end_to_end] = reported.quietest_second().map(microseconds);
    println!(
        "# the second with the least disturbance by others, p99: publish {publish:.1}, end_to_end {end_to_end:.1}"
    );
    let by_broker = [0.5, 0.99].map(|at| microseconds(quantile(&held, at)));
    println!("# the broker itself: {:.1} {:.1}", by_broker[0], by_broker[1]);

    for injected in [Duration::from_millis(5), Duration::from_millis(200)] {
        let (broker, held) = null_broker::start(1, false, Arc::new(move |_| injected));
        let reported = execute(broker, &Load { rate: 500.0, seconds: 5.0, consumes: false });
        let (mut worst, mut worst_held) = (0_f64, 0_f64);
        for at in [0.5, 0.99, 0.999] {
            let (reported, held) = (reported.publish(at), quantile(&held, at));
            println!("# {injected:?} at {at}: the broker took {held:?}, reported {reported:?}");
            worst = worst.max(share(reported, held));
            worst_held = worst_held.max(share(held, injected));
        }
        println!("reported {injected:?} {worst:.3} {worst_held:.3}");
    }
    let from = Duration::from_secs(3);
    let stalled = move |since| if since < from { Duration::ZERO } else { (from + STALL).saturating_sub(since) };
    let (broker, held) = null_broker::start(1, false, Arc::new(stalled));
    let reported = execute(broker, &Load { rate: 1000.0, seconds: 8.0, consumes: false });
    let held = quantile(&held, 1.0);
    println!("reported {STALL:?} {:.3} {:.3}", share(reported.publish(1.0), held), share(held, STALL));
}

fn share(reported: Duration, injected: Duration) -> f64 {
    reported.abs_diff(injected).as_secs_f64() / injected.mul_f64(0.01).max(Duration::from_micros(100)).as_secs_f64()
}

fn microseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
