"""Pages of reports."""

from pathlib import Path

from cliffwatch.report.build import build, write


def page_of(directory: Path) -> str:
    write(directory, build(directory))
    return (directory / "report.html").read_text(encoding="utf-8")
