"""Input journal and output file of the commands that need no service."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from cliffwatch.base.durable import output_file
from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.output import Output, print_json, say
from cliffwatch.cli.paths import is_directory, is_file, is_odd
from cliffwatch.cli.run_id import local_run
from cliffwatch.cli.session import Session
from cliffwatch.journal import files

#: `--output` of commands whose data has its own `--format`: how to print the name of the written file.
FileOutputOption = Annotated[
    Output | None, typer.Option("--output", help="How to print which file was written, given --to.")
]


def is_journal(run: str) -> bool:
    """Whether `run` is the path of a journal, even without its order.json, and not the id of a run."""
    return any(is_file(Path(run) / name) for name in (files.ORDER, files.EVENTS, files.WINDOWS))


def journal_of(session: Session, run: str) -> Path:
    """Journal directory of a run of this machine, given by its id or by a path. Raises Problem."""
    if is_odd(run):
        raise Problem(Code.BAD_REQUEST, f"{run} is no file and no directory; name a run, or one of those")
    directory = Path(run) if is_directory(run) else local_run(session.settings().runs_directory, run)
    if not is_file(directory / files.ORDER):
        detail = f"{directory} is no journal: there is no {files.ORDER} in it; name a run, or a run's own directory"
        raise Problem(Code.NOT_FOUND, detail)
    return directory


@contextmanager
def written(path: Path | None) -> Iterator[BinaryIO]:
    """Open `path` for writing, stdout for None. A file has its name only once complete. Raises Problem(bad_request)."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with output_file(path) as file:
            yield file
    except OSError as error:
        raise Problem(Code.BAD_REQUEST, f"--to: {path} cannot be written: {error.strerror}") from error


def say_written(path: Path | None, form: str, how: Output) -> None:
    """Print which file was written; print nothing if the content went to stdout."""
    if path is None:
        return
    say(f"wrote {path}")
    if how is Output.JSON:
        print_json({"file": str(path), "format": form})
