"""Lines from all over a long journal file, without reading the rest of it."""

from pathlib import Path

from cliffwatch.base.regular_files import reading


def spread_lines(path: Path, count: int) -> list[bytes]:
    """At most `count` whole lines at evenly spaced byte offsets, in order; none of a file that cannot be read."""
    try:
        size = path.stat().st_size
        with reading(path) as file:
            lines: list[bytes] = []
            for index in range(count):
                place = size * index // count
                file.seek(max(0, place - 1))
                if place > 0:
                    file.readline()
                line = file.readline()
                if line.endswith(b"\n") and (not lines or line != lines[-1]):
                    lines.append(line)
            return lines
    except OSError:
        return []  # the report lists what cannot be read
