"""A virtual machine with NVMe drives: QEMU's controllers behind the real driver, on Debian's cloud kernel.

Its root file system is on one of the drives, made from this machine's own Python, this checkout and nvme-cli. There is
no initial RAM disk, because that kernel has the NVMe driver and ext4 built in.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import prometheus_client
from testkit.checkout import ROOT

KERNEL = Path(os.environ.get("STATE", ROOT / ".cliffwatch")).resolve() / "kernel" / "vmlinuz"
#: What the script in the machine prints on the console around each text that the test is to have.
BEGIN, END = "=====begin ", "=====end"
_IMAGE_MEGABYTES = 192
_PATIENCE_SECONDS = 240
_UNNEEDED = shutil.ignore_patterns(
    "__pycache__", "test", "tests", "idlelib", "tkinter", "lib2to3", "ensurepip", "distutils", "pydoc_data", "*.a",
    "site-packages", "dist-packages", "config-*", "turtledemo",
)  # fmt: skip


def make_image(directory: Path, script: str) -> Path:
    """A file system whose /init is `script`, a shell script."""
    tree = directory / "tree"
    for name in ("proc", "sys", "dev", "tmp", "run", "bin"):
        (tree / name).mkdir(parents=True)
    busybox = shutil.which("busybox")
    nvme = shutil.which("nvme")
    assert busybox, "there is no busybox: setup/install test"
    assert nvme, "there is no nvme: setup/install run"
    python = Path(sys.executable).resolve()
    _copy_with_libraries(tree, [Path(busybox), Path(nvme), python])
    library = Path(sysconfig.get_path("stdlib", vars={"base": sys.base_prefix, "installed_base": sys.base_prefix}))
    shutil.copytree(library, tree / library.relative_to("/"), ignore=_UNNEEDED, symlinks=True)
    _copy_with_libraries(tree, (library / "lib-dynload").glob("*.so"))
    packages = Path(prometheus_client.__file__).parent
    shutil.copytree(packages, tree / "packages" / packages.name, ignore=_UNNEEDED)
    for package in (ROOT / "service" / "cliffwatch", ROOT / "exporters" / "drive" / "cliffwatch_drive_exporter"):
        shutil.copytree(package, tree / "packages" / package.name, ignore=_UNNEEDED)
    (tree / "bin" / "sh").symlink_to(busybox)
    (tree / "init").write_text(f"#!{busybox} sh\nPYTHON={python}\nNVME={nvme}\n{script}")
    (tree / "init").chmod(0o755)
    image = directory / "root.img"
    subprocess.run(
        ["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", str(tree), str(image), f"{_IMAGE_MEGABYTES}M"],
        check=True,
    )
    shutil.rmtree(tree)
    return image


def _copy_with_libraries(tree: Path, files: Iterable[Path]) -> None:
    for file in files:
        listed = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False).stdout
        for path in [file, *(Path(name) for name in re.findall(r"(/\S+)", listed))]:
            target = tree / path.relative_to("/")
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path.resolve(), target)


def run(directory: Path, image: Path, devices: list[str]) -> dict[str, str]:
    """Boot with the root image on its first drive and `devices` besides; give what was printed, by its name."""
    assert KERNEL.is_file(), "there is no cloud kernel: setup/kernel"
    command = [
        "qemu-system-x86_64", "-m", "512", "-smp", "1", "-nographic", "-no-reboot", "-net", "none",
        # Software emulation is slower, and is the same on every machine; KVM inside a virtual machine may fail.
        "-accel", "tcg",
        "-kernel", str(KERNEL),
        "-append", "console=ttyS0 root=/dev/nvme0n1 rw init=/init quiet panic=-1 mitigations=off",
        "-drive", f"file={image},if=none,id=root,format=raw",
        "-device", "nvme,drive=root,serial=ROOT",
        *devices,
    ]  # fmt: skip
    log = directory / "console.log"
    with log.open("wb") as console:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT)
        try:
            status = process.wait(_PATIENCE_SECONDS)
        finally:
            process.kill()
            process.wait()
    text = log.read_text(errors="replace").replace("\r", "")
    assert status == 0, text[-4000:]
    found = re.findall(rf"^{BEGIN}(.*)\n((?s:.*?))^{END}$", text, re.MULTILINE)
    assert found, text[-4000:]
    return dict(found)
