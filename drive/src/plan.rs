//! Plan of a run: settings with every default applied and every value checked.

use crate::error::{Error, Result};
use crate::ftl::{Geometry, Placement};
use crate::settings::{PlacementSetting, Policy, Precondition, Settings, SyncSetting, TimingSetting, WorkloadKind};
use crate::timing::{Arrivals, ByRate, Flash, FlashTimes, Host, Timed};
use crate::units::{ByteSize, TimeSpan};
use crate::workload::{HotCold, StreamSettings, Streams, Sync, Trace, TraceAction, Uniform, WithReads, Workload};

/// Checked plan of a run.
#[derive(Clone, Debug)]
pub struct DrivePlan {
    /// Geometry of the translation layer.
    pub shape: Geometry,
    /// Victim policy of garbage collection.
    pub policy: Policy,
    /// Timing and layout of the flash.
    pub times: FlashTimes,
    /// Whether the timing model is on.
    pub timed: bool,
    /// Bytes per page.
    pub page_bytes: u64,
    /// Pages that the workload uses: the capacity reported to the host without its unpartitioned share.
    pub volume_pages: u32,
    /// Whether the write buffer survives a loss of power, so that a flush need not wait for the flash.
    pub buffer_protected: bool,
    /// Preconditioning: writes before the run.
    pub precondition: Precondition,
    /// Bytes written by the host at which the run ends.
    pub end_bytes: Option<u64>,
    /// Simulated seconds at which the run ends, before scaling.
    pub end_seconds: Option<f64>,
    /// Length of an interval in simulated seconds; `None`: `interval_bytes` decides.
    pub interval_seconds: Option<f64>,
    /// Length of an interval in bytes written by the host.
    pub interval_bytes: u64,
    /// Scale: capacity is simulated at 1/`scale`, and the report multiplies simulated times by it.
    pub scale: u32,
    /// Target write rate of the host in bytes per second, `None` if unlimited.
    pub bytes_per_second: Option<f64>,
    /// Multiple of the baseline 99th percentile of write latency at which the cliff begins; see `--cliff-factor`.
    pub cliff_factor: f64,
    seed: u64,
    settings: Settings,
}

const INTERVALS: f64 = 120.0;
const DEFAULT_FILLS: f64 = 12.0;

impl DrivePlan {
    /// Applies the defaults to the settings and checks every value.
    ///
    /// # Errors
    /// [`Error::Setting`] that names the invalid setting and the remedy.
    pub fn new(settings: Settings) -> Result<Self> {
        let s = &settings;
        check_ranges(s)?;
        let page_bytes = s.page_size.unwrap_or(ByteSize(16 << 10)).0;
        let workload = s.workload.unwrap_or(WorkloadKind::Uniform);
        let has_files = matches!(workload, WorkloadKind::Streams | WorkloadKind::Trace);
        let timed = match s.timing.unwrap_or(TimingSetting::Auto) {
            TimingSetting::Auto => has_files,
            setting => setting == TimingSetting::On,
        };
        let scale = s.scale.unwrap_or(1);
        let shape = shape(s, page_bytes, scale)?;
        let times = times(s, &shape, page_bytes, timed)?;
        let volume_pages = (f64::from(shape.logical_pages) * (1.0 - s.unpartitioned.unwrap_or(0.0))) as u32;
        if volume_pages < 2 {
            return Err(Error::setting("unpartitioned", "leaves no volume to write to: use a smaller share"));
        }
        let knows_time = timed || s.rate.is_some();
        if !knows_time && (s.duration.is_some() || s.interval.is_some()) {
            let flag = if s.duration.is_some() { "duration" } else { "interval" };
            return Err(Error::setting(flag, "needs --timing on or a --rate, without which the run knows no time"));
        }
        let ends_by_itself = s.duration.is_some() || (workload == WorkloadKind::Trace && s.trace_repeat != Some(true));
        let fills = s.fills.or((!ends_by_itself).then_some(DEFAULT_FILLS));
        let end_seconds = s.duration.map(|duration| duration.0 / f64::from(scale));
        let end_pages = fills.map(|fills| ((fills * f64::from(volume_pages)) as u64).max(1));
        let interval = s.interval.map(|interval| interval.0 / f64::from(scale));
        let expected_pages = end_pages.unwrap_or(u64::from(volume_pages) * DEFAULT_FILLS as u64);
        Ok(Self {
            policy: s.policy.unwrap_or(Policy::Greedy),
            timed,
            page_bytes,
            volume_pages,
            buffer_protected: s.buffer_protected.unwrap_or(true),
            precondition: s.precondition.unwrap_or(if has_files {
                Precondition::None
            } else {
                Precondition::Sequential
            }),
            end_bytes: end_pages.map(|pages| pages * page_bytes),
            end_seconds,
            interval_seconds: interval.or(end_seconds.map(|seconds| seconds / INTERVALS)),
            interval_bytes: ((expected_pages as f64 / INTERVALS) as u64).max(1) * page_bytes,
            scale,
            bytes_per_second: s.rate.map(|rate| rate.0 as f64),
            cliff_factor: s.cliff_factor.unwrap_or(5.0),
            seed: s.seed.unwrap_or(1),
            shape,
            times,
            settings,
        })
    }

