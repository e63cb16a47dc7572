//! Network round-trip time to every broker, from `TCP_INFO` of a fresh connection.
//!
//! The kernels measure it during the TCP handshake, so it includes no threads, memory or queues of the broker, and no
//! thread of this process.

use std::collections::VecDeque;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cliffwatch_measure::NANOSECONDS;
use cliffwatch_measure::recorder::Recorder;

use crate::names::Gauge;
use crate::session::Address;
use crate::shared::Shared;

const ROUNDS_APART: u64 = NANOSECONDS;
/// Samples per broker of which the median is taken, so that a single late packet does not count.
const KEPT: usize = 5;
const PATIENCE: Duration = Duration::from_millis(500);
const LOOK_NANOSECONDS: u64 = 200_000_000;

/// Probe of the network round-trip time; sets the gauge `round_trip_seconds` to the largest median of the brokers.
pub(crate) struct RoundTripProbe {
    /// Broker addresses.
    pub(crate) brokers: Vec<Address>,
    /// State shared by all threads of the run.
    pub(crate) shared: Arc<Shared>,
    /// Recorder of the gauge.
    pub(crate) recorder: Recorder,
    /// Set when the run is over, which ends the probe.
    pub(crate) ended: Arc<AtomicBool>,
}

impl RoundTripProbe {
    /// Probes every broker once a second until `ended` is set; blocks the thread.
    pub(crate) fn run(self) {
        let mut kept: Vec<VecDeque<f64>> = self.brokers.iter().map(|_| VecDeque::with_capacity(KEPT)).collect();
        let mut next = self.shared.clock.now();
        while !self.ended.load(Ordering::Acquire) {
            let now = self.shared.clock.now();
            if now < next {
                self.shared.clock.sleep_until(next.min(now + LOOK_NANOSECONDS));
                continue;
            }
            next = now + ROUNDS_APART;
            for (address, recent) in self.brokers.iter().zip(&mut kept) {
                if recent.len() == KEPT {
                    recent.pop_front();
                }
                match round_trip_seconds(address) {
                    Some(seconds) => recent.push_back(seconds),
                    // An unreachable broker has no round-trip time.
                    None => recent.clear(),
                }
            }
            let longest = kept.iter().filter_map(median).fold(f64::NAN, f64::max);
            self.recorder.lock().set(Gauge::RoundTrip as usize, longest);
        }
    }
}

fn median(recent: &VecDeque<f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = recent.iter().copied().collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// Round-trip time of a new TCP connection in seconds, as measured by the kernel (`tcpi_rtt`); None when the address
/// does not answer within 0.5 s.
fn round_trip_seconds(address: &Address) -> Option<f64> {
    let socket = (address.host.as_str(), address.port).to_socket_addrs().ok()?.next()?;
    let stream = TcpStream::connect_timeout(&socket, PATIENCE).ok()?;
    // SAFETY: all of the structure is numbers, for which zeros are values.
    let mut found: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut size = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).ok()?;
    // SAFETY: the descriptor is open for as long as `stream` lives; the kernel writes at most `size` bytes to `found`,
    // which has that many.
    let status = unsafe {
        libc::getsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut found).cast(), &raw mut size)
    };
    (status == 0).then(|| f64::from(found.tcpi_rtt) / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_round_trip_takes_as_long_as_the_network_though_it_is_not_accepted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address { host: "127.0.0.1".to_owned(), port: listener.local_addr().unwrap().port() };
        // No thread accepts it.
        let seconds = round_trip_seconds(&address).unwrap();
        assert!(seconds < PATIENCE.as_secs_f64(), "{seconds}");
        drop(listener);
        assert_eq!(round_trip_seconds(&address), None);
    }

    #[test]
    fn one_late_packet_of_five_does_not_count() {
        assert_eq!(median(&VecDeque::from([0.1, 9.0, 0.3, 0.2, 0.2])), Some(0.2));
        assert_eq!(median(&VecDeque::new()), None);
    }
}
