//! Settings of a simulated drive and its workload, each a flag and a profile key of the same name.

use crate::error::{Error, Result};
use crate::timing::Arrivals;
use crate::units::{ByteSize, TimeSpan};
use crate::workload::TraceAction;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Victim policy of garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Fewest valid pages first.
    Greedy,
    /// Oldest first.
    Fifo,
    /// Largest (1 - u) * age / (1 + u) first, u being the valid share.
    CostBenefit,
}

/// Rule by which a host write is assigned to one of several frontiers (open superblocks).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementSetting {
    /// By the workload's stream: hot and cold apart, or streams modulo the number of frontiers.
    Hint,
    /// By the age of the page's last version; needs 2 frontiers.
    Recency,
}

/// Kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// Single pages, all equally likely.
    Uniform,
    /// Single pages, some likelier than others.
    HotCold,
    /// Append-only segment files with retention.
    Streams,
    /// A recorded block trace.
    Trace,
}

/// Preconditioning: writes before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precondition {
    /// Nothing: a new or wholly trimmed drive.
    None,
    /// The volume once, in order.
    Sequential,
    /// The volume once in order, then as many pages at random.
    Random,
}

/// Whether the timing model is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimingSetting {
    /// On for streams and trace, off for uniform and hot-cold.
    Auto,
    /// Latencies and time are reported.
    On,
    /// Only page counts are.
    Off,
}

