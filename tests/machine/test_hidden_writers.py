"""Processes that write to the target, or to the file behind it, without a descriptor where one is looked for first."""

from pathlib import Path

import pytest
from testkit.loops import LoopDrive, codes, command, helper

from cliffwatch.gate import examine

#: Python's own mmap keeps a descriptor of its own.
MAPPED = """
import ctypes
library = ctypes.CDLL(None)
library.mmap.restype = ctypes.c_void_p
descriptor = os.open(sys.argv[1], os.O_RDWR)
shared, read_write = 1, 3
assert library.mmap(None, ctypes.c_size_t(4096), read_write, shared, descriptor, ctypes.c_long(0)) > 0
os.close(descriptor)
"""

#: A thread with a table of open files of its own: CLONE_FILES.
OPEN_IN_A_THREAD = """
import ctypes, threading
opened = threading.Event()
def write():
    assert ctypes.CDLL(None).unshare(0x400) == 0
    os.open(sys.argv[1], os.O_RDWR)
    opened.set()
    threading.Event().wait()
threading.Thread(target=write, daemon=True).start()
opened.wait()
"""

#: The first thread ends (the system call exit, of x86-64 and of AArch64) and the process goes on without it.
OPEN_WITHOUT_THE_FIRST_THREAD = """
import ctypes, platform, threading
descriptor = os.open(sys.argv[1], os.O_RDWR)
def remain():
    while open(f'/proc/{os.getpid()}/stat').read().rpartition(')')[2].split()[0] != 'Z':
        pass
    print('ready', flush=True)
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=remain).start()
ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[platform.machine()], 0)
"""

WAYS = {
    "mapped, and the descriptor closed": MAPPED,
    "open in a thread with files of its own": OPEN_IN_A_THREAD,
    "open, and the first thread ended": OPEN_WITHOUT_THE_FIRST_THREAD,
}


@pytest.mark.parametrize("place", ["device", "file behind it"])
@pytest.mark.parametrize("way", WAYS)
def test_a_process_that_can_write_is_named_however_it_does(drive: LoopDrive, way: str, place: str) -> None:
    path = drive.node if place == "device" else drive.file
    with helper(WAYS[way], path) as process_id:
        examination = examine(drive.target(), "r1")
    assert codes(examination) == {"in_use"}
    assert f"process {process_id} " in examination.objections[0].message


def test_a_file_system_elsewhere_in_the_file_is_found_under_the_other_name(drive: LoopDrive, tmp_path: Path) -> None:
    # Nobody has it mounted, and nothing at the beginning of the file says that it is there.
    offset = command("losetup", "--offset", "1MiB", "--find", "--show", drive.file).strip()
    try:
        command("mkfs.ext4", "-q", offset)
        examination = examine(drive.target(), "r1")
        assert "filesystem_signature" in codes(examination)
        assert any(offset.removeprefix("/dev/") + " holds ext4" in each.message for each in examination.objections)
    finally:
        command("losetup", "--detach", offset)
