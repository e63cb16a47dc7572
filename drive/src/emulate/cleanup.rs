//! Cleanup after a killed drive: its dead mount, loop devices on its file, and file systems on those.

use super::filesystem::FILE_NAME;
use super::mount_source::is_drive_source;
use crate::error::{Error, Result};
use std::collections::HashSet;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// Mounts and loop devices that a cleanup removed.
#[derive(Debug, Default, serde::Serialize)]
pub struct Removed {
    /// Mount points of drives whose process is gone.
    pub drives: Vec<PathBuf>,
    /// Loop devices that were attached to those drives.
    pub loop_devices: Vec<PathBuf>,
    /// Mount points of file systems on those loop devices.
    pub filesystems: Vec<PathBuf>,
}

/// Request of the kernel's `loop.h` that detaches a loop device from its file.
const LOOP_CLR_FD: libc::Ioctl = 0x4c01;
/// Request of the kernel's `loop.h` that reads a loop device's status, which begins with the device of its file.
const LOOP_GET_STATUS64: libc::Ioctl = 0x4c05;
/// Length of `struct loop_info64` in 64-bit words; the first is the device that the file is on.
const LOOP_INFO_WORDS: usize = 29;
/// Longest wait for a mount to answer: a drive that has ended fails at once, one that is stopped does not answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(2);

/// Removes the mounts, loop devices and file systems of drives whose process is gone. Running drives are not touched. A
/// dead drive that something else is mounted over is skipped, and reported after all others are removed.
///
/// # Errors
/// [`Error::System`] for the first thing that cannot be removed.
pub fn remove() -> Result<Removed> {
    let mounts = mounts()?;
    let mut removed = Removed::default();
    let mut covered = Ok(());
    for dead in mounts.iter().filter(|mount| mount.serves_drive() && is_dead(&mount.point)) {
        let directory = &dead.point;
        let devices = loop_devices_on(dead);
        if let Err(error) = check_uncovered(&mounts, dead, &devices) {
            covered = covered.and(Err(error));
            continue;
        }
        for device in devices {
            for mount in mounts.iter().filter(|mount| mount.device == device.number) {
                unmount(mount, true).map_err(refused("unmounting", &mount.point))?;
                removed.filesystems.push(mount.point.clone());
            }
            detach(&device.node).map_err(refused("detaching", &device.node))?;
            removed.loop_devices.push(device.node);
        }
        unmount(dead, true).map_err(refused("unmounting", directory))?;
        removed.drives.push(directory.clone());
    }
    covered.map(|()| removed)
}

/// Unmounts the drive on `directory`, which has to be named as in the mount table.
///
/// # Errors
/// [`Error::System`] if no drive is mounted there, if it is in use, or if something else is mounted over it.
pub fn unmount_drive(directory: &Path) -> Result<()> {
    let mounts = mounts()?;
    // Of several mounts on one path, only the last is visible.
    let Some(drive) = mounts.iter().rfind(|mount| mount.serves_drive() && mount.point == directory) else {
        return Err(refused("unmounting", directory)(std::io::Error::other("no drive is mounted there")));
    };
    check_uncovered(&mounts, drive, &[])?;
    unmount(drive, false).map_err(refused("unmounting", directory))
}

/// Checks that nothing else is mounted over the drive's own mounts: its file, and the file systems on its devices. An
/// unmount by path removes the topmost mount, and a lazy one also everything mounted below it.
fn check_uncovered(mounts: &[Mount], drive: &Mount, devices: &[LoopDevice]) -> Result<()> {
    let is_own = |mount: &Mount| mount.id == drive.id || devices.iter().any(|device| device.number == mount.device);
    let mut own: HashSet<u64> = mounts.iter().filter(|mount| is_own(mount)).map(|mount| mount.id).collect();
    let over = |own: &HashSet<u64>| {
        mounts.iter().find(|mount| !own.contains(&mount.id) && own.contains(&mount.parent)).cloned()
    };
    // Of several, the last is the one that a user can unmount.
    let mut foreign = None;
    while let Some(mount) = over(&own) {
        own.insert(mount.id);
        foreign = Some(mount);
    }
    let Some(foreign) = foreign else { return Ok(()) };
    let (source, point) = (Path::new(&foreign.source).display(), foreign.point.display());
    let said = format!("{source} is mounted over it at {point}, and not part of the drive");
    Err(Error::System {
        what: format!("unmounting {}", drive.point.display()),
        source: std::io::Error::other(said),
        advice: "unmount that with `umount` and the path",
    })
}

