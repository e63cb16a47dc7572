"""When a run was imported from another service."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("imported_at", sa.Float(precision=53), nullable=True))


def downgrade() -> None:
    # In place, which SQLite can from 3.35 on: a table made anew would take the findings with it.
    op.drop_column("runs", "imported_at")
