//! FUSE file system of an emulated drive: one directory with one file, `drive`.

use super::delay::Delay;
use super::drive::{RequestKind, TranslationLayer};
use super::faults::Faults;
use super::health::Requests;
use super::power::{Power, Taken};
use crate::sync::lock;
use crate::units::nanoseconds;
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request,
    WriteFlags,
};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

/// Name of the file in the directory.
pub const FILE_NAME: &str = "drive";

const FILE: INodeNo = INodeNo(2);
/// How long the kernel may cache entries and attributes, which never change.
const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);
const LARGEST_REQUEST_BYTES: u32 = 1 << 20;
const BACKGROUND_REQUESTS: u16 = 256;

/// State of an emulated drive, shared by all threads.
pub struct DriveState {
    /// Translation layer and timing of the modelled drive.
    pub layer: Mutex<Box<dyn TranslationLayer>>,
    /// Faults in force, and when they were set.
    pub faults: Mutex<(Faults, Instant)>,
    /// Power state of the drive.
    pub power: Power,
    /// Whether completed writes survive a loss of power (protected write buffer).
    pub buffer_protected: bool,
    /// Request counters and latencies.
    pub requests: Requests,
    /// Time origin of the timing model.
    pub started: Instant,
    /// Backing file, which holds the content.
    pub backing: File,
    /// Size of the drive in bytes.
    pub size_bytes: u64,
}

impl DriveState {
    /// Accounts for a request that arrives now. Returns when its reply is due and its latency, or its error: an
    /// injected fault, no power, or a range beyond the drive.
    fn begin(&self, operation: RequestKind, offset_bytes: u64, size_bytes: u64) -> Result<(Instant, Duration), Errno> {
        self.requests.begin();
        let now = Instant::now();
        let (error, delay) = {
            let (faults, set_at) = &*lock(&self.faults);
            (faults.error(operation), faults.delay(operation, *set_at, now))
        };
        let error = error.or(self.power.is_off().then_some(libc::EIO));
        let end_bytes = offset_bytes.checked_add(size_bytes).filter(|&end| end <= self.size_bytes);
        if let Some(error) = error.or(end_bytes.is_none().then_some(libc::ENOSPC)) {
            self.requests.fail(operation);
            return Err(Errno::from_i32(error));
        }
        let since_start = nanoseconds(now - self.started);
        let done = lock(&self.layer).perform(operation, offset_bytes, size_bytes, since_start);
        let latency = Duration::from_nanos(done - since_start) + delay;
        Ok((now + latency, latency))
    }

    /// Changes the content with `change`, so that a power cut can undo what is not durable.
    fn take(
        &self,
        operation: RequestKind,
        offset_bytes: u64,
        size_bytes: u64,
        change: impl FnOnce() -> std::io::Result<()>,
    ) -> std::io::Result<Taken> {
        let bytes = offset_bytes..offset_bytes + size_bytes;
        self.power.take(operation, bytes, self.buffer_protected, &self.backing, change)
    }

    /// Accounts for a request whose I/O on the backing file is done.
    fn end(&self, operation: RequestKind, size_bytes: u64, latency: Duration, result: &std::io::Result<()>) {
        match result {
            Ok(()) => self.requests.end(operation, size_bytes, latency),
            Err(_) => self.requests.fail(operation),
        }
    }

