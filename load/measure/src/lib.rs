//! What every load generator shares: due times, windows on the wall clock, latency histograms, records that can be verified.
