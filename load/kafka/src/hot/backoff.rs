//! Exponential backoff of reconnects and retries.

/// Exponential backoff: doubles with every failure, up to a limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    /// Wait after the first failure, in nanoseconds.
    pub(crate) first_nanoseconds: u64,
    /// Maximum wait, in nanoseconds.
    pub(crate) max_nanoseconds: u64,
}

impl Backoff {
    /// Wait after `failures` consecutive failures, in nanoseconds.
    pub(crate) fn after(self, failures: u32) -> u64 {
        let doubled = 2_u64.saturating_pow(failures.saturating_sub(1));
        self.first_nanoseconds.saturating_mul(doubled).min(self.max_nanoseconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit() {
        let backoff = Backoff { first_nanoseconds: 100, max_nanoseconds: 1_000 };
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 200].map(|failures| backoff.after(failures)),
            [100, 100, 200, 400, 800, 1_000, 1_000]
        );
    }
}
