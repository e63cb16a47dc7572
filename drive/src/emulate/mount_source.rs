//! Source of this program's mounts, as the mount table shows it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The name by which mounts of this program are known in the mount table, before the backing file: see [`source`].
const SOURCE: &str = "cliffwatch-drive";

/// Whether a mount's source is one of this program's; earlier releases gave the name alone.
pub(super) fn is_drive_source(source: &OsStr) -> bool {
    let rest = source.as_bytes().strip_prefix(SOURCE.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b":"))
}

/// Such as `cliffwatch-drive:8:1:131`: the numbers of the backing file's device, and its inode. Who writes to that file
/// writes to the drive, so others have to know which one it is.
pub(super) fn source(backing: &std::fs::File) -> std::io::Result<String> {
    use std::os::unix::fs::MetadataExt;
    let status = backing.metadata()?;
    Ok(format!("{SOURCE}:{}:{}:{}", libc::major(status.dev()), libc::minor(status.dev()), status.ino()))
}
