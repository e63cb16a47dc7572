//! Random choice with given weights, in constant time.

use crate::random::Random;

/// Weighted random choice by Walker's alias method: each slot stands for one choice up to a threshold and for another
/// above it.
pub(super) struct Picker {
    slots: Vec<Slot>,
}

#[derive(Clone, Copy)]
struct Slot {
    /// Share of the slot that selects its own number, in 2^-32.
    threshold: u32,
    otherwise: u32,
}

impl Picker {
    /// Creates a picker in which choice `i` of `count` has the weight (i + 1)^-`skew`: 0 is even, 1 is Zipf's law.
    #[must_use]
    pub(super) fn zipf(count: u32, skew: f64) -> Self {
        let weights: Vec<f64> = (0..count).map(|i| (f64::from(i) + 1.0).powf(-skew)).collect();
        let scale = f64::from(count) / weights.iter().sum::<f64>();
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
        let mut slots: Vec<Slot> = (0..count).map(|i| Slot { threshold: u32::MAX, otherwise: i }).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..count as usize).partition(|&i| shares[i] < 1.0);
        while let (Some(&donor), Some(needy)) = (large.last(), small.pop()) {
            slots[needy] = Slot { threshold: (shares[needy] * 2f64.powi(32)) as u32, otherwise: donor as u32 };
            shares[donor] -= 1.0 - shares[needy];
            if shares[donor] < 1.0 {
                large.pop();
                small.push(donor);
            }
        }
        Self { slots }
    }

    /// Returns a random choice.
    #[inline]
    pub(super) fn pick(&self, random: &mut Random) -> u32 {
        let bits = random.bits();
        let slot = ((bits >> 32) * self.slots.len() as u64) >> 32;
        let Slot { threshold, otherwise } = self.slots[slot as usize];
        if bits as u32 <= threshold { slot as u32 } else { otherwise }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    #[test]
    fn picks_in_proportion_to_the_weights() {
        let picker = Picker::zipf(4, 1.0);
        let mut random = Random::new(1, Purpose::Workload);
        let mut seen = [0f64; 4];
        (0..100_000).for_each(|_| seen[picker.pick(&mut random) as usize] += 1e-5);
        for (seen, expected) in seen.iter().zip([0.48, 0.24, 0.16, 0.12]) {
            assert!((seen - expected).abs() < 0.01, "{seen} where {expected} was expected");
        }
    }
}
