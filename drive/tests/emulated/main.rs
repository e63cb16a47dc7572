//! Tests of the emulated drive on a real kernel: FUSE, a loop device, a file system.
//!
//! They need root and FUSE. Without these, each test fails in CI; elsewhere it is skipped and reports that on standard
//! error, past the harness's capture.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod foreign;
mod mounted_drive;

use mounted_drive::{BASE, MountedDrive, binary, command, machine, run};
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Returns the content of a page, filled with its number.
fn page(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(2048)
}

#[test]
fn without_root_a_test_fails_in_ci_and_elsewhere_says_that_it_was_not_run() {
    let Some(_machine) = machine() else { return };
    // A copy of this program that any user can execute, wherever it was built.
    let place = std::env::temp_dir().join(format!("cliffwatch-drive-{}-unprivileged", std::process::id()));
    fs::create_dir_all(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    let copy = place.join("emulated");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let run_unprivileged = |ci: &str| {
        let test = "faults_come_and_go_on_command";
        Command::new(&copy).args(["--exact", test]).env("CI", ci).uid(65_534).current_dir("/").output().unwrap()
    };
    let (in_ci, elsewhere) = (run_unprivileged("true"), run_unprivileged(""));
    fs::remove_dir_all(&place).unwrap();
    assert!(!in_ci.status.success(), "{in_ci:?}");
    let said = String::from_utf8_lossy(&elsewhere.stderr);
    assert!(elsewhere.status.success() && said.contains("NOT RUN: faults_come"), "{elsewhere:?}");
}

#[test]
fn content_survives_and_an_aged_drive_stays_aged() {
    let Some(_machine) = machine() else { return };
    let flags = format!("{BASE} --timing off");
    let mut drive = MountedDrive::new("aged", &flags);
    let file = drive.open();
    for round in 0..3 {
        for number in 0..4096u64 {
            let place = number * 2_654_435_761 % 4096;
            file.write_all_at(&page(place + round), place * 16384).unwrap();
        }
        (0..2000u64).for_each(|i| file.write_all_at(&page(i * 7 % 4096 + round), i * 7 % 4096 * 16384).unwrap());
    }
    drop(file);
    let before =
        ["host_written_bytes_total", "media_written_bytes_total", "free_blocks_ratio"].map(|name| drive.metric(name));
    assert!(before[1] > 1.02 * before[0], "{before:?}: no garbage was collected");
    drive.stop();
    drive.restart(&flags);
    let after =
        ["host_written_bytes_total", "media_written_bytes_total", "free_blocks_ratio"].map(|name| drive.metric(name));
    // Saving finishes the garbage collection in progress.
    assert_eq!(before[0], after[0]);
    assert!(after[1] - before[1] < 64.0 * 16384.0 && after[2] >= before[2], "{before:?} became {after:?}");
    let file = drive.open();
    let mut content = vec![0; 16384];
    for place in 0..4096 {
        file.read_exact_at(&mut content, place * 16384).unwrap();
        assert!(content == page(place + 2), "page {place}");
    }
    drop(file);
    drive.stop();
}

#[test]
fn a_loop_device_carries_a_file_system_and_its_discards() {
    let Some(_machine) = machine() else { return };
    let mut drive = MountedDrive::new("loop", BASE);
    let device = drive.attach();
    let point = drive.place.join("files");
    fs::create_dir_all(&point).unwrap();
    assert!(run("mkfs.ext4", &["-q", &device]) && run("mount", &[&device, point.to_str().unwrap()]));
    let content: Vec<u8> = (0..20u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(point.join("file"), &content).unwrap();
    assert!(run("sync", &["--file-system", point.to_str().unwrap()]) && run("umount", &[point.to_str().unwrap()]));
    assert!(drive.metric("host_written_bytes_total") > 20e6);
    assert!(run("mount", &[&device, point.to_str().unwrap()]));
    assert!(fs::read(point.join("file")).unwrap() == content);
    fs::remove_file(point.join("file")).unwrap();
    assert!(run("sync", &["--file-system", point.to_str().unwrap()]) && run("fstrim", &[point.to_str().unwrap()]));
    assert!(run("umount", &[point.to_str().unwrap()]));
    assert!(drive.metric("trimmed_bytes_total") > 15e6, "{}", drive.metric("trimmed_bytes_total"));
    drive.detach();
    drive.stop();
}

/// Returns the sorted latencies, in seconds, of `count` sequential writes of one page each, from page `place` on.
fn write_seconds(device: &str, place: u64, count: u64) -> Vec<f64> {
    let file = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(device).unwrap();
    let mut memory = vec![1u8; 32768];
    let start = memory.as_ptr().align_offset(4096);
    let aligned = &mut memory[start..start + 16384];
    let timed = |i: u64| {
        let before = Instant::now();
        file.write_all_at(aligned, (place + i) * 16384).unwrap();
        before.elapsed().as_secs_f64()
    };
    let mut seconds: Vec<f64> = (0..count).map(timed).collect();
    seconds.sort_by(f64::total_cmp);
    seconds
}

/// Returns the sorted latencies, in seconds, of eight concurrent writers of five pages each.
fn write_seconds_together(device: &str) -> Vec<f64> {
    let mut seconds: Vec<f64> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8).map(|writer| scope.spawn(move || write_seconds(device, writer * 5, 5))).collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    seconds.sort_by(f64::total_cmp);
    seconds
}

#[test]
fn requests_take_at_least_as_long_as_the_model_says() {
    let Some(_machine) = machine() else { return };
    let mut drive = MountedDrive::new("at-least", &format!("{BASE} --overhead-latency 5ms"));
    let device = drive.attach();
    let fastest = write_seconds(&device, 0, 200)[0];
    // 5 ms, and 5 µs for the transfer.
    assert!(fastest >= 0.005, "{fastest}");
    let modelled: Value = serde_json::from_str(&drive.ask("GET", "/latencies", "").1).unwrap();
    assert_eq!(modelled["write"]["count"], 200);
    let modelled = modelled["write"]["p50_seconds"].as_f64().unwrap();
    assert!((0.00499..0.00505).contains(&modelled), "{modelled}");
    assert_eq!(drive.ask("DELETE", "/latencies", "").0, 200);
    assert!(drive.ask("GET", "/latencies", "").1.contains("\"write\":null"));
    drive.detach();
    drive.stop();
}

#[test]
fn requests_at_the_same_time_are_answered_no_earlier_than_the_model_says() {
    let Some(_machine) = machine() else { return };
    let mut drive = MountedDrive::new("together", &format!("{BASE} --overhead-latency 400ms"));
    let device = drive.attach();
    let seconds = write_seconds_together(&device);
    let modelled: Value = serde_json::from_str(&drive.ask("GET", "/latencies", "").1).unwrap();
    assert_eq!(modelled["write"]["count"], 40);
    for (rank, name) in [(20, "p50_seconds"), (39, "p99_seconds")] {
        // The model's histogram has a resolution of about 1 %.
        let decided = modelled["write"][name].as_f64().unwrap();
        assert!(seconds[rank] >= 0.99 * decided, "{name}: {} where the model said {decided}", seconds[rank]);
    }
    drive.detach();
    drive.stop();
}

mod wall_clock {
    use super::*;

    #[test]
    fn requests_take_no_longer_than_the_model_says() {
        let Some(_machine) = machine() else { return };
        let mut drive = MountedDrive::new("no-longer", &format!("{BASE} --overhead-latency 5ms"));
        let device = drive.attach();
        let median = write_seconds(&device, 0, 200)[100];
        assert!(median < 0.0062, "{median}");
        drive.detach();
        drive.stop();
    }

    #[test]
    fn requests_at_the_same_time_are_each_answered_when_the_model_says() {
        let Some(_machine) = machine() else { return };
        let mut drive = MountedDrive::new("together-timed", &format!("{BASE} --overhead-latency 400ms"));
        let device = drive.attach();
        let seconds = write_seconds_together(&device);
        let modelled: Value = serde_json::from_str(&drive.ask("GET", "/latencies", "").1).unwrap();
        for (rank, name) in [(20, "p50_seconds"), (39, "p99_seconds")] {
            // `python -m bench drive` tests a narrower bound.
            let decided = modelled["write"][name].as_f64().unwrap();
            assert!(seconds[rank] < 1.5 * decided, "{name}: {} where the model said {decided}", seconds[rank]);
        }
        drive.detach();
        drive.stop();
    }
}

#[test]
fn faults_come_and_go_on_command() {
    let Some(_machine) = machine() else { return };
    let mut drive = MountedDrive::new("faults", &format!("{BASE} --timing off"));
    let file = drive.open();
    let code = |result: std::io::Result<()>| result.map_err(|error| error.raw_os_error());
    file.write_all_at(&page(1), 0).unwrap();
    assert_eq!(
        drive.ask("PUT", "/faults", r#"{"failing": ["read"], "read_only": true, "temperature_celsius": 88}"#).0,
        200
    );
    assert_eq!(code(file.read_exact_at(&mut [0; 16384], 0)), Err(Some(libc::EIO)));
    assert_eq!(code(file.write_all_at(&page(1), 0)), Err(Some(libc::EROFS)));
    assert_eq!(drive.metric("temperature_celsius"), 88.0);
    assert_eq!(drive.metric("media_errors_total"), 2.0);
    let health: Value = serde_json::from_str(&drive.ask("GET", "/health", "").1).unwrap();
    assert_eq!((&health["critical_warning"], &health["temperature"]), (&8.into(), &361.into()));
    let (status, answer) = drive.ask("PUT", "/faults", r#"{"stal_seconds": 1}"#);
    assert!(status == 400 && answer.contains("invalid-faults") && answer.contains("stal_seconds"), "{status} {answer}");
    assert_eq!(
        drive.ask("PUT", "/faults", r#"{"stall_seconds": 0.4, "added_latency_seconds": {"write": 0.1}}"#).0,
        200
    );
    let before = Instant::now();
    file.write_all_at(&page(1), 0).unwrap();
    let took = before.elapsed().as_secs_f64();
    assert!(took >= 0.45, "{took}");
    assert_eq!(drive.ask("DELETE", "/faults", "").0, 200);
    let before = Instant::now();
    (0..10).for_each(|place| file.write_all_at(&page(2), place * 16384).unwrap());
    assert!(before.elapsed() < Duration::from_secs(1), "each still takes 0.1 s");
    assert_eq!(drive.ask("GET", "/nothing", "").0, 404);
    drop(file);
    drive.stop();
}

#[test]
fn power_is_cut_and_comes_back() {
    let Some(_machine) = machine() else { return };
    let mut drive = MountedDrive::new("power", &format!("{BASE} --timing off --buffer-protected false"));
    let file = drive.open();
    file.write_all_at(&page(1), 0).unwrap();
    assert_eq!(drive.ask("PUT", "/faults", r#"{"power_cut": {"after_writes": 2, "seed": 1}}"#).0, 200);
    file.write_all_at(&page(2), 16384).unwrap();
    file.sync_all().unwrap();
    let code = |result: std::io::Result<()>| result.unwrap_err().raw_os_error();
    assert_eq!(code(file.write_all_at(&page(3), 32768)), Some(libc::EIO), "a drive without power completes no request");
    assert_eq!(code(file.read_exact_at(&mut [0; 16384], 0)), Some(libc::EIO));
    assert_eq!(code(file.sync_all()), Some(libc::EIO));
    assert_eq!(drive.ask("DELETE", "/faults", "").0, 200);
    let mut content = vec![0; 16384];
    for number in 1..3 {
        file.read_exact_at(&mut content, (number - 1) * 16384).unwrap();
        assert!(content == page(number), "page {number}");
    }
    drop(file);
    drive.stop();
}

#[test]
fn what_a_killed_drive_leaves_is_found_and_removed() {
    let Some(_machine) = machine() else { return };
    let mut living = MountedDrive::new("living", BASE);
    let mut killed = MountedDrive::new("killed", BASE);
    let (living_device, device) = (living.attach(), killed.attach());
    killed.process.kill().unwrap();
    killed.process.wait().unwrap();
    let output = binary().arg("clean").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let removed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let holds = |list: &str, path: &Path| removed[list].as_array().unwrap().contains(&path.to_str().unwrap().into());
    assert!(holds("drives", &killed.place.join("mount")) && holds("loop_devices", Path::new(&device)), "{removed}");
    assert!(
        !holds("drives", &living.place.join("mount")) && !holds("loop_devices", Path::new(&living_device)),
        "{removed}"
    );
    killed.loops.clear();
    let table = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!table.contains(killed.place.to_str().unwrap()) && table.contains(living.place.to_str().unwrap()));
    killed.restart(BASE);
    killed.stop();
    living.detach();
    living.stop();
}

#[test]
fn a_drive_in_use_goes_on_serving_and_stops_once_it_is_free() {
    let Some(_machine) = machine() else { return };
    let mut drive = MountedDrive::new("busy", &format!("{BASE} --timing off"));
    let file = drive.open();
    assert!(run("kill", &[&drive.process.id().to_string()]));
    std::thread::sleep(Duration::from_millis(200));
    file.write_all_at(&page(1), 0).unwrap();
    drop(file);
    drive.stop();
}

#[test]
fn what_cannot_work_is_refused_and_nothing_stays_mounted() {
    let Some(_machine) = machine() else { return };
    let place = std::env::temp_dir().join(format!("cliffwatch-drive-{}-refused", std::process::id()));
    fs::create_dir_all(place.join("mount")).unwrap();
    let refused = |flags: &str, named: &str| {
        let output = command(&place, flags).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && message.contains(named) && !message.contains("panicked"),
            "{flags}: {message}"
        );
        let table = fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!table.contains(place.to_str().unwrap()), "{flags} left a mount");
    };
    refused("--capacity 60TB --pages-per-block 16384", "room");
    refused("--capacity 900TB", "2^32");
    refused("--over-provisioning 2", "over-provisioning");
    refused(&format!("{BASE} --listen 192.0.2.1:1"), "--listen");
    refused(&format!("{BASE} --scale 4"), "--scale");
    fs::write(place.join("backing.state"), "damaged").unwrap();
    refused(BASE, "damaged");
    fs::remove_file(place.join("backing.state")).unwrap();
    fs::write(place.join("backing"), "something else").unwrap();
    refused(BASE, "--backing");
    fs::remove_dir(place.join("mount")).unwrap();
    refused(BASE, "--backing");
    fs::remove_file(place.join("backing")).unwrap();
    refused(BASE, "not a directory");
    fs::remove_dir_all(&place).unwrap();
}
