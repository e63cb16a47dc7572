//! Source of this program's mounts, as shown in the mount table.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Prefix of the source of this program's mounts; [`source`] adds the backing file.
const SOURCE: &str = "cliffwatch-drive";

/// Whether a mount's source is one of this program's; earlier releases used the prefix alone.
pub(super) fn is_drive_source(source: &OsStr) -> bool {
    let rest = source.as_bytes().strip_prefix(SOURCE.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b":"))
}

/// Returns the source of a drive's mount, such as `cliffwatch-drive:8:1:131`: the numbers of the backing file's device,
/// and its inode. It identifies the file, because writing to that file writes to the drive.
pub(super) fn source(backing: &std::fs::File) -> std::io::Result<String> {
    use std::os::unix::fs::MetadataExt;
    let status = backing.metadata()?;
    Ok(format!("{SOURCE}:{}:{}:{}", libc::major(status.dev()), libc::minor(status.dev()), status.ino()))
}
