"""The engine that runs PostgreSQL's own pgbench, and reads its log and the server's statistics."""
