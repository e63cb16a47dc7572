"""Waiting for what is about to happen."""

import time
from collections.abc import Callable
from typing import TypeVar

#: Longer than anything takes here; who waits so long has failed.
PATIENCE_SECONDS = 120.0

Found = TypeVar("Found")


def wait_until(
    condition: Callable[[], Found | None], what: str | Callable[[], object], seconds: float = PATIENCE_SECONDS
) -> Found:
    """What `condition` gives once that is true. `what` names it where it did not come about, or says what did."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what() if callable(what) else what}")
        time.sleep(0.02)
    return found
