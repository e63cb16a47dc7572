//! Health of the emulated drive: metrics for Prometheus, and a health log in the form of NVMe SMART.

use super::drive::RequestKind;
use crate::ftl::Counters;
use crate::sync::lock;
use crate::timing::{LatencyRecorder, Percentiles};
use crate::units::nanoseconds;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Number of latency buckets, with upper bounds of 2^-15 s (31 µs) to 64 s.
const BUCKETS: usize = 22;
const FIRST_BOUND_SECONDS: f64 = 1.0 / 32768.0;

/// Counters of one kind of request.
#[derive(Default)]
struct RequestTally {
    requests: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
    nanoseconds: AtomicU64,
    /// Requests by the lowest bound not below their latency; the last bucket is for those above all bounds.
    buckets: [AtomicU64; BUCKETS + 1],
}

/// Request counters since the drive was mounted.
#[derive(Default)]
pub struct Requests {
    tallies: [RequestTally; 4],
    under_way: AtomicU64,
    /// Latencies in fine resolution, since they were last reset.
    latencies: Mutex<[LatencyRecorder; 4]>,
}

impl Requests {
    /// Counts a request that starts.
    pub fn begin(&self) {
        self.under_way.fetch_add(1, Relaxed);
    }

    /// Counts a request that succeeded, with the latency of the model and of injected faults.
    pub fn end(&self, operation: RequestKind, size_bytes: u64, latency: Duration) {
        let tally = &self.tallies[operation as usize];
        tally.requests.fetch_add(1, Relaxed);
        tally.bytes.fetch_add(size_bytes, Relaxed);
        tally.nanoseconds.fetch_add(nanoseconds(latency), Relaxed);
        let seconds = latency.as_secs_f64();
        let bucket = (0..BUCKETS).find(|&bucket| seconds <= bound_seconds(bucket)).unwrap_or(BUCKETS);
        tally.buckets[bucket].fetch_add(1, Relaxed);
        lock(&self.latencies)[operation as usize].record(nanoseconds(latency));
        self.under_way.fetch_sub(1, Relaxed);
    }

    /// Returns percentiles of the modelled latencies since the last reset, in seconds by operation, as JSON.
    #[must_use]
    pub fn latencies(&self) -> Value {
        let recorders = lock(&self.latencies).clone();
        let of = |recorder: LatencyRecorder| Percentiles::of(&recorder.into_histogram());
        let [read, write, trim, flush] = recorders.map(of);
        json!({"read": read, "write": write, "trim": trim, "flush": flush})
    }

    /// Resets the latencies of which percentiles are reported.
    pub fn forget_latencies(&self) {
        *lock(&self.latencies) = Default::default();
    }

    /// Counts a request that failed.
    pub fn fail(&self, operation: RequestKind) {
        self.tallies[operation as usize].errors.fetch_add(1, Relaxed);
        self.under_way.fetch_sub(1, Relaxed);
    }

    fn bytes(&self, operation: RequestKind) -> u64 {
        self.tallies[operation as usize].bytes.load(Relaxed)
    }

    fn requests(&self, operation: RequestKind) -> u64 {
        self.tallies[operation as usize].requests.load(Relaxed)
    }

    fn errors(&self) -> u64 {
        self.tallies.iter().map(|tally| tally.errors.load(Relaxed)).sum()
    }
}

fn bound_seconds(bucket: usize) -> f64 {
    FIRST_BOUND_SECONDS * (1u64 << bucket) as f64
}

/// Program/erase cycles that TLC NAND is commonly rated for, on which reported wear is based.
const RATED_CYCLES: f64 = 3000.0;
const IDLE_CELSIUS: f64 = 35.0;
const BUSY_CELSIUS: f64 = 70.0;

/// Temperature model: rises towards [`BUSY_CELSIUS`] with the load of the flash, with a time constant of a minute.
pub struct Thermometer {
    celsius: f64,
    measured_at: Duration,
    media_bytes: u64,
}

impl Thermometer {
    /// Creates the model of a drive at idle temperature that has programmed `media_bytes` so far.
    #[must_use]
    pub fn new(media_bytes: u64) -> Self {
        Self { celsius: IDLE_CELSIUS, measured_at: Duration::ZERO, media_bytes }
    }

