//! Drive that is mounted for one test, and a check that this machine can mount one.

use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lock of the machine: tests run one at a time, because they look for left-behind mounts and devices on all of it.
static MACHINE: Mutex<()> = Mutex::new(());

/// Locks the machine for one test; `None` if it cannot run these tests, which fails in CI.
pub(crate) fn machine() -> Option<MutexGuard<'static, ()>> {
    // SAFETY: this call only returns a number.
    let is_root = unsafe { libc::geteuid() } == 0;
    if is_root && Path::new("/dev/fuse").exists() {
        return Some(MACHINE.lock().unwrap_or_else(PoisonError::into_inner));
    }
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    assert!(!is_ci, "{test} needs root and /dev/fuse, and CI leaves nothing out");
    // `eprintln!` would not be shown: the harness captures what passing tests print.
    std::io::stderr().write_all(format!("NOT RUN: {test} needs root and /dev/fuse\n").as_bytes()).unwrap();
    None
}

/// Mounted drive of 64 MiB. Dropping it removes its loop devices, mount and files.
pub(crate) struct MountedDrive {
    pub(crate) place: PathBuf,
    pub(crate) process: Child,
    ready: Value,
    pub(crate) loops: Vec<String>,
}

pub(crate) const BASE: &str = "--capacity 64MiB --pages-per-block 64 --channels 2 --dies-per-channel 4";

pub(crate) fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_cliffwatch-drive"))
}

impl MountedDrive {
    pub(crate) fn new(name: &str, flags: &str) -> Self {
        let place = std::env::temp_dir().join(format!("cliffwatch-drive-{}-{name}", std::process::id()));
        fs::create_dir_all(place.join("mount")).unwrap();
        let (process, ready) = start(&place, flags);
        Self { place, process, ready, loops: Vec::new() }
    }

    fn file(&self) -> PathBuf {
        self.place.join("mount/drive")
    }

    pub(crate) fn open(&self) -> File {
        OpenOptions::new().read(true).write(true).open(self.file()).unwrap()
    }

    pub(crate) fn attach(&mut self) -> String {
        let output =
            Command::new("losetup").args(["--find", "--show", "--direct-io=on"]).arg(self.file()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let device = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        self.loops.push(device.clone());
        device
    }

    pub(crate) fn detach(&mut self) {
        for device in self.loops.drain(..) {
            assert!(run("losetup", &["--detach", &device]));
        }
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let address = self.ready["url"].as_str().unwrap().trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    pub(crate) fn metric(&self, name: &str) -> f64 {
        let (_, text) = self.ask("GET", "/metrics", "");
        let wanted = format!("cliffwatch_drive_{name}{{");
        let line =
            text.lines().find(|line| line.starts_with(&wanted)).unwrap_or_else(|| panic!("{name} is not in {text}"));
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    }

    /// Ends the process with SIGTERM and asserts that it succeeds.
    pub(crate) fn stop(&mut self) {
        assert!(run("kill", &[&self.process.id().to_string()]));
        assert!(self.process.wait().unwrap().success());
    }

    pub(crate) fn restart(&mut self, flags: &str) {
        (self.process, self.ready) = start(&self.place, flags);
    }
}

impl Drop for MountedDrive {
    fn drop(&mut self) {
        for device in &self.loops {
            run("losetup", &["--detach", device]);
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        run("umount", &["--lazy", "--quiet", self.place.join("mount").to_str().unwrap()]);
        let _ = fs::remove_dir_all(&self.place);
    }
}

pub(crate) fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).stderr(Stdio::null()).stdout(Stdio::null()).status().unwrap().success()
}

pub(crate) fn command(place: &Path, flags: &str) -> Command {
    let mut command = binary();
    command.arg("mount").arg("--directory").arg(place.join("mount")).arg("--backing").arg(place.join("backing"));
    command.args(flags.split(' ').filter(|flag| !flag.is_empty())).stdout(Stdio::piped());
    command
}

/// Returns the output of a mount that is refused; panics if the drive is served instead.
pub(crate) fn refusal(place: &Path, flags: &str) -> Output {
    let mut process = command(place, flags).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if !line.is_empty() {
        process.kill().unwrap();
        run("umount", &["--lazy", place.join("mount").to_str().unwrap()]);
        panic!("it is served: {line}");
    }
    process.wait_with_output().unwrap()
}

fn start(place: &Path, flags: &str) -> (Child, Value) {
    let mut process = command(place, flags).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not ready: {line:?}"));
    (process, ready)
}
