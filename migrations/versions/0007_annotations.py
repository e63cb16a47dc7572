"""Annotations of runs: labels, a note, and whether a run is pinned."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("labels", sa.Text(), nullable=False, server_default="{}"))
    op.add_column("runs", sa.Column("note", sa.String(), nullable=True))
    op.add_column("runs", sa.Column("pinned", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    # In place, as in 0004.
    for name in ("labels", "note", "pinned"):
        op.drop_column("runs", name)
