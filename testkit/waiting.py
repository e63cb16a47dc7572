"""Poll until a condition holds, with a timeout."""

import time
from collections.abc import Callable
from typing import TypeVar

#: Default timeout: longer than anything in the tests takes.
PATIENCE_SECONDS = 120.0

Found = TypeVar("Found")


def wait_until(
    condition: Callable[[], Found | None], what: str | Callable[[], object], seconds: float = PATIENCE_SECONDS
) -> Found:
    """Poll `condition` until its value is true, and return that. Raises AssertionError with `what` on timeout."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what() if callable(what) else what}")
        time.sleep(0.02)
    return found