    /// Returns the settings given by the user.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the seed of all random numbers.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Builds the workload: the host's operations.
    ///
    /// # Errors
    /// [`Error::Setting`] where the volume is too small or sizes do not fit one another; [`Error::File`] and
    /// [`Error::Trace`] where a trace cannot be read or replayed.
    pub fn workload(&self) -> Result<Box<dyn Workload>> {
        let s = &self.settings;
        let (pages, page_bytes, seed) = (self.volume_pages, self.page_bytes, self.seed);
        let workload: Box<dyn Workload> = match s.workload.unwrap_or(WorkloadKind::Uniform) {
            WorkloadKind::Uniform => Box::new(Uniform::new(pages, seed)),
            WorkloadKind::HotCold => {
                let (space, writes) = (s.hot_space.unwrap_or(0.2), s.hot_writes.unwrap_or(0.8));
                Box::new(HotCold::new(pages, space, writes, seed))
            }
            WorkloadKind::Streams => Box::new(Streams::new(&self.streams(), seed)?),
            WorkloadKind::Trace => {
                let advice = "--workload trace needs the file to play";
                let path = s.trace.as_ref().ok_or_else(|| Error::setting("trace", advice))?;
                let action = s.trace_action.unwrap_or(TraceAction::Dispatched);
                Box::new(Trace::read(path, action, s.trace_repeat.unwrap_or(false), page_bytes, pages)?)
            }
        };
        match s.reads_per_write.unwrap_or(0.0) {
            0.0 => Ok(workload),
            reads => Ok(Box::new(WithReads::new(workload, pages, reads, seed))),
        }
    }

    fn streams(&self) -> StreamSettings {
        let s = &self.settings;
        let or = |size: Option<ByteSize>, default: u64| size.unwrap_or(ByteSize(default)).0;
        let (segment_bytes, extent_bytes) = (or(s.segment_size, 128 << 20), or(s.extent_size, 32 << 20));
        let (segment_bytes, extent_bytes) = self.scaled_files(segment_bytes, extent_bytes);
        StreamSettings {
            streams: s.streams.unwrap_or(288),
            write_bytes: or(s.write_size, 16 << 10),
            sync: match s.sync.unwrap_or(SyncSetting::EveryWrite) {
                SyncSetting::WriteBack => Sync::WriteBack { gathered_bytes: or(s.write_back_size, 1 << 20) },
                SyncSetting::EveryWrite => Sync::EveryWrite,
                SyncSetting::Every(ByteSize(bytes)) => Sync::Every { bytes },
            },
            segment_bytes,
            retention: s.retention.unwrap_or(0.75),
            trim: s.trim.unwrap_or(false),
            extent_bytes,
            disorder: s.disorder.unwrap_or(0.5),
            rate_skew: s.rate_skew.unwrap_or(0.0),
            page_bytes: self.page_bytes,
            volume_pages: self.volume_pages,
        }
    }

    /// Returns segment and extent sizes for a scaled drive: open segments must stay the same share of the volume, or
    /// space would be reused in a disorder that the whole drive does not have.
    fn scaled_files(&self, segment_bytes: u64, extent_bytes: u64) -> (u64, u64) {
        if self.scale == 1 || extent_bytes == 0 || !segment_bytes.is_multiple_of(extent_bytes) {
            return (segment_bytes, extent_bytes);
        }
        let scaled = (extent_bytes / u64::from(self.scale) / self.page_bytes).max(1) * self.page_bytes;
        (segment_bytes / extent_bytes * scaled, scaled)
    }

    /// Creates a clock without a timing model, which only counts bytes.
    #[must_use]
    pub fn by_rate(&self) -> ByRate {
        ByRate::new(self.bytes_per_second)
    }

