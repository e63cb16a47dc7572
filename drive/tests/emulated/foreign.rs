//! Protection of foreign mounts and files: they are neither unmounted, nor served, nor written to.

use crate::mounted_drive::{BASE, MountedDrive, binary, machine, refusal, run};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

#[test]
fn a_mount_over_a_drive_is_left_whether_its_process_is_stopped_or_was_killed() {
    let Some(_machine) = machine() else { return };
    let mut drive = MountedDrive::new("covered", &format!("{BASE} --timing off"));
    let point = drive.place.join("mount");
    let point = point.to_str().unwrap();
    assert!(run("mount", &["-t", "tmpfs", "foreign", point]));
    fs::write(drive.place.join("mount/file"), "precious").unwrap();
    assert!(run("kill", &[&drive.process.id().to_string()]));
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(fs::read_to_string(drive.place.join("mount/file")).unwrap(), "precious");
    assert!(run("umount", &[point]));
    let device = drive.attach();
    let files = drive.place.join("files");
    fs::create_dir_all(&files).unwrap();
    let files = files.to_str().unwrap();
    assert!(run("mkfs.ext4", &["-q", &device]) && run("mount", &[&device, files]));
    assert!(run("mount", &["-t", "tmpfs", "foreign", files]));
    drive.process.kill().unwrap();
    drive.process.wait().unwrap();
    let output = binary().arg("clean").output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && message.contains(&format!("foreign is mounted over it at {files}")),
        "{message}"
    );
    assert!(run("umount", &[files]));
    assert!(binary().arg("clean").output().unwrap().status.success());
    drive.loops.clear();
    let table = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!table.contains(drive.place.to_str().unwrap()));
}

#[test]
fn a_backing_file_is_served_once_at_a_time() {
    let Some(_machine) = machine() else { return };
    let mut drive = MountedDrive::new("locked", &format!("{BASE} --timing off"));
    let place = drive.place.join("second");
    fs::create_dir_all(place.join("mount")).unwrap();
    // Under another name: the lock is on the file, not on its name.
    fs::hard_link(drive.place.join("backing"), place.join("backing")).unwrap();
    let output = refusal(&place, BASE);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    let holder = format!("in use by process {} (cliffwatch-driv", drive.process.id());
    assert!(output.status.code() == Some(2) && message.contains(&holder), "{message}");
    drive.stop();
}

#[test]
fn a_backing_file_behind_a_link_is_made_and_nothing_else_in_its_place_is_touched() {
    let Some(_machine) = machine() else { return };
    let flags = format!("{BASE} --timing off");
    let place = std::env::temp_dir().join(format!("cliffwatch-drive-{}-linked", std::process::id()));
    let (target, victim) = (place.join("target"), place.join("victim"));
    fs::create_dir_all(place.join("mount")).unwrap();
    std::os::unix::fs::symlink(&target, place.join("backing")).unwrap();
    let refused = |named: &str| {
        let output = refusal(&place, &flags);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && message.contains(named), "{message}");
        assert_eq!(fs::read(&victim).unwrap(), b"");
        fs::remove_file(&target).unwrap();
    };
    fs::write(&victim, "").unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&victim, &target).unwrap();
    refused("is a symbolic link");
    fs::hard_link(&victim, &target).unwrap();
    refused("has 2 names (hard links)");
    fs::write(&target, "").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o604)).unwrap();
    refused("is open to other users (mode 0604)");
    fs::write(&target, "").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::chown(&target, Some(65_534), None).unwrap();
    refused("belongs to the user 65534");
    assert!(run("mkfifo", &["-m", "600", target.to_str().unwrap()]));
    refused("is not a regular file");
    let (backing, way) = (place.join("backing"), place.join("way"));
    std::os::unix::fs::symlink(&place, &way).unwrap();
    std::os::unix::fs::lchown(&way, Some(65_534), None).unwrap();
    fs::remove_file(&backing).unwrap();
    std::os::unix::fs::symlink(way.join("target"), &backing).unwrap();
    fs::write(&target, "").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    refused("a symbolic link of the user 65534");
    std::os::unix::fs::lchown(&way, Some(0), None).unwrap();
    let mut drive = MountedDrive::new("linked", &flags);
    drive.stop();
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
}
