"""Draw report.png of a finished run on first request, in a separate process whose memory is then freed."""

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from cliffwatch.base import durable, locks
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.logs import last_line
from cliffwatch.base.memory_limit import ENVIRONMENT
from cliffwatch.base.regular_files import read_regular
from cliffwatch.journal import files

#: Time limit of drawing; the picture of 36 h takes some seconds.
_PATIENCE_SECONDS = 300.0

_LOG = logging.getLogger(__name__)


def picture_of(
    directory: Path,
    cache: Path,
    report: Path | None = None,
    turn: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> bytes:
    """PNG picture of the report in `directory`, or in the directory `report` where given; drawn if it is not stored.

    `cache` is the directory of matplotlib's font list; `turn()`, a context, is held while drawing or waiting for it.
    Raises Problem: report_not_ready without a report, journal_unreadable where report.json cannot be read, internal
    when the picture cannot be drawn, or what `turn` raises.
    """
    place = report or directory
    if (kept := _kept(place)) is not None:
        return kept
    with turn(), one_at_a_time(cache):
        # The previous holder of the lock may have drawn this picture.
        if (kept := _kept(place)) is not None:
            return kept
        made_at = _made_at(place)
        content = _drawn(directory, cache)
        _keep(place, content, made_at)
        return content


def _made_at(directory: Path) -> int:
    """When the report was made, in nanoseconds since the epoch."""
    try:
        return (directory / files.REPORT_JSON).stat().st_mtime_ns
    except FileNotFoundError as error:
        detail = f"run {directory.name} has no report yet; a picture can be drawn when the load ends"
        raise Problem(Code.REPORT_NOT_READY, detail) from error
    except OSError as error:
        path = directory / files.REPORT_JSON
        raise Problem(Code.JOURNAL_UNREADABLE, f"{path} cannot be read: {error.strerror}") from error


def _kept(directory: Path) -> bytes | None:
    """The stored picture, if it is of the current report: both files have the same modification time. Else None."""
    picture = directory / files.REPORT_PNG
    made_at = _made_at(directory)
    try:
        return read_regular(picture) if picture.stat().st_mtime_ns == made_at else None
    except OSError:
        return None


def _keep(directory: Path, content: bytes, made_at: int) -> None:
    picture = directory / files.REPORT_PNG
    try:
        durable.write_durably(picture, content)
        os.utime(picture, ns=(made_at, made_at))
    except OSError as error:
        # The picture is still returned; the next request draws it again.
        _LOG.warning("the picture of %s cannot be kept: %s", directory, error)


@contextmanager
def one_at_a_time(cache: Path) -> Iterator[None]:
    """Serialise drawing by a lock on `cache`: each picture takes a processor and some 200 MB."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(cache, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise Problem(Code.INTERNAL, f"the report cannot be drawn: {cache} cannot be made: {error.strerror}") from error
    try:
        locks.take(descriptor, cache)
        yield
    finally:
        os.close(descriptor)


def _drawn(directory: Path, cache: Path) -> bytes:
    command = [sys.executable, "-m", "cliffwatch.report.picture", str(directory)]
    environment = os.environ | ENVIRONMENT | {"MPLCONFIGDIR": str(cache)}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            cwd="/",
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Problem(Code.INTERNAL, f"the picture was not drawn within {_PATIENCE_SECONDS:g} s") from error
    if done.returncode != 0:
        words = last_line(done.stderr.decode(errors="replace"))
        detail = f"the picture cannot be drawn: {words or 'its process ended'} (status {done.returncode})"
        raise Problem(Code.INTERNAL, detail)
    return done.stdout