/// Declares each setting once: as an optional flag and an optional key of a profile.
macro_rules! settings {
    ($($(#[$attribute:meta])* $field:ident: $kind:ty,)+) => {
        /// The settings that were given. What was not given has a default, which `--help` states.
        #[derive(Clone, Debug, Default, clap::Args, Deserialize, Serialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
        pub struct Settings {
            $($(#[$attribute])* #[arg(long)] #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$kind>,)+
        }

        impl Settings {
            /// Returns these settings, with those that are not set taken from `profile`.
            #[must_use]
            pub fn over(self, profile: Self) -> Self {
                Self { $($field: self.$field.or(profile.$field),)+ }
            }
        }
    };
}

settings! {
    /// Bytes that the drive shows to its host, as in 7.5TB [default: from --blocks]
    #[arg(help_heading = "Drive", conflicts_with = "blocks")] capacity: ByteSize,
    /// Superblocks that hold data; the reserve comes on top [default: 4096]
    #[arg(help_heading = "Drive")] blocks: u32,
    /// Pages of a superblock, the unit of cleaning: channels x dies x planes x pages of an erase block [default: 256 with
    /// --blocks; with --capacity 16384, that is 256 pages on each of 64 planes]
    #[arg(help_heading = "Drive")] pages_per_block: u32,
    /// Bytes of a page, the unit of mapping [default: 16KiB, the page of current TLC NAND]
    #[arg(help_heading = "Drive")] page_size: ByteSize,
    /// Intrinsic over-provisioning: physical pages (without the reserve) / pages shown to the host - 1, in [0, 1)
    /// [default: 0.07, the difference between GiB and GB; an assumption, makers rarely publish it]
    #[arg(help_heading = "Drive")] over_provisioning: f64,
    /// Share of the shown capacity that is never written because it is left unpartitioned, in [0, 1) [default: 0]
    #[arg(help_heading = "Drive")] unpartitioned: f64,
    /// Superblocks kept back so that cleaning can go on [default: the least that works, open superblocks + 3]
    #[arg(help_heading = "Drive")] reserve_blocks: u32,
    /// Which superblock is cleaned next [default: greedy]
    #[arg(help_heading = "Drive")] policy: Policy,
    /// Superblocks that host writes fill at the same time [default: 1]
    #[arg(help_heading = "Drive")] frontiers: u32,
    /// How host writes choose among several frontiers [default: hint]
    #[arg(help_heading = "Drive")] placement: PlacementSetting,
    /// Let copies made by cleaning fill a superblock of their own [default: false]
    #[arg(help_heading = "Drive", num_args = 0..=1, default_missing_value = "true")] copies_apart: bool,
    /// Pages that cleaning copies in one go before the host gets a turn; 0 cleans a superblock at once [default: 32; an
    /// assumption]
    #[arg(help_heading = "Drive")] gc_pacing: u32,
    /// Bytes of the write buffer [default: 16MiB; an assumption]
    #[arg(help_heading = "Drive")] buffer_size: ByteSize,
    /// Whether the buffer survives a loss of power, so that a flush need not wait [default: true, as on data-centre drives]
    #[arg(help_heading = "Drive", num_args = 0..=1, default_missing_value = "true")] buffer_protected: bool,
    /// Model the time that operations take [default: auto]
    #[arg(help_heading = "Timing")] timing: TimingSetting,
    /// Channels [default: 8]
    #[arg(help_heading = "Timing")] channels: u32,
    /// Dies on each channel [default: 4]
    #[arg(help_heading = "Timing")] dies_per_channel: u32,
    /// Planes of a die, programmed together; a power of two [default: 2]
    #[arg(help_heading = "Timing")] planes: u32,
    /// Time to read a page from the cells [default: 75us; TLC NAND takes 40 to 106us]
    #[arg(help_heading = "Timing")] read_latency: TimeSpan,
    /// Time to program one page on every plane of a die [default: 1ms; TLC NAND takes 0.56 to 2.2ms]
    #[arg(help_heading = "Timing")] program_latency: TimeSpan,
    /// By how much of itself the program time varies to either side, in [0, 1) [default: 0.1; an assumption]
    #[arg(help_heading = "Timing")] program_spread: f64,
    /// Time to erase a superblock [default: 3.8ms; TLC NAND takes 2 to 5ms]
    #[arg(help_heading = "Timing")] erase_latency: TimeSpan,
    /// Bytes per second on the bus of one channel [default: 1.2GB, ONFI 4.1]
    #[arg(help_heading = "Timing")] bus_rate: ByteSize,
    /// Longest wait of a read for a program or erase in its way, on drives that can suspend those [default: they cannot]
    #[arg(help_heading = "Timing")] suspend_latency: TimeSpan,
    /// What each request costs beside the flash [default: 10us; an assumption]
    #[arg(help_heading = "Timing")] overhead_latency: TimeSpan,
    /// Bytes per second between host and drive [default: 3.2GB, PCIe 3.0 with 4 lanes]
    #[arg(help_heading = "Timing")] host_bandwidth: ByteSize,
    /// What is done to the drive [default: uniform]
    #[arg(help_heading = "Workload")] workload: WorkloadKind,
    /// Share of the volume that is hot, in (0, 1) [default: 0.2]
    #[arg(help_heading = "Workload")] hot_space: f64,
    /// Share of the writes that go there, in (0, 1) [default: 0.8]
    #[arg(help_heading = "Workload")] hot_writes: f64,
    /// Segment files written at the same time [default: 288, the partitions of the field report in docs/drive.md]
    #[arg(help_heading = "Workload")] streams: u32,
    /// Bytes of one append; a multiple or a divisor of the page [default: 16KiB, the append chunk of Redpanda]
    #[arg(help_heading = "Workload")] write_size: ByteSize,
    /// When appends are flushed: every-write, write-back (never; the system gathers --write-back-size per file), or a
    /// number of bytes per file [default: every-write]
    #[arg(help_heading = "Workload")] sync: SyncSetting,
    /// Bytes per file that the operating system gathers with --sync write-back [default: 1MiB; an assumption]
    #[arg(help_heading = "Workload")] write_back_size: ByteSize,
    /// Bytes at which a segment is closed [default: 128MiB, the default of Redpanda]
    #[arg(help_heading = "Workload")] segment_size: ByteSize,
    /// Share of the volume that segments may hold before the oldest are deleted, in (0, 1] [default: 0.75]
    #[arg(help_heading = "Workload")] retention: f64,
    /// Discard the blocks of deleted segments on the drive (TRIM) [default: false]
    #[arg(help_heading = "Workload", num_args = 0..=1, default_missing_value = "true")] trim: bool,
    /// Bytes that the file system gives a file at a time [default: 32MiB, the preallocation step of Redpanda; a fragmented
    /// file system gives less]
    #[arg(help_heading = "Workload")] extent_size: ByteSize,
    /// How disorderly freed extents are used again: 0 in the order in which they were freed, 1 at random [default: 0.5;
    /// an assumption that decides the result: measure it, or try several]
    #[arg(help_heading = "Workload")] disorder: f64,
    /// Stream i is written at a rate of (i + 1)^-skew [default: 0, all alike]
    #[arg(help_heading = "Workload")] rate_skew: f64,
    /// A recorded trace: CSV with the header seconds,operation,offset_bytes,size_bytes, or the text of blkparse
    #[arg(help_heading = "Workload", value_name = "FILE")] trace: PathBuf,
    /// Which lines of blkparse's text are played [default: dispatched]
    #[arg(help_heading = "Workload")] trace_action: TraceAction,
    /// Play the trace again and again until --fills or --duration ends the run [default: false]
    #[arg(help_heading = "Workload", num_args = 0..=1, default_missing_value = "true")] trace_repeat: bool,
    /// Reads of one random page for each write [default: 0]
    #[arg(help_heading = "Workload")] reads_per_write: f64,
    /// Bytes per second that the host writes at while the drive keeps up [default: as fast as the drive takes them]
    #[arg(help_heading = "Workload")] rate: ByteSize,
    /// Requests under way at the same time [default: 32]
    #[arg(help_heading = "Workload")] queue_depth: u32,
    /// How requests come in time [default: fixed]
    #[arg(help_heading = "Workload")] arrivals: Arrivals,
    /// What was written before the run [default: sequential for uniform and hot-cold, none for streams and trace]
    #[arg(help_heading = "Run")] precondition: Precondition,
    /// End after writing the volume this many times [default: 12, unless --duration is given]
    #[arg(help_heading = "Run")] fills: f64,
    /// End after this time; needs --timing on or a --rate
    #[arg(help_heading = "Run")] duration: TimeSpan,
    /// Length of one reporting interval [default: a 120th of the run]; needs --timing on or a --rate
    #[arg(help_heading = "Run")] interval: TimeSpan,
    /// Simulate a drive of 1/N of the capacity, so that each of its hours stands for N: segments and extents shrink
    /// alike, times are reported as of the whole drive, latencies as they are [default: 1]
    #[arg(help_heading = "Run")] scale: u32,
    /// Where all random numbers come from [default: 1]
    #[arg(help_heading = "Run")] seed: u64,
    /// The cliff is where the 99th percentile of write latency stays at this many times its baseline [default: 5]
    #[arg(help_heading = "Run")] cliff_factor: f64,
}

/// Flush setting of appends, as written in a flag or profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SyncSetting {
    /// `write-back`
    WriteBack,
    /// `every-write`
    EveryWrite,
    /// A number of bytes.
    Every(ByteSize),
}

impl std::str::FromStr for SyncSetting {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "write-back" => Ok(Self::WriteBack),
            "every-write" => Ok(Self::EveryWrite),
            size => {
                size.parse().map(Self::Every).map_err(|_| format!("{text:?}: use write-back, every-write or a size"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for SyncSetting {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for SyncSetting {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::WriteBack => serializer.serialize_str("write-back"),
            Self::EveryWrite => serializer.serialize_str("every-write"),
            Self::Every(ByteSize(bytes)) => serializer.serialize_str(&bytes.to_string()),
        }
    }
}

impl Settings {
    /// Reads a profile: YAML with the flags' names as keys.
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be read, [`Error::Profile`] if it has an unknown key or a value of the wrong kind.
    pub fn read(path: &Path) -> Result<Self> {
        Self::parse(&std::fs::read_to_string(path).map_err(Error::file(path))?, path)
    }

    /// Parses the profile `text`; `path` is its file, for error messages.
    ///
    /// # Errors
    /// As [`Settings::read`].
    pub(crate) fn parse(text: &str, path: &Path) -> Result<Self> {
        serde_yaml_ng::from_str(text)
            .map_err(|error| Error::Profile { path: path.into(), reason: without_list(&error.to_string()) })
    }
}

/// Returns a parser message without its list of all valid keys.
fn without_list(said: &str) -> String {
    match said.split_once(", expected one of") {
        Some((fault, list)) => {
            let place = list.rfind(" at line").map_or("", |start| &list[start..]);
            format!("{fault}{place}")
        }
        None => said.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_a_report_are_a_profile() {
        for sync in ["write-back", "every-write", "1MiB"] {
            let profile = format!("capacity: 64MB\nsync: {sync}\nduration: 36h\nrate-skew: 0.5\n");
            let settings = Settings::parse(&profile, Path::new("profile")).unwrap();
            let written = serde_json::to_string(&settings).unwrap();
            let again = Settings::parse(&written, Path::new("report")).unwrap();
            assert_eq!((again.sync, again.capacity), (settings.sync, settings.capacity), "{written}");
        }
    }
}
