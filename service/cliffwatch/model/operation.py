"""The operations that have a latency."""

from collections.abc import Collection
from enum import StrEnum


class Operation(StrEnum):
    """Latency names of the engine contract, the primary one first: what a client waits for before what it causes.

    Each may have a twin, `…_service`, that counts from when the work began.
    """

    PUBLISH = "publish"
    END_TO_END = "end_to_end"
    APPEND = "append"
    WRITE = "write"
    SYNC = "sync"
    READ = "read"


def primary_latency(names: Collection[str]) -> str | None:
    """The latency that a run is spoken of by; of names that the contract does not have, the first."""
    return next((each.value for each in Operation if each in names), next(iter(names), None))
