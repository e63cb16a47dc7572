"""Processes that write to the target, or to the file behind it, without a descriptor where one is looked for first."""

import os
from pathlib import Path

import pytest
from testkit.loops import LoopDrive, codes, command, helper
from tests.machine.trees import empty_tree

from cliffwatch.gate import examine
from cliffwatch.machine.backing import FileIdentity
from cliffwatch.machine.usage import StackedDevice, swap_areas, writers

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

#: mprotect(2) makes it writable at any time: PROT_NONE at first.
MAPPED_WITHOUT_ACCESS = MAPPED.replace("read_write = 1, 3", "read_write = 1, 0")

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

#: The system calls io_uring_setup and io_uring_register (IORING_REGISTER_FILES), of all machines.
REGISTERED_WITH_A_RING = """
import ctypes
call = ctypes.CDLL(None).syscall
ring = call(425, 4, ctypes.create_string_buffer(120))
descriptor = os.open(sys.argv[1], os.O_RDWR)
assert call(427, ring, 2, (ctypes.c_int * 1)(descriptor), 1) == 0
os.close(descriptor)
"""

WAYS = {
    "registered with an io_uring, and the descriptor closed": REGISTERED_WITH_A_RING,
    "mapped, and the descriptor closed": MAPPED,
    "mapped without access, and the descriptor closed": MAPPED_WITHOUT_ACCESS,
    "mapped to be read, and the descriptor closed": MAPPED.replace("read_write = 1, 3", "read_write = 1, 1"),
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


def test_a_mapping_of_what_was_opened_to_be_read_never_becomes_writable(drive: LoopDrive) -> None:
    for path in (drive.node, drive.file):
        with helper(MAPPED.replace("RDWR", "RDONLY").replace("read_write = 1, 3", "read_write = 1, 1"), path):
            assert examine(drive.target(), "r1").objections == ()


@pytest.mark.parametrize("separator", ["\r", "\f", "\u2028"])
def test_a_name_that_has_a_line_s_end_in_it_is_read_whole(drive: LoopDrive, tmp_path: Path, separator: str) -> None:
    other = tmp_path / f"an{separator}other"
    other.write_bytes(bytes(4096))
    with helper(MAPPED, other):
        assert examine(drive.target(), "r1").objections == ()
        with helper(MAPPED, drive.file):
            assert codes(examine(drive.target(), "r1")) == {"in_use"}


@pytest.mark.parametrize("separator", ["\r", "\u2028", "\u00a0"])
def test_a_swap_file_is_known_whatever_its_name_is(tmp_path: Path, separator: str) -> None:
    file, proc = tmp_path / f"a{separator}file", empty_tree(tmp_path).proc
    file.touch()
    with (proc / "swaps").open("ab") as swaps:
        swaps.write(os.fsencode(file) + b"   file\t\t1024\t\t0\t\t-2\n")
    assert swap_areas([], [FileIdentity.of(file.stat())], proc) == [file]


def test_a_file_system_elsewhere_in_the_file_is_found_under_the_other_name(drive: LoopDrive, tmp_path: Path) -> None:
    # It is not mounted, and nothing at the beginning of the file says that it is there.
    offset = command("losetup", "--offset", "1MiB", "--find", "--show", drive.file).strip()
    try:
        command("mkfs.ext4", "-q", offset)
        examination = examine(drive.target(), "r1")
        assert "filesystem_signature" in codes(examination)
        assert any(offset.removeprefix("/dev/") + " holds ext4" in each.message for each in examination.objections)
    finally:
        command("losetup", "--detach", offset)


@pytest.mark.parametrize(
    ("name", "node"),
    [("sda", "device/scsi_generic/sg0"), ("sda", "device/bsg/0:0:0:0"), ("nvme0n1", "device/ng0n1")],
)
def test_a_process_that_passes_commands_to_a_drive_is_a_writer(tmp_path: Path, name: str, node: str) -> None:
    """As a virtual machine does by /dev/sg0, without its block device. /dev/full stands for that."""
    stands = Path("/dev/full").stat().st_rdev
    (tmp_path / node).mkdir(parents=True)
    (tmp_path / node / "dev").write_text(f"{os.major(stands)}:{os.minor(stands)}\n")
    (tmp_path / "device" / "ng0n2").mkdir(parents=True)
    layers = [StackedDevice(name, "8:0", tmp_path)]
    with helper("os.open(sys.argv[1], os.O_RDWR)", "/dev/full") as process_id:
        assert process_id in [writer.process_id for writer in writers(layers)]
        (tmp_path / node / "dev").write_text("0:0\n")
        assert process_id not in [writer.process_id for writer in writers(layers)]
