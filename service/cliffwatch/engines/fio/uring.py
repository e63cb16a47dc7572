"""Check whether the kernel lets this process use io_uring, by creating a ring and closing it."""

import ctypes
import os

#: System call number of io_uring_setup(2), the same on every architecture that has it since.
_IO_URING_SETUP = 425
#: Larger than struct io_uring_params of any kernel.
_PARAMETERS_BYTES = 256


def refusal() -> str | None:
    """Reason why io_uring is unavailable here, as a clause; None where it is available."""
    libc = ctypes.CDLL(None, use_errno=True)
    ring = libc.syscall(_IO_URING_SETUP, 1, ctypes.create_string_buffer(_PARAMETERS_BYTES))
    if ring >= 0:
        os.close(ring)
        return None
    return os.strerror(ctypes.get_errno())
