"""Where the report of a run that is not over is kept: apart, so that it is never taken for the one of its end."""

from pathlib import Path

from cliffwatch.journal import files

_PLACE = "so-far"


def provisional_directory(directory: Path) -> Path:
    """For report.json and report.html of the run in `directory`, until it has its own."""
    return directory / _PLACE


def place_of_report(directory: Path, *, is_over: bool) -> Path:
    """Where the report of the run in `directory` is: beside its journal, or apart for as long as it is not over."""
    return directory if is_over or (directory / files.REPORT_JSON).exists() else provisional_directory(directory)