    /// Updates and returns the temperature in °C; `now` is the time since the mount.
    pub fn measure(&mut self, now: Duration, media_bytes: u64, program_bytes_per_second: f64) -> f64 {
        let seconds = now.saturating_sub(self.measured_at).as_secs_f64();
        if seconds > 0.0 {
            let rate = media_bytes.saturating_sub(self.media_bytes) as f64 / seconds;
            let busy = (rate / program_bytes_per_second).min(1.0);
            let target = IDLE_CELSIUS + (BUSY_CELSIUS - IDLE_CELSIUS) * busy;
            self.celsius = target + (self.celsius - target) * (-seconds / 60.0).exp();
            (self.measured_at, self.media_bytes) = (now, media_bytes);
        }
        self.celsius
    }
}

/// Health of the drive at one moment.
pub struct Health<'a> {
    /// Label `device` of the metrics.
    pub device: &'a str,
    /// Label `serial` of the metrics.
    pub serial: &'a str,
    /// Page counts since the drive was new.
    pub counters: Counters,
    /// Bytes written by the host since the drive was new.
    pub host_bytes: u64,
    /// Bytes per page.
    pub page_bytes: u64,
    /// Share of superblocks that are clean (erased), 0 to 1.
    pub clean_ratio: f64,
    /// Share of physical pages that hold mapped data: written and not trimmed.
    pub mapped_ratio: f64,
    /// Superblocks of the drive.
    pub total_blocks: u32,
    /// Temperature in °C.
    pub temperature_celsius: f64,
    /// Whether the drive refuses writes.
    pub read_only: bool,
    /// Request counters since the mount.
    pub requests: &'a Requests,
}

impl Health<'_> {
    /// Returns the bytes programmed on the flash since the drive was new.
    #[must_use]
    pub fn media_bytes(&self) -> u64 {
        self.counters.media_pages() * self.page_bytes
    }

    /// Returns the used share of the rated life: mean erase cycles of a superblock / rated cycles.
    #[must_use]
    pub fn used_ratio(&self) -> f64 {
        self.counters.erased_blocks as f64 / f64::from(self.total_blocks) / RATED_CYCLES
    }

    /// Returns the metrics in the text format of Prometheus.
    #[must_use]
    pub fn exposition(&self) -> String {
        let mut out = String::with_capacity(8192);
        let labels = format!("device=\"{}\",serial=\"{}\"", escape(self.device), escape(self.serial));
        let page_bytes = self.page_bytes as f64;
        let plain: [(&str, &str, &str, f64); 14] = [
            ("host_written_bytes_total", "counter", "Bytes written by the host.", self.host_bytes as f64),
            ("media_written_bytes_total", "counter", "Bytes programmed on the flash.", self.media_bytes() as f64),
            ("media_counter_available", "gauge", "Whether the drive counts media bytes.", 1.0),
            (
                "cleaning_copied_bytes_total",
                "counter",
                "Bytes copied by garbage collection.",
                self.counters.copied_pages as f64 * page_bytes,
            ),
            (
                "padded_bytes_total",
                "counter",
                "Bytes programmed empty by flushes.",
                self.counters.padded_pages as f64 * page_bytes,
            ),
            (
                "trimmed_bytes_total",
                "counter",
                "Bytes made free by discards.",
                self.counters.trimmed_pages as f64 * page_bytes,
            ),
            ("erased_blocks_total", "counter", "Superblocks erased.", self.counters.erased_blocks as f64),
            ("free_blocks_ratio", "gauge", "Share of superblocks that are erased.", self.clean_ratio),
            (
                "mapped_ratio",
                "gauge",
                "Share of the flash that holds what the host wrote and did not discard.",
                self.mapped_ratio,
            ),
            ("temperature_celsius", "gauge", "Temperature of the drive.", self.temperature_celsius),
            ("spare_ratio", "gauge", "Spare blocks left.", 1.0),
            ("percentage_used_ratio", "gauge", "Rated life used.", self.used_ratio()),
            ("media_errors_total", "counter", "Requests that failed.", self.requests.errors() as f64),
            ("queue_depth", "gauge", "Requests under way.", self.requests.under_way.load(Relaxed) as f64),
        ];
        for (name, kind, help, value) in plain {
            let _ = write!(out, "# HELP cliffwatch_drive_{name} {help}\n# TYPE cliffwatch_drive_{name} {kind}\n");
            let _ = writeln!(out, "cliffwatch_drive_{name}{{{labels}}} {value}");
        }
        self.write_requests(&mut out, &labels);
        out
    }

    fn write_requests(&self, out: &mut String, labels: &str) {
        for (name, help) in
            [("requests_total", "Requests answered."), ("request_bytes_total", "Bytes of requests answered.")]
        {
            let _ = write!(out, "# HELP cliffwatch_drive_{name} {help}\n# TYPE cliffwatch_drive_{name} counter\n");
            for operation in RequestKind::ALL {
                let bytes = name == "request_bytes_total";
                let value = if bytes { self.requests.bytes(operation) } else { self.requests.requests(operation) };
                let _ = writeln!(out, "cliffwatch_drive_{name}{{{labels},operation=\"{}\"}} {value}", operation.name());
            }
        }
        let name = "cliffwatch_drive_request_latency_seconds";
        let _ = write!(out, "# HELP {name} Time that the model gave to requests.\n# TYPE {name} histogram\n");
        for operation in RequestKind::ALL {
            let tally = &self.requests.tallies[operation as usize];
            let labels = format!("{labels},operation=\"{}\"", operation.name());
            let mut below = 0;
            for (bucket, count) in tally.buckets.iter().enumerate() {
                below += count.load(Relaxed);
                let bound = if bucket == BUCKETS { "+Inf".into() } else { bound_seconds(bucket).to_string() };
                let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {below}");
            }
            let seconds = tally.nanoseconds.load(Relaxed) as f64 / 1e9;
            let _ = writeln!(out, "{name}_sum{{{labels}}} {seconds}\n{name}_count{{{labels}}} {below}");
        }
    }

    /// Returns the health log in the names and units of the NVMe SMART log: data units of 1000 x 512 bytes, temperature
    /// in kelvin.
    #[must_use]
    pub fn smart_log(&self) -> Value {
        let units = |bytes: u64| bytes.div_ceil(512_000);
        json!({
            "critical_warning": u8::from(self.read_only) << 3,
            "temperature": (self.temperature_celsius + 273.15).round() as u64,
            "avail_spare": 100,
            "spare_thresh": 10,
            "percent_used": (self.used_ratio() * 100.0).min(255.0) as u64,
            "data_units_read": units(self.requests.bytes(RequestKind::Read)),
            "data_units_written": units(self.host_bytes),
            "host_read_commands": self.requests.requests(RequestKind::Read),
            "host_write_commands": self.requests.requests(RequestKind::Write),
            "media_errors": self.requests.errors(),
            "physical_media_units_written_bytes": self.media_bytes(),
            "percent_free_blocks": (self.clean_ratio * 100.0).round() as u64,
        })
    }
}

