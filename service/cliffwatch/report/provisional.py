"""Directory of the provisional report of an unfinished run, apart from that of the final report."""

from pathlib import Path

from cliffwatch.journal import files

_PLACE = "so-far"


def provisional_directory(directory: Path) -> Path:
    """Directory for report.json and report.html of the run in `directory`, until it has its final report."""
    return directory / _PLACE


def place_of_report(directory: Path, *, is_over: bool) -> Path:
    """Directory of the run's current report: that of its journal once the run is over or has its final report, else
    that of the provisional report."""
    return directory if is_over or (directory / files.REPORT_JSON).exists() else provisional_directory(directory)
