"""The `load` of a pgbench workload, and the job that the engine's process is given."""

from typing import Annotated, Literal

from pydantic import Field

from cliffwatch.model.document import Strict
from cliffwatch.model.target import AbsolutePath

#: File in the scratch directory with the server's version and settings, which preparing writes.
FACTS_FILE = "server.json"
#: What pgbench makes for each unit of scale, tables with their indexes, in bytes.
BYTES_PER_SCALE = 16_000_000
#: What a transaction that updates makes the server write at most: the page of an account in full in the WAL, that page
#: at the next checkpoint, and a row of history, in bytes.
BYTES_PER_UPDATE = 17_000


class PgbenchLoad(Strict):
    """Transactions of a built-in script of pgbench: `rate` a second in all, or as many as the clients complete."""

    scale: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    clients: Annotated[int, Field(ge=1, le=10_000)] = 8
    threads: Annotated[int, Field(ge=1, le=256)] = 1
    rate: Annotated[float | None, Field(gt=0, le=1e7)] = None
    script: Literal["tpcb-like", "simple-update", "select-only"] = "tpcb-like"
    protocol: Literal["simple", "extended", "prepared"] = "prepared"
    password_file: AbsolutePath | None = None
    ca_file: AbsolutePath | None = None


class PgbenchJob(Strict):
    """What the engine's process is to do. Times in seconds since the epoch, on the grid of the windows.

    `may_move`: the load may begin later than `start`, and then ends as much later.
    """

    run_id: str
    dsn: str
    load: PgbenchLoad
    start: float
    stop: float
    window_seconds: float
    may_move: bool
    scratch: str

    @property
    def owner(self) -> str:
        """How the comment on the schema begins."""
        return f"cliffwatch {self.run_id}"

    @property
    def application_name(self) -> str:
        """Name under which the server lists pgbench's sessions, which has 63 bytes at most."""
        return self.owner[:63]

    def owns(self, comment: str) -> bool:
        """Whether the schema with this comment is this run's."""
        return comment.partition(":")[0] == self.owner