fn refused(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let what = format!("{what} {}", path.display());
    move |source| Error::System { what, source, advice: "run as root, after ending what still uses it" }
}

/// Unmounts; `lazily` (`MNT_DETACH`) even a mount in use, which then ends with its last user.
fn unmount(mount: &Mount, lazily: bool) -> std::io::Result<()> {
    check_leads_to(mount)?;
    let path = CString::new(mount.point.as_os_str().as_bytes())?;
    let flags = if lazily { libc::MNT_DETACH } else { 0 } | libc::UMOUNT_NOFOLLOW;
    // SAFETY: the path is a string that lives through the call.
    match unsafe { libc::umount2(path.as_ptr(), flags) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Checks that the path of a mount leads to it, which fails if something is mounted over a directory above.
fn check_leads_to(mount: &Mount) -> std::io::Result<()> {
    let place = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&mount.point)?;
    let information = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", place.as_raw_fd()))?;
    let found = information.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    if found == Some(mount.id) {
        return Ok(());
    }
    Err(std::io::Error::other("the path leads to another mount by now, as something is mounted over a directory above"))
}

/// Entry of the mount table. `parent` is the mount that it is mounted on, `options` are those of the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    id: u64,
    parent: u64,
    device: libc::dev_t,
    file_system: OsString,
    source: OsString,
    options: OsString,
    point: PathBuf,
}

impl Mount {
    /// Whether a process of this user serves, or served, a drive there. The source alone proves nothing: any user can
    /// set it.
    fn serves_drive(&self) -> bool {
        // SAFETY: this call only returns a number.
        let user = format!("user_id={}", unsafe { libc::getuid() });
        let is_own = self.options.as_bytes().split(|&byte| byte == b',').any(|option| option == user.as_bytes());
        self.file_system == "fuse" && is_own && is_drive_source(&self.source)
    }
}

fn mounts() -> Result<Vec<Mount>> {
    let table = "/proc/self/mountinfo";
    // A path in it may hold any byte but a newline.
    let bytes = std::fs::read(table).map_err(Error::file(table))?;
    Ok(bytes.split(|&byte| byte == b'\n').filter_map(parse_mount).collect())
}

/// Parses a line such as `36 35 98:0 / /mnt rw,noatime - ext4 /dev/sda1 rw`, with any number of fields before the dash.
fn parse_mount(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let dash = fields.iter().skip(6).position(|field| *field == b"-")? + 6;
    let [id, parent, device, _, point] = fields.get(..5)?.try_into().ok()?;
    let [file_system, source, options] = fields.get(dash + 1..dash + 4)?.try_into().ok()?;
    let (major, minor) = std::str::from_utf8(device).ok()?.split_once(':')?;
    Some(Mount {
        id: std::str::from_utf8(id).ok()?.parse().ok()?,
        parent: std::str::from_utf8(parent).ok()?.parse().ok()?,
        device: libc::makedev(major.parse().ok()?, minor.parse().ok()?),
        file_system: unescape(file_system),
        source: unescape(source),
        options: OsStr::from_bytes(options).to_owned(),
        point: unescape(point).into(),
    })
}

/// Decodes the kernel's octal escapes: a backslash and three digits.
fn unescape(text: &[u8]) -> OsString {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let digits =
            after.get(..3).filter(|digits| byte == b'\\' && digits.iter().all(|digit| matches!(digit, b'0'..=b'7')));
        let escaped = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        plain.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(plain)
}

/// Whether the process behind a FUSE mount is gone. A stopped one is not: it does not answer within the 2 s that this
/// waits.
fn is_dead(directory: &Path) -> bool {
    let (answer, answered) = mpsc::channel();
    let directory = directory.to_owned();
    std::thread::spawn(move || {
        let error = std::fs::metadata(&directory).err();
        // After the timeout there is no receiver.
        let _ = answer.send(error.and_then(|error| error.raw_os_error()));
    });
    matches!(answered.recv_timeout(ANSWER_PATIENCE), Ok(Some(libc::ENOTCONN)))
}

/// Device node and number of a loop device.
#[derive(Clone, Debug)]
struct LoopDevice {
    node: PathBuf,
    number: libc::dev_t,
}

