//! Memory that ends: a single allocation that no input justifies fails, and with it the program.

use std::alloc::{GlobalAlloc, Layout, System};

/// Twice what a decompressed batch may take.
const ALLOCATION_BYTES_MAX: usize = 512 << 20;

/// The system's allocator, except for what is too large.
pub(crate) struct Bounded;

// SAFETY: what is given out and taken back is the system allocator's; null is how an allocator says that it has none.
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
