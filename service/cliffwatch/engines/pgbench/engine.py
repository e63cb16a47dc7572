"""The pgbench engine: loads an empty database of a PostgreSQL server.

Its process is `python -m cliffwatch.engines.pgbench`, which runs PostgreSQL's own pgbench.
"""

import json
import signal
import sys

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.units import format_size
from cliffwatch.engines.check import run_check
from cliffwatch.engines.contract import EngineContext, EngineFacts, JsonLines, Launch, Probe, Translator
from cliffwatch.engines.pgbench.load import BYTES_PER_SCALE, BYTES_PER_UPDATE, FACTS_FILE, PgbenchJob, PgbenchLoad
from cliffwatch.engines.pgbench.program import find_pgbench, load_command, version_of_pgbench
from cliffwatch.engines.secrets import misplaced_secret
from cliffwatch.model.plan import LoadPlan
from cliffwatch.model.target import DATABASE_SCHEMA

#: Connecting and each of a few statements may take five seconds.
_PATIENCE_SECONDS = 20.0


class PgbenchEngine:
    """Engine that runs pgbench in a process of its own, and reads its log."""

    name = "pgbench"
    load_model = PgbenchLoad
    target_kinds = frozenset({"postgres"})
    latencies = ("transaction", "transaction_service")
    stop_signal = signal.SIGTERM
    reads_history = False

    def is_virtual(self, load: PgbenchLoad) -> bool:
        return False

    def plan(self, load: PgbenchLoad, context: EngineContext) -> LoadPlan:
        seconds = context.stop - context.start
        command = load_command(find_pgbench(), load, seconds, context.scratch / "transactions")
        written = _written_bytes(load, seconds)
        return LoadPlan(writes=(), command=tuple(command), direct=True, written_bytes=written, notes=_notes(load))

    def probe(self, load: PgbenchLoad, context: EngineContext) -> Probe:
        return run_check(self._command("check", load, context), _PATIENCE_SECONDS, "the server")

    def prepare(self, load: PgbenchLoad, context: EngineContext) -> Launch:
        """Process that makes the tables and fills them."""
        return Launch(self._command("prepare", load, context))

    def launch(self, load: PgbenchLoad, context: EngineContext) -> Launch:
        return Launch(self._command("load", load, context))

    def translator(self, load: PgbenchLoad, context: EngineContext) -> Translator:
        return JsonLines()

    def clear(self, load: PgbenchLoad, context: EngineContext) -> Launch:
        """Process that drops the tables."""
        return Launch(self._command("clear", load, context))

    def facts(self, load: PgbenchLoad, context: EngineContext) -> EngineFacts:
        versions = {"pgbench": version_of_pgbench(find_pgbench())}
        try:
            found = json.loads((context.scratch / FACTS_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return EngineFacts(versions)  # Preparing was cut short; the load fails if the server is not there.
        settings = {str(name): str(value) for name, value in found["settings"].items()}
        settings["flushes_timed"] = "yes" if found["times_flushes"] else "no"
        return EngineFacts(versions | {"postgresql": str(found["version"])}, settings, tuple(found["warnings"]))

    @staticmethod
    def _command(action: str, load: PgbenchLoad, context: EngineContext) -> list[str]:
        """Command of one action. Raises Problem(bad_request) for a password file that lies elsewhere."""
        assert context.dsn is not None, "the engine loads postgres targets only"
        if load.password_file is not None:
            field = "load.password_file"
            if faults := misplaced_secret(field, load.password_file, context.state_directory):
                raise Problem(Code.BAD_REQUEST, "the password cannot be read", faults)
        job = PgbenchJob(
            run_id=context.run_id,
            dsn=context.dsn,
            load=load,
            start=context.start,
            stop=context.stop,
            window_seconds=context.window_seconds,
            may_move=context.is_first,
            scratch=str(context.scratch),
        )
        return [sys.executable, "-m", "cliffwatch.engines.pgbench", action, job.model_dump_json()]


def _written_bytes(load: PgbenchLoad, seconds: float) -> int | None:
    """Most that the server writes, tables included; None where nothing bounds the rate."""
    tables = load.scale * BYTES_PER_SCALE
    if load.script == "select-only":
        return tables
    return None if load.rate is None else tables + round(load.rate * seconds * BYTES_PER_UPDATE)


def _notes(load: PgbenchLoad) -> tuple[str, ...]:
    """Sentences on what the load does to the database."""
    size = format_size(load.scale * BYTES_PER_SCALE)
    notes = [f"makes tables of about {size} in the schema {DATABASE_SCHEMA}, which is dropped at the end"]
    if load.script != "select-only":
        notes.append("each transaction adds a row to pgbench_history")
    return tuple(notes)
