//! Threads that create, seal, sync and delete the files of segments.

use crate::error::{Error, Result};
use crate::index::Indexes;
use crate::io::{Done, Inbox};
use crate::segments::sync_directory;
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fdatasync, fstat, fsync, ftruncate, open};
use rustix::io::Errno;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// First error of any thread, shared by all of them.
#[derive(Clone, Default)]
pub(crate) struct Failure {
    error: Arc<Mutex<Option<Error>>>,
}

impl Failure {
    /// Stores an error unless one is stored already.
    pub(crate) fn report(&self, error: Error) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Removes and returns the stored error, None if there is none.
    pub(crate) fn take(&self) -> Option<Error> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns true when an error is stored.
    pub(crate) fn is_reported(&self) -> bool {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// Task of a file thread.
pub(crate) enum FileTask {
    /// Create a segment's file. The answer is its file descriptor, or a negative error number.
    Create {
        /// Path of the file.
        path: PathBuf,
        /// Open with O_DIRECT.
        direct: bool,
        /// Bytes to allocate at once; 0: none.
        allocate_bytes: u64,
        /// Token of the answer.
        token: u64,
        /// Inbox that receives the answer.
        inbox: Arc<Inbox>,
    },
    /// Close a segment: truncate its file to its records and, if `sync`, sync it.
    Seal {
        /// Open file of the segment.
        file: OwnedFd,
        /// Path of the file, for error messages.
        path: PathBuf,
        /// Length of the segment's records in bytes.
        bytes: u64,
        /// Indexes of the segment, sealed with it.
        indexes: Option<Box<Indexes>>,
        /// Snapshot file of the segment. If `sync`, it is synced before the segment, and its directory after it.
        snapshot: Option<PathBuf>,
        /// Sync the files.
        sync: bool,
    },
    /// Delete files; missing files are ignored.
    Delete(Vec<PathBuf>),
    /// Replace a file by one with this text, atomically across a crash.
    Replace(PathBuf, String),
    /// Discard (FITRIM) the free space of the file system that holds this directory.
    Trim(PathBuf),
    /// Answer when all earlier tasks of the same thread are done.
    Barrier(Sender<()>),
}

/// Threads for blocking file operations. One creates and deletes files in the order of submission, so that the space of
/// a deleted segment is free before the next is created; background threads seal, discard and replace files, whose
/// completion no shard waits for.
#[derive(Clone)]
pub(crate) struct FileThreads {
    waited_for: Sender<FileTask>,
    background: Vec<SyncSender<FileTask>>,
    turn: Arc<AtomicUsize>,
}

impl FileThreads {
    /// Starts one thread that creates and deletes files and `background_threads` others, each with a queue of
    /// `queued_tasks` tasks. Errors of tasks without an answer are stored in `failure`.
    pub(crate) fn start(background_threads: u32, queued_tasks: usize, failure: &Failure) -> Result<Self> {
        let begin = |name: &str, taken: Receiver<FileTask>| -> Result<()> {
            let failure = failure.clone();
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread.spawn(move || execute(&taken, &failure)).map(drop).map_err(Error::system("starting a thread"))
        };
        let (waited_for, taken) = channel();
        begin("make", taken)?;
        let mut background = Vec::new();
        for _ in 0..background_threads {
            let (tasks, taken) = sync_channel(queued_tasks);
            begin("seal", taken)?;
            background.push(tasks);
        }
        Ok(Self { waited_for, background, turn: Arc::default() })
    }

    /// Queues a task. Blocks while the queue of its background thread is full: a segment to be sealed is an open file,
    /// and their number has to stay bounded when the drive syncs more slowly than segments roll.
    pub(crate) fn submit(&self, task: FileTask) {
        let place = match &task {
            FileTask::Seal { .. } | FileTask::Trim(_) => Some(self.turn.fetch_add(1, Ordering::Relaxed)),
            // Always the same thread for a file, so that two threads never replace it at once.
            FileTask::Replace(path, _) => Some(BuildHasherDefault::<DefaultHasher>::new().hash_one(path) as usize),
            _ => None,
        };
        // A thread runs until the last sender is dropped.
        let _ = match place {
            Some(place) => self.background[place % self.background.len()].send(task),
            None => self.waited_for.send(task),
        };
    }

    /// Blocks until all tasks submitted before are done.
    pub(crate) fn drain(&self) {
        let wait = |submit: &dyn Fn(FileTask)| {
            let (done, waits) = channel();
            submit(FileTask::Barrier(done));
            let _ = waits.recv();
        };
        self.background.iter().for_each(|thread| wait(&|task| drop(thread.send(task))));
        wait(&|task| drop(self.waited_for.send(task)));
    }
}

fn execute(tasks: &Receiver<FileTask>, failure: &Failure) {
    while let Ok(task) = tasks.recv() {
        let result = match task {
            FileTask::Create { path, direct, allocate_bytes, token, inbox } => {
                let result = make(&path, direct, allocate_bytes)
                    .map_or_else(|error| -error.raw_os_error(), IntoRawFd::into_raw_fd);
                inbox.put(Done { token, result });
                Ok(())
            }
            FileTask::Seal { file, path, bytes, indexes, snapshot, sync } => {
                let snapshot = snapshot.filter(|_| sync);
                let begun = snapshot.as_deref().map_or(Ok(()), sync_file);
                let sealed = begun.and_then(|()| seal(&file, bytes, sync).map_err(Error::file(&path, "seal it")));
                let indexed = sealed.and_then(|()| indexes.map_or(Ok(()), |indexes| indexes.seal(sync)));
                let directory = snapshot.as_deref().and_then(Path::parent);
                indexed.and_then(|()| directory.map_or(Ok(()), sync_directory))
            }
            FileTask::Delete(paths) => paths.into_iter().try_for_each(delete),
            FileTask::Replace(path, text) => replace(&path, &text),
            FileTask::Trim(path) => trim(&path),
            FileTask::Barrier(done) => {
                let _ = done.send(());
                Ok(())
            }
        };
        if let Err(error) = result {
            failure.report(error);
        }
    }
}

fn make(path: &Path, direct: bool, allocate_bytes: u64) -> rustix::io::Result<OwnedFd> {
    let mut flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    flags.set(OFlags::DIRECT, direct);
    let file = match open(path, flags, Mode::RUSR | Mode::WUSR) {
        // Recovery may have left an empty file for the next segment.
        Err(Errno::EXIST) => open(path, flags - OFlags::CREATE - OFlags::EXCL, Mode::empty())?,
        opened => opened?,
    };
    if fstat(&file)?.st_size != 0 {
        return Err(Errno::EXIST);
    }
    if allocate_bytes > 0 {
        match fallocate(file.as_fd(), FallocateFlags::empty(), 0, allocate_bytes) {
            Err(Errno::OPNOTSUPP) | Ok(()) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(file)
}

fn seal(file: &OwnedFd, bytes: u64, sync: bool) -> rustix::io::Result<()> {
    ftruncate(file, bytes)?;
    if sync { fdatasync(file) } else { Ok(()) }
}

/// Syncs a file; ignores one that retention has deleted.
fn sync_file(path: &Path) -> Result<()> {
    match open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => Ok(()),
        opened => fsync(opened.map_err(Error::file(path, "open it"))?).map_err(Error::file(path, "sync it")),
    }
}

fn replace(path: &Path, text: &str) -> Result<()> {
    let written = path.with_extension("tmp");
    std::fs::write(&written, text).map_err(Error::file(&written, "write it"))?;
    sync_file(&written)?;
    std::fs::rename(&written, path).map_err(Error::file(path, "put another in its place"))?;
    path.parent().map_or(Ok(()), sync_directory)
}

fn delete(path: PathBuf) -> Result<()> {
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::file(path, "delete it")(error)),
        _ => Ok(()),
    }
}

/// The kernel's `struct fstrim_range`.
#[repr(C)]
struct TrimRange {
    start: u64,
    length: u64,
    shortest: u64,
}

/// Number of the FITRIM ioctl: `_IOWR('X', 121, struct fstrim_range)`.
const FITRIM: libc::Ioctl = 0xC018_5879_u32 as libc::Ioctl;

fn trim(directory: &Path) -> Result<()> {
    let opened = open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let file = opened.map_err(Error::file(directory, "open it"))?;
    let mut range = TrimRange { start: 0, length: u64::MAX, shortest: 0 };
    // SAFETY: the file is open, and the range is of the shape that the kernel reads and writes for this request.
    let answer = unsafe { libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&file), FITRIM, &raw mut range) };
    if answer == 0 {
        return Ok(());
    }
    let source = std::io::Error::last_os_error();
    let advice = "discard needs root, and a drive and file system that can; take it out of the load otherwise";
    Err(Error::File { path: directory.to_owned(), what: "discard what is free", source, advice })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::{RECORDS, segment_path};

    #[test]
    fn a_file_is_made_where_there_is_none_or_an_empty_one_and_never_over_records() {
        let directory = tempfile::tempdir().unwrap();
        let path = segment_path(directory.path(), 4, RECORDS);
        make(&path, false, 0).unwrap();
        make(&path, false, 4_096).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 4_096);
        assert_eq!(make(&path, false, 0).unwrap_err(), Errno::EXIST);
    }
}
