//! Large tables, and how to have the processor fetch their entries early.
//!
//! The tables of a simulated drive are read at random and are far larger than the caches. Two things decide how fast
//! that is: address translation (so the tables ask for huge pages) and how many misses are under way at once (so the
//! code announces the entries that it is about to need).

/// A table of `length` copies of `fill`, on huge pages where the kernel has them to give.
#[must_use]
pub(crate) fn table<T: Copy>(length: usize, fill: T) -> Vec<T> {
    let mut entries: Vec<T> = Vec::with_capacity(length);
    ask_for_huge_pages(entries.as_ptr().addr(), length * size_of::<T>());
    entries.resize(length, fill);
    entries
}

/// Bytes of memory that new tables can have without the system running out of it, `None` where it does not say.
#[must_use]
pub(crate) fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

/// Asks for huge pages for the part of this address range that whole huge pages can cover. A refusal costs speed only,
/// so it is not an error.
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

/// Announces that `entries[index]` is needed soon. Does nothing where the index is out of range or the processor has no
/// such instruction.
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
