//! Mount of an emulated drive: starts it, serves it until it is asked to stop, and unmounts it.

use super::backing::{self, Backing};
use super::cleanup::unmount_drive;
use super::drive;
use super::faults::Faults;
use super::filesystem::{DriveState, FILE_NAME, OneFile};
use super::health::Requests;
use super::mount_source::source;
use super::power::Power;
use super::saved;
use super::serve::{self, DriveIdentity};
use crate::error::{Error, Result};
use crate::plan::DrivePlan;
use crate::settings::{Settings, TimingSetting};
use crate::sync::lock;
use fuser::{BackgroundSession, Config, MountOption, Session};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Where a drive is mounted and what it is made of.
#[derive(Clone, Debug, clap::Args)]
pub struct Mount {
    /// Directory to mount on; the drive is the file `drive` in it
    #[arg(long, value_name = "DIRECTORY")]
    pub directory: PathBuf,
    /// Sparse file that holds the content; made if it is not there
    #[arg(long, value_name = "FILE")]
    pub backing: PathBuf,
    /// File that keeps the drive's age from one mount to the next [default: the backing file's name with .state]
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Address of /metrics, /health and /faults; port 0 takes any that is free
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: String,
    /// The label `device` of the metrics [default: the file's path]
    #[arg(long)]
    pub device: Option<String>,
    /// The label `serial` of the metrics
    #[arg(long, default_value = "EMULATED")]
    pub serial: String,
    /// Threads that read requests
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub threads: u8,
}

/// Mounts the drive, prints one line of JSON when it is ready, and blocks until SIGTERM, SIGINT or an unmount; then
/// saves the drive's age.
///
/// # Errors
/// [`Error::Setting`], [`Error::File`] and [`Error::State`] for invalid settings and files, [`Error::System`] where the
/// system refuses; nothing is left mounted then.
pub fn mount(arguments: &Mount, settings: Settings) -> Result<()> {
    let timing = match settings.timing {
        None | Some(TimingSetting::Auto) => TimingSetting::On,
        Some(given) => given,
    };
    let plan = DrivePlan::new(Settings { timing: Some(timing), ..settings })?;
    if plan.scale != 1 {
        return Err(Error::setting("scale", "an emulated drive has the size that it has: use a smaller --capacity"));
    }
    let directory = std::path::absolute(&arguments.directory).map_err(Error::file(&arguments.directory))?;
    let state_path = arguments.state.clone().unwrap_or_else(|| with_extension(&arguments.backing, "state"));
    // Registered before anything is mounted, so that a signal from here on ends with an unmount.
    let signals = Signals::new([SIGTERM, SIGINT]).map_err(system("waiting for signals", "start it again"))?;
    let shared = Arc::new(prepare(arguments, &plan, &state_path)?);
    if plan.timed {
        go_before_others();
    }
    // The path as in the mount table.
    let point = directory.canonicalize().unwrap_or_else(|_| directory.clone());
    let session = start_session(&directory, Arc::clone(&shared), arguments.threads)?;
    let file = directory.join(FILE_NAME);
    let identity = DriveIdentity {
        device: arguments.device.clone().unwrap_or_else(|| file.display().to_string()),
        serial: arguments.serial.clone(),
        page_bytes: plan.page_bytes,
        program_bytes_per_second: plan.program_bytes_per_second(),
    };
    let served = serve::start(&arguments.listen, Arc::clone(&shared), identity);
    let address = served.map_err(system("listening for metrics", "give another address with --listen"))?;
    let ready = json!({
        "file": file,
        "size_bytes": shared.size_bytes,
        "url": format!("http://{address}"),
        "pid": std::process::id(),
    });
    // The process that started the drive need not read this: an error is ignored.
    let _ = writeln!(std::io::stdout(), "{ready}");
    wait(&session, signals, &point);
    let joined = session.join();
    shared.backing.sync_all().map_err(Error::file(&arguments.backing))?;
    let state = lock(&shared.layer).save();
    saved::write(&state_path, &state)?;
    joined.map_err(system("serving the drive", "mount it again: its content and its age were saved"))
}

fn with_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".");
    name.push(extension);
    path.with_file_name(name)
}

fn system(what: &str, advice: &'static str) -> impl FnOnce(std::io::Error) -> Error {
    let what = what.to_owned();
    move |source| Error::System { what, source, advice }
}

