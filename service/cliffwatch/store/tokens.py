"""Bearer tokens: `cw_<id>_<secret>`. The row is found by the id; only a SHA-256 of the secret is stored.

A secret is 256 random bits, so a plain hash is as safe as a slow one, and a request with a token costs no more than
another.
"""

import hashlib
import hmac
import secrets
import time

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cliffwatch.base.errors import Code, Problem
from cliffwatch.model.scope import Scope
from cliffwatch.store.database import take_turns
from cliffwatch.store.models import TokenRow

_PREFIX = "cw"
FIRST_TOKEN_NAME = "admin"


def create_token(session: Session, name: str, scope: Scope, now: float) -> tuple[TokenRow, str]:
    """Create a token; returns its row, with only a hash of the secret, and the text for its owner."""
    secret = secrets.token_urlsafe(32)
    row = TokenRow(
        id=secrets.token_hex(4), name=name, scope=scope.label, hash=_hash(secret), created_at=now, revoked_at=None
    )
    session.add(row)
    session.flush()
    return row, f"{_PREFIX}_{row.id}_{secret}"


def find_token(session: Session, text: str) -> TokenRow | None:
    """Token that has this text; None where it is unknown, was revoked, or has an unknown scope."""
    prefix, _, rest = text.partition("_")
    token_id, _, secret = rest.partition("_")
    row = session.get(TokenRow, token_id) if prefix == _PREFIX and token_id.isalnum() else None
    expected = row.hash if row is not None else ""
    # Compared in constant time, and also when no row was found, so that the time taken reveals nothing.
    matches = hmac.compare_digest(_hash(secret).encode(), expected.encode())
    usable = row is not None and matches and row.revoked_at is None and row.scope.upper() in Scope.__members__
    return row if usable else None


def holds(session: Session, token_id: str) -> bool:
    """Whether the token of this id exists and was not revoked."""
    row = session.get(TokenRow, token_id)
    return row is not None and row.revoked_at is None


def is_known(session: Session, text: str) -> bool:
    """Whether the database has a token with the id in this text, revoked or not."""
    token_id = text.partition("_")[2].partition("_")[0]
    return token_id.isalnum() and session.get(TokenRow, token_id) is not None


def revoke_token(session: Session, token_id: str, now: float) -> None:
    """Revoke a token. Raises Problem(not_found), and Problem(conflict) for the last valid token of scope admin."""
    take_turns(session, "tokens")
    row = session.get(TokenRow, token_id)
    if row is None or row.revoked_at is not None:
        raise Problem(Code.NOT_FOUND, f"no valid token has the id {token_id}")
    if Scope.of(row.scope) is Scope.ADMIN:
        valid = select(func.count()).where(TokenRow.scope == Scope.ADMIN.label, TokenRow.revoked_at.is_(None))
        if session.scalar(valid) == 1:
            raise Problem(
                Code.CONFLICT, f"{token_id} is the last token of scope admin; make another before revoking it"
            )
    row.revoked_at = now


def ensure_first_token(session: Session, now: float | None = None) -> str | None:
    """Create a token of scope admin if the database never had a token; returns its text, otherwise None."""
    take_turns(session, "tokens")
    if session.scalar(select(func.count()).select_from(TokenRow)):
        return None
    return create_token(session, FIRST_TOKEN_NAME, Scope.ADMIN, time.time() if now is None else now)[1]


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
