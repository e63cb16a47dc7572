"""Alembic's entry: works on the connection that the service hands over, or on the database that the settings name.

alembic -c migrations/alembic.ini upgrade head
alembic -c migrations/alembic.ini revision --autogenerate -m "..."
"""

from alembic import context
from sqlalchemy import Connection

from cliffwatch.model.settings import read_settings
from cliffwatch.store.database import open_database
from cliffwatch.store.models import BaseRow


def migrate(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=BaseRow.metadata,
        # SQLite cannot alter most things in place; batches copy the table.
        render_as_batch=connection.dialect.name == "sqlite",
        compare_type=True,
    )
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()


def main() -> None:
    given = context.config.attributes.get("connection")
    if given is not None:
        migrate(given)
        return
    database = open_database(read_settings().database_url)
    try:
        with database.engine.connect() as connection:
            migrate(connection)
    finally:
        database.close()


main()
