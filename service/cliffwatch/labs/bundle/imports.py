"""Import a bundle as a run of this service: unpack it aside, check it, and rename it into place in one step.

If the service or the unpacking process is killed, at any moment, the run exists as a whole or not at all.
"""

import asyncio
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cliffwatch.app.admission import RunTurns, admit
from cliffwatch.app.index import UNFINISHED_PREFIX
from cliffwatch.base import durable
from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.logs import last_line
from cliffwatch.base.memory_limit import ENVIRONMENT
from cliffwatch.journal import files
from cliffwatch.labs.bundle.bounds import what_ended
from cliffwatch.labs.bundle.manifest import taken
from cliffwatch.labs.bundle.unpack import disk_problem
from cliffwatch.report.timestamps import timestamp
from cliffwatch.store.database import Database
from cliffwatch.store.models import RunRow

#: Prefix of unfinished imports, which the service removes when it starts.
PENDING_PREFIX = f"{UNFINISHED_PREFIX}import-"
#: Longest time for unpacking. The bundle of a run of 36 h takes some ten seconds.
_PATIENCE_SECONDS = 1800.0


class ImportService:
    """Import of bundles into this service."""

    def __init__(
        self, runs_directory: Path, database: Database, clock: Clock, run_turns: RunTurns | None = None
    ) -> None:
        self._runs_directory = runs_directory
        self._database = database
        self._clock = clock
        self._run_turns = run_turns or RunTurns()
        #: One bundle is opened at a time, because each may take a gigabyte. A waiting request holds no thread.
        self.turns = asyncio.Lock()

    def sweep(self) -> None:
        """Remove unfinished imports of a service that was killed."""
        for path in self._runs_directory.glob(f"{PENDING_PREFIX}*"):
            if path.is_dir():
                # Its process may still be running; files that it makes from now on are removed at the next start.
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    @contextmanager
    def upload(self) -> Iterator[Path]:
        """Path of a temporary file for an upload, on the disk of the journals; removed when the block ends."""
        path = self._runs_directory / f"{PENDING_PREFIX}{secrets.token_hex(8)}.tar.zst"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def take(self, bundle: Path, imported_by: str) -> str:
        """Import a bundle as a run; returns the run's id.

        Raises Problem, and then leaves no files: bundle_invalid, space_insufficient, or conflict when a run with that
        id exists.
        """
        pending = self._runs_directory / f"{PENDING_PREFIX}{secrets.token_hex(8)}"
        try:
            manifest = self._unpack(bundle, pending)
            run_id = str(manifest["run_id"])
            note = {"at": timestamp(self._clock.wall()), "by": imported_by, "bundle": manifest}
            durable.write_json_durably(pending / files.IMPORTED, note)
            self._settle(pending, run_id)
        except OSError as error:
            raise disk_problem(self._runs_directory, error) from error
        finally:
            # After a successful import the directory has its final name, and this removes nothing.
            shutil.rmtree(pending, ignore_errors=True)
        return run_id

    def _unpack(self, bundle: Path, pending: Path) -> dict[str, Any]:
        command = [sys.executable, "-m", "cliffwatch.labs.bundle", str(bundle), str(self._runs_directory), pending.name]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE_SECONDS,
                cwd="/",
                check=False,
                env={**os.environ, **ENVIRONMENT},
            )
        except subprocess.TimeoutExpired as error:
            detail = f"the bundle was not unpacked within {_PATIENCE_SECONDS:g} s"
            raise Problem(Code.BUNDLE_INVALID, detail) from error
        try:
            body: dict[str, Any] = json.loads(done.stdout)
        except ValueError as error:
            if (reason := what_ended(done.returncode)) is not None:
                raise Problem(Code.BUNDLE_INVALID, f"the bundle was rejected: {reason}") from error
            words = last_line(done.stderr.decode(errors="replace"))
            detail = f"the process that unpacks bundles ended with status {done.returncode}: {words}"
            raise Problem(Code.INTERNAL, detail) from error
        if "problem" not in body:
            return body
        problem = body["problem"]
        faults = [FieldFault(fault["field"], fault["message"]) for fault in problem["faults"]]
        raise Problem(Code(problem["code"]), problem["detail"], faults)

    def _settle(self, pending: Path, run_id: str) -> None:
        """Rename an import into place: from here on the run exists, with its report."""
        directory = self._runs_directory / run_id
        with self._run_turns.of(run_id):
            with self._database.snapshot() as session:
                if session.get(RunRow, run_id) is not None:
                    raise taken(run_id)
            try:
                # Fails when the name is taken: a journal is never empty.
                pending.rename(directory)
            except OSError as error:
                if directory.exists():
                    raise taken(run_id) from error
                raise
            admit(self._database, directory)
