"""Run nvme-cli on a drive. A drive may hang, and a process that waits for it in the kernel cannot be killed."""

import json
import os
import re
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

PROGRAM = "nvme"
TIMEOUT_SECONDS = 5.0
#: Longest wait for a killed process to end.
_KILL_WAIT_SECONDS = 1.0
#: Commands of nvme-cli 2, each with its name in nvme-cli 3, which accepts the old name with a warning or not at all.
_NAMES_SINCE_3 = {"smart-log": ("log", "smart"), "id-ctrl": ("id", "ctrl"), "endurance-log": ("log", "endurance")}
_SHOWN_CHARACTERS = 120
#: Line of a hex dump: the offset, up to sixteen bytes, then the same bytes as text.
_HEX_LINE = re.compile(r"[0-9a-f]{4,}: ((?:[0-9a-f]{2} ){1,16})")


class Reason(StrEnum):
    """Why a drive could not be queried."""

    TIMEOUT = "timeout"
    COMMAND = "command"
    OUTPUT = "output"


@dataclass(slots=True)
class DriveError(Exception):
    """A query of a drive failed: the kind of reason, and a sentence for the log."""

    reason: Reason
    detail: str

    def __str__(self) -> str:
        return self.detail


@dataclass(slots=True)
class Commands:
    """nvme-cli commands for one drive; not thread-safe. `count` is the number of commands that were started."""

    node: str
    program: str = PROGRAM
    timeout_seconds: float = TIMEOUT_SECONDS
    count: int = 0
    #: Version that nvme-cli reports; None until it is known.
    _version: str | None = field(default=None)
    _stuck: "subprocess.Popen[str] | None" = field(default=None)

    def ask(self, *words: str) -> dict[str, Any]:
        """Run `nvme WORDS NODE` and return the JSON object that it prints. Command names are those of nvme-cli 2; words
        that begin with a dash go after the node.

        Raises DriveError. While a command that could not be killed still waits for the drive, no other is started.
        """
        names = [word for word in words if not word.startswith("-")]
        flags = [word for word in words if word.startswith("-")]
        return self._parsed(self._answer(names, [*flags, "--output-format=json"]))

    def ask_page(self, page: int, length: int) -> bytes:
        """Read `length` bytes of a log page with `nvme get-log`. Raises DriveError."""
        output = self._answer(["get-log"], [f"--log-id={page:#x}", f"--log-len={length}", "--namespace-id=1"])
        shown = [found[1] for line in output.splitlines() if (found := _HEX_LINE.match(line))]
        return bytes.fromhex("".join(shown))

    def _answer(self, names: list[str], flags: list[str]) -> str:
        """Run an nvme-cli command and return its output. Raises DriveError."""
        if self._stuck is not None and self._stuck.poll() is None:
            raise DriveError(Reason.TIMEOUT, f"{self.node} has not answered an earlier command yet")
        self._stuck = None
        if self._version is None:
            self._version = self._version_of_program()
        if len(names) == 1 and int(self._version.partition(".")[0]) >= 3:
            names = list(_NAMES_SINCE_3.get(names[0], names))
        return self._output([self.program, *names, self.node, *flags])

    def _version_of_program(self) -> str:
        """Version of nvme-cli, such as `2.3` from `nvme version 2.3 (git 2.3)`; 0 if it reports none."""
        try:
            said = self._output([self.program, "version"])
        except DriveError as error:
            if error.reason is not Reason.COMMAND:
                raise
            return "0"
        found = re.search(r"version (\d+(?:\.\d+)*)", said)
        return "0" if found is None else found[1]

    def _output(self, command: list[str]) -> str:
        self.count += 1
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise DriveError(Reason.COMMAND, f"{command[0]} cannot be started: {error.strerror}") from error
        try:
            output, complaint = process.communicate(timeout=self.timeout_seconds)
        except subprocess.TimeoutExpired as error:
            self._end(process)
            detail = f"{' '.join(command)} did not end within {self.timeout_seconds:g} s"
            raise DriveError(Reason.TIMEOUT, detail) from error
        if process.returncode != 0:
            said = (complaint.strip() or output.strip() or "it printed nothing").splitlines()[0]
            raise DriveError(Reason.COMMAND, f"{' '.join(command)} ended with status {process.returncode}: {said}")
        return output

    def _end(self, process: "subprocess.Popen[str]") -> None:
        # Kill the whole process group: child processes may hold the pipes open.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        try:
            process.wait(_KILL_WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._stuck = process
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

    def _parsed(self, output: str) -> dict[str, Any]:
        try:
            document = json.loads(output)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            shown = " ".join(output.split())[:_SHOWN_CHARACTERS] or "nothing"
            program = f"nvme-cli {self._version}"
            raise DriveError(
                Reason.OUTPUT, f"{program}'s output for {self.node} is not a JSON object: it printed {shown}"
            )
        return document
