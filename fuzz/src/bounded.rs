//! Allocator with a size limit: a single allocation above it fails, and with it the program.

use std::alloc::{GlobalAlloc, Layout, System};

/// Largest single allocation in bytes: twice the limit of a decompressed batch.
const ALLOCATION_BYTES_MAX: usize = 512 << 20;

/// System allocator that refuses allocations above the limit.
pub(crate) struct Bounded;

// SAFETY: all memory is allocated and freed by the system allocator; null is how an allocator reports a failure.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > ALLOCATION_BYTES_MAX {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise about the layout is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() > ALLOCATION_BYTES_MAX {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise about the layout is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > ALLOCATION_BYTES_MAX {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises about memory, layout and size are passed on; the memory is the system's.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on; the memory is the system's.
        unsafe { System.dealloc(memory, layout) }
    }
}
