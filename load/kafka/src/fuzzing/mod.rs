//! Fuzz targets: broker responses, received record batches, and written batches.

mod answers;
mod batches;
mod written;

pub use answers::{answers, hot_answers};
pub use batches::{batches, compressed_batches};
pub use written::{sample_batches, written_batches};