    /// Punches a hole into the backing file: the range takes no space and reads as zeros from then on.
    fn punch(&self, offset_bytes: u64, size_bytes: u64) -> std::io::Result<()> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (Ok(offset), Ok(size)) = (i64::try_from(offset_bytes), i64::try_from(size_bytes)) else {
            return Err(std::io::ErrorKind::InvalidInput.into());
        };
        // SAFETY: the descriptor belongs to a file that is open for as long as self lives; the rest are numbers.
        match unsafe { libc::fallocate(self.backing.as_raw_fd(), mode, offset, size) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

/// Handler of the kernel's FUSE requests.
pub struct OneFile {
    shared: Arc<DriveState>,
    delay: Delay,
    mounted_at: SystemTime,
}

impl OneFile {
    /// Creates the handler of this drive, with a thread for delayed replies.
    ///
    /// # Errors
    /// The system's error, if the thread cannot be started.
    pub fn new(shared: Arc<DriveState>) -> std::io::Result<Self> {
        Ok(Self { shared, delay: Delay::new()?, mounted_at: SystemTime::now() })
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match inode {
            INodeNo::ROOT => (FileType::Directory, 0o700, 0),
            FILE => (FileType::RegularFile, 0o600, self.shared.size_bytes),
            _ => return None,
        };
        let time = self.mounted_at;
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// Replies to a request without data when it is due.
    fn finish(
        &self,
        operation: RequestKind,
        size_bytes: u64,
        timing: (Instant, Duration),
        taken: std::io::Result<Taken>,
        reply: ReplyEmpty,
    ) {
        let (due, latency) = timing;
        let shared = Arc::clone(&self.shared);
        self.delay.at(due, move || {
            let result = taken.and_then(|taken| shared.power.answer(&taken));
            shared.end(operation, size_bytes, latency, &result);
            match result {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(error.into()),
            }
        });
    }
}

impl Filesystem for OneFile {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Kernels that do not know one of these refuse it, which costs only speed.
        let _ =
            config.add_capabilities(InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_MAX_PAGES | InitFlags::FUSE_BIG_WRITES);
        let _ = config.set_max_write(LARGEST_REQUEST_BYTES);
        let _ = config.set_max_background(BACKGROUND_REQUESTS);
        let _ = config.set_congestion_threshold(BACKGROUND_REQUESTS);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = (parent == INodeNo::ROOT && name == FILE_NAME).then(|| self.attributes(FILE)).flatten();
        match found {
            Some(attributes) => reply.entry(&FOREVER, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match inode {
            FILE => {
                let flags =
                    FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES | FopenFlags::FOPEN_NOFLUSH;
                reply.opened(FileHandle(0), flags);
            }
            _ => reply.error(Errno::EISDIR),
        }
    }

    fn readdir(&self, _request: &Request, inode: INodeNo, _handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if inode != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, FILE_NAME),
        ];
        for (number, (inode, kind, name)) in (1..).zip(entries).skip(offset as usize) {
            if reply.add(inode, number, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let size_bytes = u64::from(size).min(self.shared.size_bytes.saturating_sub(offset));
        let (due, latency) = match self.shared.begin(RequestKind::Read, offset, size_bytes) {
            Ok(timing) => timing,
            Err(error) => return reply.error(error),
        };
        let mut content = vec![0; size_bytes as usize];
        let result = self.shared.backing.read_exact_at(&mut content, offset);
        let shared = Arc::clone(&self.shared);
        self.delay.at(due, move || {
            shared.end(RequestKind::Read, size_bytes, latency, &result);
            match result {
                Ok(()) => reply.data(&content),
                Err(error) => reply.error(error.into()),
            }
        });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let size_bytes = data.len() as u64;
        let (due, latency) = match self.shared.begin(RequestKind::Write, offset, size_bytes) {
            Ok(timing) => timing,
            Err(error) => return reply.error(error),
        };
        let taken =
            self.shared.take(RequestKind::Write, offset, size_bytes, || self.shared.backing.write_all_at(data, offset));
        let shared = Arc::clone(&self.shared);
        self.delay.at(due, move || {
            let result = taken.and_then(|taken| shared.power.answer(&taken));
            shared.end(RequestKind::Write, size_bytes, latency, &result);
            match result {
                Ok(()) => reply.written(size_bytes as u32),
                Err(error) => reply.error(error.into()),
            }
        });
    }

    /// Flushes the modelled drive only: the backing file is synced when the drive is unmounted, because the latency of
    /// the disk below must not show in that of the modelled drive.
    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        match self.shared.begin(RequestKind::Flush, 0, 0) {
            Ok(timing) => {
                let taken = self.shared.take(RequestKind::Flush, 0, 0, || Ok(()));
                self.finish(RequestKind::Flush, 0, timing, taken, reply);
            }
            Err(error) => reply.error(error),
        }
    }

    /// Trims a range: discards and zeroing arrive as holes to punch, and either unmaps the pages, as deallocation does
    /// on NVMe.
    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) == 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        match self.shared.begin(RequestKind::Trim, offset, length) {
            Ok(timing) => {
                let taken = self.shared.take(RequestKind::Trim, offset, length, || self.shared.punch(offset, length));
                self.finish(RequestKind::Trim, length, timing, taken, reply);
            }
            Err(error) => reply.error(error),
        }
    }
}
