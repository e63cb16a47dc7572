//! Locks that outlive a thread that panicked while it held one.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock. One whose holder panicked is taken all the same: the numbers behind it may be off, but a block device must
/// go on answering.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
