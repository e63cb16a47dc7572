"""Token service: create and revoke API tokens, and identify the caller by a token."""

from collections.abc import Callable
from dataclasses import dataclass

from cliffwatch.base.clock import Clock
from cliffwatch.model.scope import Scope
from cliffwatch.store import tokens
from cliffwatch.store.database import Database


@dataclass(frozen=True, slots=True)
class Caller:
    """Caller of a request: name and scope of its token."""

    token_id: str
    name: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class NewToken:
    """A new token. `text` is the token itself, for its owner: the database holds only a hash of the secret in it."""

    id: str
    name: str
    scope: Scope
    created_at: float
    text: str


@dataclass(frozen=True, slots=True)
class TokenService:
    """Tokens as rows of the database."""

    database: Database
    clock: Clock

    def caller_of(self, text: str) -> Caller | None:
        """Caller that a token's text belongs to; None where it is unknown, or was revoked."""
        with self.database.snapshot() as session:
            row = tokens.find_token(session, text)
        return None if row is None else Caller(row.id, row.name, Scope.of(row.scope))

    def holds(self, caller: Caller) -> bool:
        """Whether an authenticated caller's token is still valid."""
        with self.database.snapshot() as session:
            return tokens.holds(session, caller.token_id)

    def create(self, name: str, scope: Scope) -> NewToken:
        """Create a token for the user or program called `name`."""
        with self.database.session() as session:
            row, text = tokens.create_token(session, name, scope, self.clock.wall())
        return NewToken(row.id, row.name, scope, row.created_at, text)

    def revoke(self, token_id: str) -> None:
        """Revoke a token at once and for good. Raises Problem: not_found, or conflict for the last one of scope
        admin."""
        with self.database.session() as session:
            tokens.revoke_token(session, token_id, self.clock.wall())

    def ensure_first(self, kept: Callable[[], str], keep: Callable[[str], None]) -> str | None:
        """Create a token of scope admin if the database never had a token, or does not know the one in the token file.

        Returns the new text, or None where no token was needed. `kept` reads the token file, empty for none, and `keep`
        writes the new text to it. Both are called inside the transaction: of two services that start at once only one
        creates a token, and a token that cannot be stored is not created.
        """
        with self.database.session() as session:
            present, now = kept(), self.clock.wall()
            text = tokens.ensure_first_token(session, now)
            if text is None and present and not tokens.is_known(session, present):
                text = tokens.create_token(session, tokens.FIRST_TOKEN_NAME, Scope.ADMIN, now)[1]
            if text is not None:
                keep(text)
        return text
