"""Links that log a browser in once: a code in memory stands for the token, which so is in no address and no history."""

import secrets
import threading

from cliffwatch.base.clock import Clock

#: How long a link is valid, and how many of one token are kept; its oldest goes first.
VALID_SECONDS, LINKS_LIMIT = 600.0, 10
_CODE_BYTES = 24


class LoginLinks:
    """Codes of links that were not used yet, each with its token. A restart of the service forgets them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: Token, and when the link was made (monotonic seconds), by code; the oldest first.
        self._tokens: dict[str, tuple[str, float]] = {}

    def make(self, token: str) -> str:
        """Code of a new link for this token."""
        code = secrets.token_urlsafe(_CODE_BYTES)
        with self._lock:
            own = [each for each, (owner, _) in self._tokens.items() if owner == token]
            for oldest in own[: max(0, len(own) + 1 - LINKS_LIMIT)]:
                del self._tokens[oldest]
            self._tokens[code] = (token, self._clock.monotonic())
        return code

    def take(self, code: str) -> str | None:
        """Token of the link with this code, which is used up by it; None for one that is unknown, used or too old."""
        with self._lock:
            token, made = self._tokens.pop(code, (None, 0.0))
        return token if self._clock.monotonic() - made <= VALID_SECONDS else None
