import math

import pytest
from sqlalchemy import text as sql
from sqlalchemy import update

from cliffwatch.base.errors import Code, Problem
from cliffwatch.model.scope import Scope
from cliffwatch.store.database import Database
from cliffwatch.store.models import TokenRow
from cliffwatch.store.tokens import create_token, ensure_first_token, find_token, holds, revoke_token


def test_a_token_is_found_by_its_text_alone(database: Database) -> None:
    with database.session() as session:
        row, text = create_token(session, "ci", Scope.OPERATE, 1.0)
        found = find_token(session, text)
        assert found is row
        assert text.startswith(f"cw_{row.id}_")


@pytest.mark.parametrize("wrong", ["", "cw_", "cw__", "nonsense", "cw_{id}_", "cw_{id}_{id}", "xx_{id}_{secret}", "é"])
def test_anything_else_is_no_token(database: Database, wrong: str) -> None:
    with database.session() as session:
        row, text = create_token(session, "ci", Scope.OPERATE, 1.0)
        assert find_token(session, wrong.format(id=row.id, secret=text.split("_", 2)[2])) is None
        other, _ = create_token(session, "other", Scope.ADMIN, 1.0)
        assert find_token(session, text.replace(row.id, other.id)) is None


def test_the_secret_is_not_kept(database: Database) -> None:
    with database.session() as session:
        row, text = create_token(session, "ci", Scope.READ, 1.0)
        secret = text.split("_", 2)[2]
        assert all(secret not in str(getattr(row, column.key)) for column in TokenRow.__table__.columns)
        assert len(row.hash) == 64


def test_a_revoked_token_is_no_token(database: Database) -> None:
    with database.session() as session:
        row, text = create_token(session, "ci", Scope.READ, 1.0)
        revoke_token(session, row.id, 2.0)
        assert find_token(session, text) is None
        with pytest.raises(Problem) as caught:
            revoke_token(session, row.id, 3.0)
        assert caught.value.code is Code.NOT_FOUND


def test_the_last_admin_token_cannot_be_revoked(database: Database) -> None:
    with database.session() as session:
        first, _ = create_token(session, "first", Scope.ADMIN, 1.0)
        with pytest.raises(Problem) as caught:
            revoke_token(session, first.id, 2.0)
        assert caught.value.code is Code.CONFLICT
        create_token(session, "second", Scope.ADMIN, 3.0)
        revoke_token(session, first.id, 4.0)


def test_the_first_token_is_made_once(database: Database) -> None:
    with database.session() as session:
        text = ensure_first_token(session, 1.0)
        assert text is not None
        found = find_token(session, text)
        assert found is not None
        assert Scope.of(found.scope) is Scope.ADMIN
    with database.session() as session:
        assert ensure_first_token(session, 2.0) is None


@pytest.mark.parametrize("hash_of", ["x'ff00'", "'\u00e9'"])
def test_a_damaged_hash_is_of_no_token(database: Database, hash_of: str) -> None:
    with database.session() as session:
        _, text = create_token(session, "ci", Scope.READ, 1.0)
        session.execute(sql(f"UPDATE tokens SET hash = {hash_of}"))  # noqa: S608  our own texts
    with database.snapshot() as session:
        assert find_token(session, text) is None


def test_a_revoked_token_whose_time_is_damaged_stays_revoked(database: Database) -> None:
    with database.session() as session:
        row, text = create_token(session, "ci", Scope.READ, 1.0)
        session.execute(update(TokenRow).values(revoked_at=math.inf))
    with database.snapshot() as session:
        assert find_token(session, text) is None
        assert not holds(session, row.id)