    /// Creates the clock of the timing model.
    #[must_use]
    pub fn timed(&self) -> Timed {
        let arrivals = self.settings.arrivals.unwrap_or(Arrivals::Fixed);
        let host = Host::new(self.bytes_per_second, arrivals, self.settings.queue_depth.unwrap_or(32), self.seed);
        Timed::new(host, Flash::new(self.times.clone(), self.seed))
    }

    /// Returns the program bandwidth of dies and buses without other operations, in bytes per second.
    #[must_use]
    pub fn program_bytes_per_second(&self) -> f64 {
        let times = &self.times;
        let dies = f64::from(times.channels * times.dies_per_channel * times.planes);
        let by_dies = dies * self.page_bytes as f64 / (times.program_nanoseconds as f64 / 1e9);
        let by_buses = f64::from(times.channels) * self.page_bytes as f64 / (times.transfer_nanoseconds as f64 / 1e9);
        by_dies.min(by_buses)
    }

    /// Returns effective over-provisioning, intrinsic and unpartitioned together: data pages / volume pages - 1.
    #[must_use]
    pub fn effective_over_provisioning(&self) -> f64 {
        let data_pages = f64::from(self.shape.blocks) * f64::from(self.shape.pages_per_block);
        data_pages / f64::from(self.volume_pages) - 1.0
    }
}

/// Computes and checks the geometry of the translation layer.
fn shape(s: &Settings, page_bytes: u64, scale: u32) -> Result<Geometry> {
    let over_provisioning = s.over_provisioning.unwrap_or(0.07);
    let pages_per_block = s.pages_per_block.unwrap_or(if s.capacity.is_some() { 16_384 } else { 256 });
    let per_block = f64::from(pages_per_block.max(1));
    let least_bytes = 2 * page_bytes * u64::from(scale);
    if s.capacity.is_some_and(|capacity| capacity.0 < least_bytes) {
        // A page has at least 512 bytes.
        let advice = format!("too small: give at least {}KiB, which is two pages", least_bytes / 1024);
        return Err(Error::setting("capacity", advice));
    }
    let (logical_pages, blocks) = match s.capacity {
        Some(ByteSize(bytes)) => {
            let logical = bytes as f64 / page_bytes as f64 / f64::from(scale);
            (logical, (logical * (1.0 + over_provisioning) / per_block).ceil())
        }
        None => {
            let blocks = (f64::from(s.blocks.unwrap_or(4096)) / f64::from(scale)).floor();
            (blocks * per_block / (1.0 + over_provisioning), blocks)
        }
    };
    if logical_pages >= f64::from(u32::MAX) || blocks >= f64::from(u32::MAX) {
        let advice = "the drive has more than 2^32 pages: use a larger --page-size, or --scale";
        return Err(Error::setting(if s.capacity.is_some() { "capacity" } else { "blocks" }, advice));
    }
    let mut shape = Geometry {
        logical_pages: logical_pages as u32,
        blocks: blocks as u32,
        reserve_blocks: 0,
        pages_per_block,
        pages_per_program: s.planes.unwrap_or(2),
        frontiers: s.frontiers.unwrap_or(1),
        copies_apart: s.copies_apart.unwrap_or(false),
        placement: match s.placement.unwrap_or(PlacementSetting::Hint) {
            PlacementSetting::Hint => Placement::Hint,
            PlacementSetting::Recency => Placement::Recency,
        },
        pacing_pages: s.gc_pacing.unwrap_or(32),
        buffer_pages: (s.buffer_size.unwrap_or(ByteSize(16 << 20)).0 / page_bytes).clamp(1, 1 << 24) as u32,
    };
    shape.reserve_blocks = s.reserve_blocks.unwrap_or(shape.least_reserve());
    shape.check()?;
    Ok(shape)
}

