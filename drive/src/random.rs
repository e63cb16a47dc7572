//! Random numbers with the same sequence on every machine, one stream per purpose.

/// Purpose of a stream of random numbers. Each purpose has its own stream, so drawing more numbers for one (such as an
/// enabled timing model) does not change another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Choice of the logical pages that are written, read and trimmed.
    Workload,
    /// Reuse of freed extents by the file system.
    Allocation,
    /// Durations of program operations, and request arrivals.
    Timing,
    /// Choice of the data that a power cut loses.
    Power,
}

/// The xoshiro256++ generator of Blackman and Vigna, seeded through splitmix64 as its authors advise.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    /// Creates the stream of `purpose` for a run with this `seed`.
    #[must_use]
    pub(crate) fn new(seed: u64, purpose: Purpose) -> Self {
        let mut seeder = seed ^ (purpose as u64 + 1).wrapping_mul(0xd1b5_4a32_d192_ed03);
        let state = [(); 4].map(|()| {
            seeder = seeder.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (seeder ^ (seeder >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        });
        Self { state }
    }

    /// Returns the next 64 random bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns a number below `limit`, 0 if `limit` is 0. No value is more than `limit` / 2^64 likelier than another.
    #[inline]
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u32
    }

    /// Returns a number in [0, 1).
    #[inline]
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns an exponentially distributed waiting time with this mean (a Poisson process of arrivals).
    #[inline]
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.fraction()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let first = |purpose| Random::new(7, purpose).bits();
        assert_ne!(first(Purpose::Workload), first(Purpose::Timing));
        assert_eq!(first(Purpose::Workload), first(Purpose::Workload));
    }

    #[test]
    fn below_reaches_every_value_evenly() {
        let mut random = Random::new(1, Purpose::Workload);
        let mut seen = [0u32; 10];
        (0..100_000).for_each(|_| seen[random.below(10) as usize] += 1);
        assert!(seen.iter().all(|&count| (9_500..10_500).contains(&count)), "{seen:?}");
    }
}
