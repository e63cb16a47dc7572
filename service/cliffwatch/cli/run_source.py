"""What commands that need no service share: the journal that they read, and the file that they write."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from cliffwatch.cli.session import Session
from cliffwatch.errors import Code, Problem
from cliffwatch.journal import files
from cliffwatch.whole_file import whole_file

SourceArgument = Annotated[str, typer.Argument(metavar="RUN|DIRECTORY", help="A run of this machine, or a journal.")]


def journal_of(session: Session, run: str) -> Path:
    """The directory that a run of this machine, or a path, stands for. Raises Problem(not_found)."""
    directory = Path(run) if Path(run).is_dir() else session.settings().runs_directory / run
    if not directory.is_dir():
        raise Problem(
            Code.NOT_FOUND, f"there is no {run} here, and no run {run} in {directory.parent}; name one that is there"
        )
    if not (directory / files.ORDER).is_file():
        detail = f"{directory} is no journal: there is no {files.ORDER} in it; name a run, or a run's own directory"
        raise Problem(Code.NOT_FOUND, detail)
    return directory


@contextmanager
def written(path: Path | None) -> Iterator[BinaryIO]:
    """A file that has its name only once it is whole; stdout for None. Raises Problem(bad_request)."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with whole_file(path) as file:
            yield file
    except OSError as error:
        raise Problem(Code.BAD_REQUEST, f"--to: {path} cannot be written: {error.strerror}") from error