/// Opens the backing file and restores the saved age of the translation layer.
fn prepare(arguments: &Mount, plan: &DrivePlan, state_path: &Path) -> Result<DriveState> {
    let size_bytes = u64::from(plan.volume_pages) * plan.page_bytes;
    let saved = saved::read(state_path)?;
    let path = &arguments.backing;
    let Backing { file: backing, made } = backing::open(path)?;
    let length = backing.metadata().map_err(Error::file(path))?.len();
    if length != size_bytes && length != 0 {
        let advice =
            format!("has {length} bytes where the drive has {size_bytes}: give the sizes that it was made with");
        return Err(Error::setting("backing", advice));
    }
    if let Err(error) =
        check_room(&backing, size_bytes).and_then(|()| backing.set_len(size_bytes).map_err(Error::file(path)))
    {
        if let Some(made) = made {
            // Created by this call, for this drive only.
            let _ = std::fs::remove_file(made);
        }
        return Err(error);
    }
    let mut layer = drive::layer(plan)?;
    if let Some(state) = saved {
        let reason = "is of a drive of another shape";
        layer.restore(state).ok_or_else(|| Error::State { path: state_path.into(), reason })?;
    }
    Ok(DriveState {
        layer: Mutex::new(layer),
        faults: Mutex::new((Faults::default(), Instant::now())),
        power: Power::default(),
        buffer_protected: plan.buffer_protected,
        requests: Requests::default(),
        started: Instant::now(),
        backing,
        size_bytes,
    })
}

/// Checks that the file system has room for the whole drive; without it, writes would fail that the modelled drive
/// accepts.
fn check_room(backing: &std::fs::File, size_bytes: u64) -> Result<()> {
    use std::os::{fd::AsRawFd, unix::fs::MetadataExt};
    // SAFETY: an all-zero statvfs is a valid value of that plain structure.
    let mut room: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open and the pointer is to a live structure that the call fills.
    if unsafe { libc::fstatvfs(backing.as_raw_fd(), &raw mut room) } != 0 {
        return Ok(());
    }
    let held = backing.metadata().map_or(0, |metadata| metadata.blocks() * 512);
    let free = room.f_bavail * room.f_frsize;
    if free + held < size_bytes {
        let advice = format!(
            "the file system has no room: {free} bytes are free and the drive needs {size_bytes}: use another, or a smaller --capacity"
        );
        return Err(Error::setting("backing", advice));
    }
    Ok(())
}

/// Gives this thread, and those that it starts, the lowest real-time priority (`SCHED_RR`): a real drive has its own
/// processors, so a busy machine must not delay it. The work is bounded by the requests, so other processes still run.
/// A refusal only distorts the slowest requests of a busy machine, so it is ignored.
fn go_before_others() {
    const LOWEST_OF_REAL_TIME: libc::c_int = 1;
    let parameters = libc::sched_param { sched_priority: LOWEST_OF_REAL_TIME };
    // SAFETY: the pointer is to a live structure that the call only reads; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const parameters) };
}

fn start_session(directory: &Path, shared: Arc<DriveState>, threads: u8) -> Result<BackgroundSession> {
    if !directory.is_dir() {
        return Err(Error::setting("directory", format!("{} is not a directory: make it first", directory.display())));
    }
    let source =
        source(&shared.backing).map_err(system("looking at the backing file", "see that it is still there"))?;
    let filesystem = OneFile::new(shared).map_err(system("starting a thread", "end some other processes"))?;
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName(source), MountOption::NoSuid, MountOption::NoDev];
    config.n_threads = Some(usize::from(threads));
    config.clone_fd = true;
    let what = format!("mounting on {}", directory.display());
    let advice = "run as root on a kernel with FUSE (/dev/fuse), on a directory that nothing else is mounted on";
    let session = Session::new(filesystem, directory, &config).map_err(system(&what, advice))?;
    session.spawn().map_err(system("starting a thread", "end some other processes"))
}

/// Blocks until the drive is unmounted, by another process or after a signal. A drive in use cannot be unmounted and
/// goes on serving, because losing it would be worse than not stopping.
fn wait(session: &BackgroundSession, mut signals: Signals, directory: &Path) {
    while !session.guard.is_finished() {
        if signals.pending().next().is_some()
            && let Err(error) = unmount_drive(directory)
        {
            eprintln!("cliffwatch-drive: {error}, then signal again");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
