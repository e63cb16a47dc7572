//! Record keys: their distribution, and the partition of a key.

use crate::batch::write::key_text;
use crate::config::{KeyDistribution, KeySettings};

/// Xorshift64* pseudo-random generator; the same seed gives the same numbers.
#[derive(Debug, Clone)]
pub(crate) struct Xorshift(u64);

impl Xorshift {
    /// Generator with any seed, including 0.
    #[must_use]
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Next number of the sequence; never 0.
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Next number as a fraction, from 0 up to and without 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Random indexes drawn by weight.
#[derive(Debug, Clone)]
pub(crate) struct Weighted {
    /// Cumulative weights by index, normalized to 1.
    sums: Vec<f64>,
}

impl Weighted {
    /// Distribution with the weight of each index; at least one weight, all above 0.
    #[must_use]
    pub(crate) fn new(weights: impl Iterator<Item = f64>) -> Self {
        let mut sum = 0.0;
        let mut sums: Vec<f64> = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        sums.iter_mut().for_each(|share| *share /= sum);
        Self { sums }
    }

    /// Draws an index.
    pub(crate) fn draw(&self, random: &mut Xorshift) -> usize {
        if self.sums.len() == 1 {
            return 0;
        }
        let fraction = random.fraction();
        self.sums.partition_point(|share| *share <= fraction).min(self.sums.len() - 1)
    }
}

/// Generator of the keys of a producer's records.
pub(crate) struct Keys {
    settings: KeySettings,
    zipf: Option<Weighted>,
    next: u32,
}

impl Keys {
    /// Generator with these settings.
    #[must_use]
    pub(crate) fn new(settings: KeySettings) -> Self {
        let weight = |number: u32| (f64::from(number) + 1.0).powf(-settings.exponent);
        let zipf =
            (settings.distribution == KeyDistribution::Zipf).then(|| Weighted::new((0..settings.count).map(weight)));
        Self { settings, zipf, next: 0 }
    }

    /// True when records have keys.
    #[must_use]
    pub(crate) fn are_given(&self) -> bool {
        self.settings.distribution != KeyDistribution::None
    }

    /// Draws the next record's key; None for records without keys.
    pub(crate) fn draw(&mut self, random: &mut Xorshift) -> Option<u32> {
        match self.settings.distribution {
            KeyDistribution::None => None,
            KeyDistribution::RoundRobin => {
                let key = self.next;
                self.next = (key + 1) % self.settings.count;
                Some(key)
            }
            KeyDistribution::Random => Some((random.draw() % u64::from(self.settings.count)) as u32),
            KeyDistribution::Zipf => self.zipf.as_ref().map(|zipf| zipf.draw(random) as u32),
        }
    }
}

/// Partition of a key, out of `partitions` (at least 1), as Kafka's default partitioner assigns it (murmur2).
#[must_use]
pub(crate) fn partition_of(key: u32, partitions: usize) -> usize {
    (murmur2(&key_text(key)) & 0x7fff_ffff) as usize % partitions
}

/// Murmur2 hash as Kafka's Java client computes it for keys.
fn murmur2(bytes: &[u8]) -> u32 {
    const MULTIPLIER: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c_u32 ^ bytes.len() as u32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let mut mixed = u32::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        mixed ^= mixed >> 24;
        hash = hash.wrapping_mul(MULTIPLIER) ^ mixed.wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        for (index, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(distribution: KeyDistribution, count: u32, draws: usize) -> Vec<usize> {
        let mut keys = Keys::new(KeySettings { distribution, count, exponent: 1.0 });
        let mut random = Xorshift::new(1);
        let mut counts = vec![0; count as usize];
        for _ in 0..draws {
            counts[keys.draw(&mut random).unwrap() as usize] += 1;
        }
        counts
    }

    #[test]
    fn hashes_are_those_of_kafkas_own_client() {
        // From the client's own tests.
        for (text, hash) in [("21", -973_932_308), ("foobar", -790_332_482), ("a-little-bit-long-string", -985_981_536)]
        {
            assert_eq!(murmur2(text.as_bytes()).cast_signed(), hash);
        }
    }

    #[test]
    fn distributions_are_what_they_are_called() {
        assert_eq!(counts(KeyDistribution::RoundRobin, 4, 9), [3, 2, 2, 2]);
        let random = counts(KeyDistribution::Random, 10, 100_000);
        assert!(random.iter().all(|count| (9_500..10_500).contains(count)), "{random:?}");
        let zipf = counts(KeyDistribution::Zipf, 10, 100_000);
        // The harmonic number of 10 is 2.929: the first key has 1 / 2.929 of all.
        for (index, count) in zipf.iter().enumerate() {
            let expected = 100_000.0 / 2.929 / (index as f64 + 1.0);
            assert!((*count as f64 - expected).abs() < 0.08 * expected, "{zipf:?}");
        }
        assert_eq!(Keys::new(KeySettings::default()).draw(&mut Xorshift::new(1)), None);
    }
}