fn escape(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exposition_counts_and_is_well_formed() {
        let requests = Requests::default();
        requests.begin();
        requests.end(RequestKind::Write, 16384, Duration::from_micros(50));
        let counters = Counters { host_pages: 10, copied_pages: 15, ..Counters::default() };
        let health = Health {
            device: "a\"b",
            serial: "1",
            counters,
            host_bytes: 160_000,
            page_bytes: 16384,
            clean_ratio: 0.5,
            mapped_ratio: 0.25,
            total_blocks: 64,
            temperature_celsius: 40.0,
            read_only: false,
            requests: &requests,
        };
        let text = health.exposition();
        assert!(
            text.contains("cliffwatch_drive_media_written_bytes_total{device=\"a\\\"b\",serial=\"1\"} 409600\n"),
            "{text}"
        );
        assert!(text.contains("operation=\"write\",le=\"0.00006103515625\"} 1\n"), "{text}");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert!(line.rsplit_once(' ').is_some_and(|(_, value)| value.parse::<f64>().is_ok()), "{line}");
        }
        assert_eq!(health.smart_log()["temperature"], 313);
        assert_eq!(health.smart_log()["data_units_written"], 1);
    }

    #[test]
    fn temperature_rises_with_work_and_falls_without() {
        let mut thermometer = Thermometer::new(0);
        let busy = thermometer.measure(Duration::from_secs(120), 120_000, 1000.0);
        assert!(busy > 60.0, "{busy}");
        let idle = thermometer.measure(Duration::from_secs(600), 120_000, 1000.0);
        assert!(idle < 36.0, "{idle}");
    }
}