/// Returns the loop devices on the drive's file, found by the file that the kernel has open: another mount namespace
/// may have another file under that name.
fn loop_devices_on(mount: &Mount) -> Vec<LoopDevice> {
    let Ok(entries) = std::fs::read_dir("/sys/block") else { return Vec::new() };
    let names = entries.filter_map(|entry| Some(PathBuf::from(entry.ok()?.file_name())));
    let devices = names.filter_map(|name| {
        let name_of_file = std::fs::read(Path::new("/sys/block").join(&name).join("loop/backing_file")).ok()?;
        let node = Path::new("/dev").join(name);
        let device = File::open(&node).ok()?;
        let is_on_it = match device_below(&device) {
            // Some kernels ask the dead file system for this as well: compare the name.
            Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => {
                name_of_file.trim_ascii_end() == mount.point.join(FILE_NAME).as_os_str().as_bytes()
            }
            below => below.ok()? == mount.device,
        };
        is_on_it.then_some(LoopDevice { number: device.metadata().ok()?.rdev(), node })
    });
    devices.collect()
}

/// Returns the device of the file system that holds a loop device's file.
fn device_below(device: &File) -> std::io::Result<libc::dev_t> {
    let mut information = [0_u64; LOOP_INFO_WORDS];
    // SAFETY: the descriptor is open, and the kernel fills in a structure of that size, for which there is room.
    match unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64, information.as_mut_ptr()) } {
        0 => Ok(information[0]),
        _ => Err(std::io::Error::last_os_error()),
    }
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

    fn mount(id: u64, parent: u64, device: libc::dev_t, point: &str) -> Mount {
        Mount {
            id,
            parent,
            device,
            file_system: "fuse".into(),
            source: "cliffwatch-drive:7:1:12".into(),
            options: "rw,user_id=0,group_id=0".into(),
            point: point.into(),
        }
    }

    #[test]
    fn mounts_are_read_with_and_without_optional_fields() {
        let line = b"36 35 0:40 / /mnt/a\\040b\\134 rw,nosuid shared:1 master:2 - fuse cliffwatch-drive:7:1:12 rw,user_id=0,group_id=0";
        assert_eq!(parse_mount(line), Some(mount(36, 35, libc::makedev(0, 40), "/mnt/a b\\")));
        let plain = parse_mount(b"1 0 7:0 / /mnt/\xff\\9 rw - ext4 /dev/loop0 rw").unwrap();
        assert_eq!(plain.point.as_os_str().as_bytes(), b"/mnt/\xff\\9");
        assert_eq!(parse_mount(b"nonsense"), None);
    }

    #[test]
    fn only_this_users_mounts_of_the_program_serve_drives() {
        // SAFETY: this call only returns a number.
        let user = unsafe { libc::getuid() };
        let own = Mount { options: format!("rw,user_id={user}").into(), ..mount(1, 0, 40, "/d/flash") };
        assert!(own.serves_drive());
        assert!(Mount { source: "cliffwatch-drive".into(), ..own.clone() }.serves_drive());
        assert!(!Mount { options: format!("rw,user_id={user}1").into(), ..own.clone() }.serves_drive());
        assert!(!Mount { source: "cliffwatch-drivers".into(), ..own.clone() }.serves_drive());
        assert!(!Mount { file_system: "ext4".into(), ..own }.serves_drive());
    }

    #[test]
    fn only_what_is_mounted_over_a_drive_covers_it() {
        let drive = mount(31, 1, 40, "/d/flash");
        let devices = [LoopDevice { node: "/dev/loop1".into(), number: 7 }];
        let own = [mount(30, 1, 50, "/d/files"), drive.clone(), mount(32, 30, 7, "/d/files")];
        let check = |others: &[Mount]| {
            let result = check_uncovered(&[&own, others].concat(), &drive, &devices);
            result.map_err(|error| error.to_string())
        };
        assert_eq!(check(&[mount(33, 1, 60, "/d/other")]), Ok(()));
        for (parent, point) in [(31, "/d/flash"), (32, "/d/files"), (32, "/d/files/below")] {
            let last = Mount { source: "last".into(), ..mount(34, 33, 61, point) };
            let refused = check(&[mount(33, parent, 60, point), last]).unwrap_err();
            assert!(refused.contains(&format!("last is mounted over it at {point}")), "{refused}");
        }
    }
}
