"""The operations that have a latency."""

from collections.abc import Collection
from enum import StrEnum

from cliffwatch.model.part_names import split_part


class Operation(StrEnum):
    """Latency names of the engine contract, in order of importance: first those that a client waits for.

    Each may have a twin, `…_service`, that counts from when the work began.
    """

    PUBLISH = "publish"
    TRANSACTION = "transaction"
    END_TO_END = "end_to_end"
    APPEND = "append"
    WRITE = "write"
    SYNC = "sync"
    READ = "read"


def primary_latency(names: Collection[str]) -> str | None:
    """Primary latency of a run: the most important of these names; if the contract has none of them, the first.

    Names of parts, `PART/operation`, count only where there are no others.
    """
    own = [name for name in names if not split_part(name)[0]] or list(names)
    by_operation = {split_part(name)[1]: name for name in reversed(own)}
    return next((by_operation[each] for each in Operation if each in by_operation), next(iter(own), None))
