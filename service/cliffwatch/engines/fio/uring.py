"""Whether the kernel lets this process use io_uring: asked by making a ring and closing it again."""

import ctypes
import os

#: io_uring_setup(2), by the same number on every architecture that has it since.
_IO_URING_SETUP = 425
#: Larger than struct io_uring_params of any kernel.
_PARAMETERS_BYTES = 256


def refusal() -> str | None:
    """Why there is no io_uring here, as a clause; None where there is."""
    libc = ctypes.CDLL(None, use_errno=True)
    ring = libc.syscall(_IO_URING_SETUP, 1, ctypes.create_string_buffer(_PARAMETERS_BYTES))
    if ring >= 0:
        os.close(ring)
        return None
    return os.strerror(ctypes.get_errno())
