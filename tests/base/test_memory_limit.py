"""Every way in which a library says that there was no memory is one way; nothing else is taken for it."""

import errno

import pytest

from cliffwatch.base.memory_limit import memory_errors


@pytest.mark.parametrize(
    "said",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("FT_Open_Face (ft2font.cpp line 200) failed with error 0x40: out of memory"),
        RuntimeError("FT_Open_Face (ft2font.cpp line 200) failed with error 0x55: invalid stream operation"),
        ImportError("libfreetype.so.6: failed to map segment from shared object"),
        SystemError("error return without exception set"),
        SystemError("<built-in function scanstring> returned NULL without setting an exception"),
    ],
)
def test_want_of_memory_is_a_memory_error_whatever_it_is_called(said: Exception) -> None:
    with pytest.raises(MemoryError), memory_errors():
        raise said


@pytest.mark.parametrize(
    "said",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("no such glyph"),
        RuntimeError("error return without exception set"),
        SystemError("bad argument to internal function"),
    ],
)
def test_anything_else_stays_what_it_is(said: Exception) -> None:
    with pytest.raises(type(said)) as caught, memory_errors():
        raise said
    assert caught.value is said
