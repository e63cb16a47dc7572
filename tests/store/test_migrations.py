import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect
from testkit.postgres import PostgresqlServer

from cliffwatch.base.errors import Code, Problem
from cliffwatch.store.database import downgrade, is_current, open_database, upgrade
from cliffwatch.store.models import BaseRow


def tables(url: str) -> set[str]:
    database = open_database(url)
    try:
        return set(inspect(database.engine).get_table_names()) - {"alembic_version"}
    finally:
        database.close()


def test_tables_come_go_and_come_again(database_url: str) -> None:
    upgrade(database_url)
    made = tables(database_url)
    downgrade(database_url, "base")
    assert tables(database_url) == set()
    upgrade(database_url)
    assert tables(database_url) == made == set(BaseRow.metadata.tables)


def test_every_step_of_the_history_can_be_taken_back(database_url: str) -> None:
    upgrade(database_url)
    downgrade(database_url, "-1")
    upgrade(database_url, "+1")
    assert tables(database_url) == set(BaseRow.metadata.tables)


def test_an_up_to_date_database_is_left_as_it_is(database_url: str) -> None:
    upgrade(database_url)
    upgrade(database_url)
    assert tables(database_url) == set(BaseRow.metadata.tables)


def test_models_and_migrations_agree(database_url: str) -> None:
    upgrade(database_url)
    database = open_database(database_url)
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, BaseRow.metadata) == []
    database.close()


def test_an_old_database_is_distinguished_from_a_current_one(database_url: str) -> None:
    database = open_database(database_url)
    with database.snapshot() as session:
        assert not is_current(session)
    upgrade(database_url)
    with database.snapshot() as session:
        assert is_current(session)
    database.close()


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_keep_every_name_is_refused(postgresql_server: PostgresqlServer, encoding: str) -> None:
    with pytest.raises(Problem) as refused:
        upgrade(postgresql_server.new_database_url(encoding))
    assert refused.value.code is Code.DATABASE_UNAVAILABLE
    assert f"keeps its text as {encoding}" in refused.value.detail
    assert "createdb --encoding UTF8 --template template0" in refused.value.detail