/// Computes timing and layout of the flash; with timing on, superblocks must fit channels x dies x planes.
fn times(s: &Settings, shape: &Geometry, page_bytes: u64, timed: bool) -> Result<FlashTimes> {
    let (channels, dies) = (s.channels.unwrap_or(8), s.dies_per_channel.unwrap_or(4));
    let planes = s.planes.unwrap_or(2);
    for (flag, value) in [("channels", channels), ("dies-per-channel", dies), ("planes", planes)] {
        if !(1..=256).contains(&value) {
            return Err(Error::setting(flag, "must be between 1 and 256"));
        }
    }
    if !planes.is_power_of_two() {
        return Err(Error::setting("planes", "must be a power of two"));
    }
    if timed && !shape.pages_per_block.is_multiple_of(channels * dies * planes) {
        let advice = format!(
            "{} is not a multiple of channels x dies x planes = {}: change one of them",
            shape.pages_per_block,
            channels * dies * planes
        );
        return Err(Error::setting("pages-per-block", advice));
    }
    let or = |span: Option<TimeSpan>, default: f64| span.unwrap_or(TimeSpan(default)).nanoseconds();
    let bus_bytes_per_second = s.bus_rate.unwrap_or(ByteSize(1_200_000_000)).0.max(1) as f64;
    Ok(FlashTimes {
        channels,
        dies_per_channel: dies,
        planes,
        pages_per_block: shape.pages_per_block,
        frontiers: shape.open_blocks() as usize,
        read_nanoseconds: or(s.read_latency, 75e-6),
        program_nanoseconds: or(s.program_latency, 1e-3).max(1),
        program_spread: s.program_spread.unwrap_or(0.1),
        erase_nanoseconds: or(s.erase_latency, 3.8e-3),
        transfer_nanoseconds: ((page_bytes as f64 / bus_bytes_per_second * 1e9) as u64).max(1),
        suspend_nanoseconds: s.suspend_latency.map(TimeSpan::nanoseconds),
        buffer_pages: u64::from(shape.buffer_pages),
        overhead_nanoseconds: or(s.overhead_latency, 10e-6),
        host_bytes_per_second: s.host_bandwidth.unwrap_or(ByteSize(3_200_000_000)).0.max(1) as f64,
    })
}

/// Checks the ranges of shares, factors and the page size, and that other values are not 0.
fn check_ranges(s: &Settings) -> Result<()> {
    let checks: [(&'static str, Option<f64>, bool, &str); 11] = [
        ("over-provisioning", s.over_provisioning, within(s.over_provisioning, 0.0, 1.0), "a share in [0, 1)"),
        ("unpartitioned", s.unpartitioned, within(s.unpartitioned, 0.0, 1.0), "a share in [0, 1)"),
        ("hot-space", s.hot_space, within(s.hot_space, 1e-9, 1.0), "a share in (0, 1)"),
        ("hot-writes", s.hot_writes, within(s.hot_writes, 1e-9, 1.0), "a share in (0, 1)"),
        ("program-spread", s.program_spread, within(s.program_spread, 0.0, 1.0), "a share in [0, 1)"),
        ("retention", s.retention, within(s.retention, 1e-9, 1.0 + 1e-9), "a share in (0, 1]"),
        ("disorder", s.disorder, within(s.disorder, 0.0, 1.0 + 1e-9), "in [0, 1]"),
        ("rate-skew", s.rate_skew, within(s.rate_skew, 0.0, 10.0), "in [0, 10)"),
        ("reads-per-write", s.reads_per_write, within(s.reads_per_write, 0.0, 1000.0), "in [0, 1000)"),
        ("fills", s.fills, within(s.fills, 1e-9, 1e6), "above 0 and below a million"),
        ("cliff-factor", s.cliff_factor, within(s.cliff_factor, 1.0, 1e9), "1 or more"),
    ];
    for (flag, value, holds, range) in checks {
        if let (Some(value), false) = (value, holds) {
            return Err(Error::setting(flag, format!("{value} is out of range: give {range}")));
        }
    }
    if s.page_size.is_some_and(|size| !size.0.is_power_of_two() || !(512..=1 << 24).contains(&size.0)) {
        return Err(Error::setting("page-size", "must be a power of two from 512 bytes to 16MiB"));
    }
    let not_zero = [
        ("scale", s.scale == Some(0)),
        ("rate", s.rate == Some(ByteSize(0))),
        ("queue-depth", s.queue_depth == Some(0)),
        ("duration", s.duration == Some(TimeSpan(0.0))),
        ("interval", s.interval == Some(TimeSpan(0.0))),
        ("write-size", s.write_size == Some(ByteSize(0))),
    ];
    match not_zero.iter().find(|(_, is_zero)| *is_zero) {
        Some((flag, _)) => Err(Error::setting(flag, "must be more than 0")),
        None => Ok(()),
    }
}

/// Whether a value, if given, lies in [low, high).
fn within(value: Option<f64>, low: f64, high: f64) -> bool {
    value.is_none_or(|value| (low..high).contains(&value))
}
