//! Sizes and time spans with units: `16KiB`, `7.5TB`, `75us`, `36h`.

use serde::{Deserialize, Deserializer, de::Error as _};
use std::str::FromStr;
use std::time::Duration;

const SIZE_UNITS: [(&str, f64); 10] = [
    ("B", 1.0),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("", 1.0),
];

const SPAN_UNITS: [(&str, f64); 8] =
    [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0), ("", 1.0)];

/// A number of bytes, or of bytes per second: a plain number, or one with B, KB, MB, GB, TB, KiB, MiB, GiB or TiB.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct ByteSize(pub u64);

/// A span of time in seconds: a plain number of seconds, or one with ns, us, ms, s, min or h.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct TimeSpan(pub f64);

impl TimeSpan {
    /// Returns the span in nanoseconds, rounded.
    #[must_use]
    pub fn nanoseconds(self) -> u64 {
        (self.0 * 1e9).round() as u64
    }
}

/// Converts a duration to nanoseconds, at most `u64::MAX` (584 years).
pub fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Parses a number with an optional unit; `None` if it is invalid, negative or not finite.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim().trim_end_matches("/s");
    let unit_at = text.find(|c: char| c.is_alphabetic() && c != 'e' && c != 'E').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let scale = units.iter().find(|(name, _)| *name == unit)?.1;
    let value = number.trim().parse::<f64>().ok()? * scale;
    (value.is_finite() && value >= 0.0).then_some(value)
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = scaled(text, &SIZE_UNITS).filter(|&bytes| bytes < 1e18);
        let wrong =
            || format!("{text:?} is not a size: write a number of bytes, or one with a unit as in 16KiB or 7.5TB");
        bytes.map(|bytes| Self(bytes.round() as u64)).ok_or_else(wrong)
    }
}

impl FromStr for TimeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // `scaled` strips the "/s" of a rate, which is wrong on a time.
        let seconds =
            (!text.contains('/')).then(|| scaled(text, &SPAN_UNITS)).flatten().filter(|&seconds| seconds < 1e9);
        let wrong =
            || format!("{text:?} is not a time: write a number of seconds, or one with a unit as in 75us or 36h");
        seconds.map(Self).ok_or_else(wrong)
    }
}

/// Value in a profile: a number, or text with a unit.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(f64),
    Text(String),
}

fn parse_written<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err = String>,
    D: Deserializer<'de>,
{
    let text = match Written::deserialize(deserializer)? {
        Written::Number(number) => number.to_string(),
        Written::Text(text) => text,
    };
    text.parse().map_err(D::Error::custom)
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse_written(deserializer)
    }
}

impl<'de> Deserialize<'de> for TimeSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse_written(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read_with_and_without_units() {
        let size = |text: &str| text.parse::<ByteSize>().map(|size| size.0);
        assert_eq!(size("16KiB"), Ok(16384));
        assert_eq!(size("7.5TB"), Ok(7_500_000_000_000));
        assert_eq!(size("0.5 GB/s"), Ok(500_000_000));
        assert_eq!(size("4096"), Ok(4096));
        assert!(size("-1").is_err() && size("12parsec").is_err() && size("").is_err());
        assert_eq!("75us".parse::<TimeSpan>().map(TimeSpan::nanoseconds), Ok(75_000));
        assert_eq!("36h".parse(), Ok(TimeSpan(129_600.0)));
        assert!("1 day".parse::<TimeSpan>().is_err());
    }
}
