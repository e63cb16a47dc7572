"""What keeps a process from io_uring or from locking memory, as containers do; for `preexec_fn`."""

import ctypes
import resource

_PR_CAPBSET_DROP = 24
_CAP_IPC_LOCK = 14


def forbid_io_uring() -> None:
    """From here on io_uring_setup ends with EPERM: a seccomp filter, which the program inherits."""
    load_word, jump_equal, give = 0x20, 0x15, 0x06
    allow, forbid = 0x7FFF0000, 0x00050000 | 1
    code = b"".join(
        code.to_bytes(2, "little") + bytes((true, false)) + value.to_bytes(4, "little")
        for code, true, false, value in (
            (load_word, 0, 0, 0),
            (jump_equal, 0, 1, 425),
            (give, 0, 0, forbid),
            (give, 0, 0, allow),
        )
    )
    buffer = ctypes.create_string_buffer(code, len(code))
    program = len(code).__floordiv__(8).to_bytes(8, "little") + ctypes.addressof(buffer).to_bytes(8, "little")
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.create_string_buffer(program, len(program)), 0, 0) == 0


def limit_locked_memory() -> None:
    """From here on 8 MiB, as of a user without privileges; root is not limited unless it is without this capability."""
    assert ctypes.CDLL(None, use_errno=True).prctl(_PR_CAPBSET_DROP, _CAP_IPC_LOCK, 0, 0, 0) == 0
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (8 * 1024**2, 8 * 1024**2))
