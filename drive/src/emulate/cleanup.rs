//! Finds and removes what a killed drive left: its dead mount, loop devices on its file, and file systems on those.

use super::mount::SOURCE;
use crate::error::{Error, Result};
use std::collections::HashSet;
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

/// Removes everything that belongs to drives whose process is gone. What belongs to a living drive is not touched, nor
/// is a dead one that something else is mounted over, until all others are removed.
///
/// # Errors
/// [`Error::System`] for the first thing that cannot be removed.
pub fn remove() -> Result<Removed> {
    let mounts = mounts()?;
    let mut removed = Removed::default();
    let mut covered = Ok(());
    for dead in mounts.iter().filter(|mount| mount.source.as_os_str() == SOURCE && is_dead(&mount.point)) {
        let directory = &dead.point;
        let devices = loop_devices_on(directory);
        if let Err(error) = check_uncovered(&mounts, directory, &devices) {
            covered = covered.and(Err(error));
            continue;
        }
        for device in devices {
            for mount in mounts.iter().filter(|mount| mount.source == device) {
                unmount(&mount.point, true).map_err(refused("unmounting", &mount.point))?;
                removed.filesystems.push(mount.point.clone());
            }
            detach(&device).map_err(refused("detaching", &device))?;
            removed.loop_devices.push(device);
        }
        unmount(directory, true).map_err(refused("unmounting", directory))?;
        removed.drives.push(directory.clone());
    }
    covered.map(|()| removed)
}

/// Unmounts the drive that is mounted on `directory`, which the mount table names so.
///
/// # Errors
/// [`Error::System`], also where something else is mounted over it, which the system would unmount instead.
pub fn unmount_drive(directory: &Path) -> Result<()> {
    check_uncovered(&mounts()?, directory, &[])?;
    unmount(directory, false).map_err(refused("unmounting", directory))
}

/// An unmount by name takes away what was mounted there last, and a lazy one all that is mounted below as well. So neither
/// may be done while anything is mounted over the drive's own mounts: its file, and the file systems on its devices.
fn check_uncovered(mounts: &[Mount], directory: &Path, devices: &[PathBuf]) -> Result<()> {
    let is_own = |mount: &Mount| {
        devices.contains(&mount.source) || (mount.source.as_os_str() == SOURCE && mount.point == directory)
    };
    let mut own: HashSet<u64> = mounts.iter().filter(|mount| is_own(mount)).map(|mount| mount.id).collect();
    let over = |own: &HashSet<u64>| {
        mounts.iter().find(|mount| !own.contains(&mount.id) && own.contains(&mount.parent)).cloned()
    };
    // The last of several is the one that a user can unmount.
    let mut foreign = None;
    while let Some(mount) = over(&own) {
        own.insert(mount.id);
        foreign = Some(mount);
    }
    let Some(foreign) = foreign else { return Ok(()) };
    let (source, point) = (foreign.source.display(), foreign.point.display());
    let said = format!("{source} is mounted over it at {point}, and not part of the drive");
    Err(Error::System {
        what: format!("unmounting {}", directory.display()),
        source: std::io::Error::other(said),
        advice: "unmount that with `umount` and the path",
    })
}

fn refused(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let what = format!("{what} {}", path.display());
    move |source| Error::System { what, source, advice: "run as root, after ending what still uses it" }
}

/// Unmounts; `lazily` even what is in use, which goes away with its last user.
fn unmount(directory: &Path, lazily: bool) -> std::io::Result<()> {
    let path = CString::new(directory.as_os_str().as_bytes())?;
    // SAFETY: the path is a string that lives through the call.
    match unsafe { libc::umount2(path.as_ptr(), if lazily { libc::MNT_DETACH } else { 0 }) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// What a mount is of and where, and the mount that it is mounted on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    id: u64,
    parent: u64,
    source: PathBuf,
    point: PathBuf,
}

fn mounts() -> Result<Vec<Mount>> {
    let table = "/proc/self/mountinfo";
    let text = std::fs::read_to_string(table).map_err(Error::file(table))?;
    Ok(text.lines().filter_map(parse_mount).collect())
}

/// A line such as `36 35 98:0 / /mnt rw,noatime - ext4 /dev/sda1 rw`, with any number of fields before the dash.
fn parse_mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let [id, parent, _, _, point] = before.splitn(6, ' ').take(5).collect::<Vec<_>>().try_into().ok()?;
    let source = after.split(' ').nth(1)?;
    Some(Mount {
        id: id.parse().ok()?,
        parent: parent.parse().ok()?,
        source: unescape(source).into(),
        point: unescape(point).into(),
    })
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

    fn mount(id: u64, parent: u64, source: &str, point: &str) -> Mount {
        Mount { id, parent, source: source.into(), point: point.into() }
    }

    #[test]
    fn mounts_are_read_with_and_without_optional_fields() {
        let line = "36 35 0:40 / /mnt/a\\040b rw,nosuid shared:1 master:2 - fuse cliffwatch-drive rw,user_id=0";
        assert_eq!(parse_mount(line), Some(mount(36, 35, "cliffwatch-drive", "/mnt/a b")));
        assert_eq!(parse_mount("1 0 7:0 / /mnt rw - ext4 /dev/loop0 rw"), Some(mount(1, 0, "/dev/loop0", "/mnt")));
        assert_eq!(parse_mount("nonsense"), None);
    }

    #[test]
    fn only_what_is_mounted_over_a_drive_covers_it() {
        let devices = ["/dev/loop1".into()];
        let own = [
            mount(30, 1, "under", "/d/files"),
            mount(31, 1, SOURCE, "/d/flash"),
            mount(32, 30, "/dev/loop1", "/d/files"),
        ];
        let check = |others: &[Mount]| {
            let result = check_uncovered(&[&own, others].concat(), Path::new("/d/flash"), &devices);
            result.map_err(|error| error.to_string())
        };
        assert_eq!(check(&[mount(33, 1, "beside", "/d/other")]), Ok(()));
        for (parent, point) in [(31, "/d/flash"), (32, "/d/files"), (32, "/d/files/below")] {
            let refused = check(&[mount(33, parent, "first", point), mount(34, 33, "last", point)]).unwrap_err();
            assert!(refused.contains(&format!("last is mounted over it at {point}")), "{refused}");
        }
    }
}
