"""Limits on the number of live streams, in all and per token: each holds a connection while its run goes on."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from cliffwatch.base.errors import Code, Problem

#: A quarter of the connections that one address may have, so that other requests always find a free one.
STREAMS_LIMIT = 64
#: Half of all streams, so that one token alone cannot use them up.
STREAMS_OF_A_TOKEN_LIMIT = 32


class StreamPlaces:
    """Counter of live streams by token id. Used by the event loop alone."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextmanager
    def place(self, token_id: str) -> Iterator[None]:
        """Count a stream until the block ends. Raises Problem(too_many_streams)."""
        if self._open[token_id] >= STREAMS_OF_A_TOKEN_LIMIT:
            self._refuse(f"{STREAMS_OF_A_TOKEN_LIMIT} live streams are open with this token")
        if self._open.total() >= STREAMS_LIMIT:
            self._refuse(f"{STREAMS_LIMIT} live streams are open")
        self._open[token_id] += 1
        try:
            yield
        finally:
            self._open[token_id] -= 1
            # Drop counts of zero, so that revoked tokens do not accumulate.
            self._open += Counter()

    def _refuse(self, reason: str) -> None:
        raise Problem(
            Code.TOO_MANY_STREAMS, f"{reason}, which is the limit; close one, or ask for the run now and then"
        )
