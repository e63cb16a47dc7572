"""A run as each of its parts measured it, by the part's own windows: explains a finding about one part."""

from dataclasses import replace

from cliffwatch.base.errors import Problem
from cliffwatch.journal import JournalReader, files
from cliffwatch.model.part_names import split_part
from cliffwatch.report.collect import Collected, as_far_as_readable
from cliffwatch.report.part_view import as_part


class PartRuns:
    """A run by its parts; each part's windows are read once."""

    def __init__(self, run: Collected) -> None:
        self._run = run
        self._by_part: dict[str, Collected] = {}

    def of(self, operation: str | None) -> tuple[Collected, str | None]:
        """The run as the part of a latency `PART/operation` measured it, and the name of the operation there; for
        another latency the run itself.

        Where the part's windows are not in the journal, as in a bundle, there is less: what the run's have of it.
        """
        part, own = split_part(operation or "")
        if self._run.order is None or part not in self._run.order.parts:
            return self._run, operation
        if part not in self._by_part:
            self._by_part[part] = self._read(part)
        found = self._by_part[part]
        if found.windows:
            return found, own
        windows = [as_part(window, part) for window in self._run.windows]
        return replace(found, directory=self._run.directory, windows=windows), operation

    def _read(self, part: str) -> Collected:
        directory = self._run.directory / files.PARTS / part
        reader = JournalReader(directory)
        try:
            windows = as_far_as_readable(reader, files.WINDOWS, reader.windows())
        except Problem:
            windows = []
        self._run.faults.extend(replace(fault, file=f"{files.PARTS}/{part}/{fault.file}") for fault in reader.faults)
        drives = self._run.facts.get("drives")
        listed = drives if isinstance(drives, list) else []
        own = [each for each in listed if isinstance(each, dict) and each.get("part") == part]
        return replace(self._run, directory=directory, windows=windows, facts=self._run.facts | {"drives": own})
