//! Allocation of large tables on huge pages, and prefetching of their entries.
//!
//! The tables of a simulated drive are read at random and are far larger than the caches. The speed depends on address
//! translation (so the tables use huge pages) and on the number of cache misses in flight (so the code prefetches
//! entries).

/// Allocates a table of `length` copies of `fill`, on huge pages if the kernel provides them.
#[must_use]
pub(crate) fn table<T: Copy>(length: usize, fill: T) -> Vec<T> {
    let mut entries: Vec<T> = Vec::with_capacity(length);
    ask_for_huge_pages(entries.as_ptr().addr(), length * size_of::<T>());
    entries.resize(length, fill);
    entries
}

/// Returns the bytes of memory available for new tables (`MemAvailable`), `None` if the system does not report them.
#[must_use]
pub(crate) fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

/// Requests huge pages for the part of this address range that they can cover. A refusal costs only speed, so it is
/// ignored.
fn ask_for_huge_pages(start: usize, size_bytes: usize) {
    const HUGE_PAGE_BYTES: usize = 2 << 20;
    let first = start.next_multiple_of(HUGE_PAGE_BYTES);
    let end = (start + size_bytes) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if first >= end {
        return;
    }
    // SAFETY: the range lies inside one live allocation of the caller, and this advice changes neither the contents nor
    // the protection of memory: it only lets the kernel choose a larger page size.
    unsafe {
        libc::madvise(std::ptr::with_exposed_provenance_mut(first), end - first, libc::MADV_HUGEPAGE);
    }
}

/// Prefetches `entries[index]` into the cache. Does nothing if the index is out of range or the processor is not
/// x86-64.
#[inline(always)]
pub(crate) fn announce<T>(entries: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(entry) = entries.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address is that of a live entry, and a prefetch neither faults nor changes memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (entries, index);
}
