from tests.databases import database, database_url, postgresql_server

__all__ = ["database", "database_url", "postgresql_server"]
