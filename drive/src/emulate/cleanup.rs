//! Finds and removes what a killed drive left: its dead mount, loop devices on its file, and file systems on those.

use super::mount::SOURCE;
use crate::error::{Error, Result};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What was found and removed.
#[derive(Debug, Default, serde::Serialize)]
pub struct Removed {
    /// Mounts of drives whose process is gone.
    pub drives: Vec<PathBuf>,
    /// Loop devices that were attached to them.
    pub loop_devices: Vec<PathBuf>,
    /// Mounts of file systems on those.
    pub filesystems: Vec<PathBuf>,
}

/// Detaches a loop device from its file; from the kernel's `loop.h`.
const LOOP_CLR_FD: libc::Ioctl = 0x4c01;

/// Removes everything that belongs to drives whose process is gone. What belongs to a living drive is not touched.
///
/// # Errors
/// [`Error::System`] for the first thing that cannot be removed.
pub fn remove() -> Result<Removed> {
    let mounts = mounts()?;
    let mut removed = Removed::default();
    let dead = mounts.iter().filter(|(source, point)| source.as_os_str() == SOURCE && is_dead(point));
    for (_, directory) in dead {
        for device in loop_devices_on(directory) {
            for (_, point) in mounts.iter().filter(|(source, _)| *source == device) {
                unmount(point, true).map_err(refused("unmounting", point))?;
                removed.filesystems.push(point.clone());
            }
            detach(&device).map_err(refused("detaching", &device))?;
            removed.loop_devices.push(device);
        }
        unmount(directory, true).map_err(refused("unmounting", directory))?;
        removed.drives.push(directory.clone());
    }
    Ok(removed)
}

fn refused(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let what = format!("{what} {}", path.display());
    move |source| Error::System { what, source, advice: "run as root, after ending what still uses it" }
}

/// Unmounts; `lazily` even what is in use, which goes away with its last user.
///
/// # Errors
/// The system's.
pub fn unmount(directory: &Path, lazily: bool) -> std::io::Result<()> {
    let path = CString::new(directory.as_os_str().as_bytes())?;
    // SAFETY: the path is a string that lives through the call.
    match unsafe { libc::umount2(path.as_ptr(), if lazily { libc::MNT_DETACH } else { 0 }) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Source and mount point of every mount.
fn mounts() -> Result<Vec<(PathBuf, PathBuf)>> {
    let table = "/proc/self/mountinfo";
    let text = std::fs::read_to_string(table).map_err(Error::file(table))?;
    Ok(text.lines().filter_map(parse_mount).collect())
}

/// A line such as `36 35 98:0 / /mnt rw,noatime - ext4 /dev/sda1 rw`, with any number of fields before the dash.
fn parse_mount(line: &str) -> Option<(PathBuf, PathBuf)> {
    let (before, after) = line.split_once(" - ")?;
    let point = before.split(' ').nth(4)?;
    let source = after.split(' ').nth(1)?;
    Some((unescape(source).into(), unescape(point).into()))
}

/// Undoes the kernel's octal escapes of space, tab, newline and backslash.
fn unescape(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.into(), |text: String, (from, to)| text.replace(from, to))
}

/// Whether the process behind a FUSE mount is gone.
fn is_dead(directory: &Path) -> bool {
    std::fs::metadata(directory).is_err_and(|error| error.raw_os_error() == Some(libc::ENOTCONN))
}

fn loop_devices_on(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir("/sys/block") else { return Vec::new() };
    let is_attached = |name: &Path| {
        let backing = std::fs::read_to_string(Path::new("/sys/block").join(name).join("loop/backing_file"));
        backing.is_ok_and(|backing| Path::new(backing.trim_end_matches('\n')).starts_with(directory))
    };
    let names = entries.filter_map(|entry| entry.ok().map(|entry| PathBuf::from(entry.file_name())));
    names.filter(|name| is_attached(name)).map(|name| Path::new("/dev").join(name)).collect()
}

fn detach(device: &Path) -> std::io::Result<()> {
    let file = File::open(device)?;
    // SAFETY: the descriptor is open, and this request takes no argument.
    match unsafe { libc::ioctl(file.as_raw_fd(), LOOP_CLR_FD, 0) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_with_and_without_optional_fields() {
        let line = "36 35 0:40 / /mnt/a\\040b rw,nosuid shared:1 master:2 - fuse cliffwatch-drive rw,user_id=0";
        assert_eq!(parse_mount(line), Some(("cliffwatch-drive".into(), "/mnt/a b".into())));
        assert_eq!(parse_mount("1 0 7:0 / /mnt rw - ext4 /dev/loop0 rw"), Some(("/dev/loop0".into(), "/mnt".into())));
        assert_eq!(parse_mount("nonsense"), None);
    }
}
