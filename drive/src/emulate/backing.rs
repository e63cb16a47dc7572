//! Backing file of a drive: opened without following links beyond the first, checked, and locked.

use crate::error::{Error, Result};
use std::fs::{File, Metadata, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Open and locked backing file.
#[derive(Debug)]
pub(super) struct Backing {
    /// File handle, which holds the lock until it is closed.
    pub(super) file: File,
    /// Path of the file if it was created by this call.
    pub(super) made: Option<PathBuf>,
}

/// Opens and locks a backing file for this process; creates it with mode 0600 if it does not exist. Returns
/// [`Error::Setting`] if it is in use or refused, without waiting.
///
/// `path` may be a symbolic link to the file. Another user may have replaced the target, for instance by another link,
/// so that has to be a regular file of this user with one name and without access for others.
pub(super) fn open(path: &Path) -> Result<Backing> {
    let target = path.read_link().ok().map(|target| path.parent().unwrap_or(Path::new(".")).join(target));
    let real = target.as_deref().unwrap_or(path);
    if let Some(reason) = target.as_deref().and_then(why_another_user_leads) {
        return Err(refused(real, &reason));
    }
    let mut options = OpenOptions::new();
    // Without O_NONBLOCK, a FIFO could keep the process waiting for its other end.
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let (file, made) = match options.open(real) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            (options.create_new(true).open(real).map_err(Error::file(real))?, Some(real.to_owned()))
        }
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Err(refused(real, "is a symbolic link")),
        file => (file.map_err(Error::file(real))?, None),
    };
    let status = file.metadata().map_err(Error::file(real))?;
    if let Some(reason) = why_foreign(&status, target.is_some()) {
        return Err(refused(real, &reason));
    }
    // SAFETY: the descriptor is open.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        let holder = holder(&status).unwrap_or_else(|| "another process".to_owned());
        let advice =
            format!("{} is in use by {holder}: unmount the drive that it serves, or give another file", real.display());
        return Err(Error::setting("backing", advice));
    }
    Ok(Backing { file, made })
}

fn refused(path: &Path, reason: &str) -> Error {
    Error::setting("backing", format!("{} {reason}: give a file that a drive of this user made", path.display()))
}

/// Returns the reason to refuse a path that leads through a symbolic link of another user. Links of root and of this
/// user are followed, as they may serve to move a directory.
fn why_another_user_leads(path: &Path) -> Option<String> {
    // SAFETY: this call only returns a number.
    let user = unsafe { libc::geteuid() };
    let links = path.ancestors().skip(1).filter_map(|part| Some((part, part.symlink_metadata().ok()?)));
    links.filter(|(_, status)| status.is_symlink()).find_map(|(part, status)| {
        let owner = status.uid();
        let advice = || format!("is reached through {}, a symbolic link of the user {owner}", part.display());
        (owner != 0 && owner != user).then(advice)
    })
}

fn why_foreign(status: &Metadata, is_linked_to: bool) -> Option<String> {
    // SAFETY: this call only returns a number.
    let user = unsafe { libc::geteuid() };
    if !status.is_file() {
        return Some("is not a regular file".to_owned());
    }
    if !is_linked_to {
        return None;
    }
    if status.uid() != user {
        return Some(format!("belongs to the user {}", status.uid()));
    }
    if status.nlink() != 1 {
        return Some(format!("has {} names (hard links)", status.nlink()));
    }
    let mode = status.mode() & 0o7777;
    (mode & 0o077 != 0).then(|| format!("is open to other users (mode {mode:04o})"))
}

/// Returns the process that holds the lock on the file, as listed in /proc/locks.
fn holder(status: &Metadata) -> Option<String> {
    let place = format!("{:02x}:{:02x}:{}", libc::major(status.dev()), libc::minor(status.dev()), status.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let pid = locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        matches!(fields[..], [_, "FLOCK", _, _, _, file, ..] if file == place).then(|| fields[4].to_owned())
    })?;
    let command = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(format!("process {pid} ({})", command.trim_end()))
}
